"""Documents derived from plans, manifests and ends (proofs, progress, what settling did) are computed again."""

import json
import uuid
from itertools import product

import pytest

from kafka_archiver.model import proof as proofs
from kafka_archiver.model.object_keys import run_document
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.repair import Repairs, derive_documents, find_repairs
from tests.support.lake import HOUR, Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
DERIVED = ("/hours/", "/progress.json", "/settled.json")


@pytest.fixture
def lake() -> Lake:
    """Two settled runs, the second of which has a late record of the first hour."""
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 3)})
    lake.run(2)
    late(lake, 3)
    return lake


def late(lake: Lake, number: int) -> None:
    """The run of an hour, with one more record, which is of the first hour."""
    lake.odd[P0, number] = {"timestamp": lake.brokers.first * HOUR}
    lake.logs[P0] = Range(0, number + 1)
    lake.run(number)


def repair(lake: Lake) -> Repairs:
    """Repair the archive as far as it needs no DAG run."""
    damage = find_repairs(lake.context, lake.audit())
    if damage.to_derive:
        derive_documents(lake.ledger)
    return damage


def documents(lake: Lake) -> dict[str, bytes]:
    """The ledger."""
    return {s.key: lake.store.get(s.key) or b"" for s in lake.store.list(f"_ledger/{lake.name}/")}


def damaged(data: bytes) -> bytes:
    """The same document with another number in it."""
    document = json.loads(data)
    for name in ("rows", "lost", "closed"):
        if name in document:
            document[name] = [[1, 2]] if name == "closed" else document[name] + 1
    return json.dumps(document).encode()


def test_what_the_next_tests_damage_is_there(lake: Lake) -> None:
    assert all(any(part in key for key in documents(lake)) for part in (*DERIVED, "hours/2026-11-20/00.json"))
    proof = lake.proof(0)
    assert (proof.rows, proof.late_rows) == (2, 1)


@pytest.mark.parametrize(
    ("which", "how"),
    [
        *product((("hours/2026-11-20/00.json",), *((name,) for name in DERIVED)), ("deleted", "changed", "garbage")),
        # All at once; when all of it is deleted, the next run computes it: see below.
        *product((DERIVED,), ("changed", "garbage")),
    ],
)
def test_what_is_derived_is_computed_again_byte_by_byte(lake: Lake, which: tuple[str, ...], how: str) -> None:
    before = documents(lake)
    for key in [key for key in before if any(part in key for part in which)]:
        if how == "deleted":
            lake.store.delete(key)
        else:
            lake.store.put(key, b"{" if how == "garbage" else damaged(before[key]))
    assert lake.audit().verdict == "damaged"
    assert repair(lake).to_derive
    assert documents(lake) == before
    assert lake.audit().findings == ()
    lake.logs[P0] = Range(0, 5)
    lake.run(4)
    assert [lake.proof(number).status for number in range(len(lake.ledger.hours()))] == ["complete"] * 5
    assert lake.audit(deep=True).findings == ()


@pytest.mark.parametrize("how", ["deleted", "of a run that the line lost"])
def test_an_hour_whose_proof_is_gone_is_not_complete_by_a_late_record_alone(lake: Lake, how: str) -> None:
    lake.logs[P0] = Range(0, 5)
    lake.run(4)
    lake.run(5)
    older = {key: data for key, data in documents(lake).items() if "/hours/" not in key}
    key = next(key for key in documents(lake) if "hours/2026-11-20/04" in key)
    lake.odd[P0, 5] = {"timestamp": (lake.brokers.first + 4) * HOUR}
    lake.logs[P0] = Range(0, 6)
    if how == "deleted":
        lake.store.delete(key)
    else:
        lake.run(6)
        # All but the proofs is put back to an earlier moment.
        for other in documents(lake).keys() - older.keys():
            if "/hours/" not in other:
                lake.store.delete(other)
        for other, data in older.items():
            lake.store.put(other, data)
        lake.brokers.group.clear()
        lake.odd[P0, 6] = {"timestamp": (lake.brokers.first + 4) * HOUR}
        lake.logs[P0] = Range(0, 7)
    for number in (7, 8):
        lake.run(number)
        proof = lake.proof(4)
        assert (proof.status, proof.rows) == ("incomplete", lake.logs[P0].end - 5)
        assert (
            proof.reason
            == f"its proof was gone when a run added to it; `airflow archive repair {lake.name}` computes it again"
        )
    assert repair(lake).to_derive
    assert (lake.proof(4).status, lake.proof(4).rows) == ("complete", lake.logs[P0].end - 4)
    lake.run(9)
    assert lake.audit(deep=True).findings == ()


def test_without_anything_that_is_derived_the_next_run_computes_all_of_it(lake: Lake) -> None:
    before = documents(lake)
    for key in [key for key in before if any(part in key for part in DERIVED)]:
        lake.store.delete(key)
    report = lake.audit()
    assert (report.verdict, report.unfinished) == ("clean", (hour(2).id, hour(3).id))
    assert not repair(lake)
    lake.run(4)
    assert {key: data for key, data in before.items() if "progress" not in key}.items() <= documents(lake).items()
    assert lake.audit(deep=True).findings == ()


@pytest.mark.parametrize("number", [2, 3])
def test_the_progress_and_a_part_of_what_it_is_known_by(lake: Lake, number: int) -> None:
    before = documents(lake)
    lake.store.delete(f"_ledger/{lake.name}/progress.json")
    lake.store.delete(run_document(lake.name, hour(number).id, "settled"))
    repair(lake)
    lake.run(4)
    assert {key: data for key, data in before.items() if "progress" not in key}.items() <= documents(lake).items()
    assert lake.audit(deep=True).findings == ()


@pytest.mark.parametrize("how", ["deleted", "garbage"])
def test_pages_of_a_proof_are_computed_again(lake: Lake, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(proofs, "PAGE", 2)
    for number in (4, 5, 6):
        late(lake, number)
    proof = lake.proof(0)
    assert proof.pages
    before = lake.ledger.contributions(proof)
    for key in documents(lake):
        if "/hours/2026-11-20/00+" in key:
            lake.store.delete(key)
            if how == "garbage":
                lake.store.put(key, b"{")
    assert lake.audit().verdict == "damaged"
    assert repair(lake).to_derive
    computed = lake.proof(0)
    assert lake.ledger.contributions(computed) == before
    assert (computed.rows, computed.status, computed.late_rows) == (proof.rows, proof.status, proof.late_rows)
    assert lake.audit(deep=True).findings == ()
