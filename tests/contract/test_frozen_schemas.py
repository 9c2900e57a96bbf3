"""The schemas of a run are in its plan and beside the data: nobody asks the registry after planning."""

import uuid
from dataclasses import replace
from typing import Any

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import DocumentError, IntegrityError, PermanentError, TransientError
from kafka_archiver.model.object_keys import schema_document
from kafka_archiver.records.pipeline import decode
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.plan import plan, preview
from kafka_archiver.work.repair import find_repairs, restore_document
from tests.support.avro_records import LocalRegistry, SmallAvro, framed, record
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
ONE, TWO = record("Order", "n"), record("Order", "n", m=7)


@pytest.fixture(autouse=True)
def small_decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "decoder", lambda name, of, _shows_values: SmallAvro(name, of))


def lake_of(registry: LocalRegistry, value: dict[str, Any] | None = None, **policies: str) -> Lake:
    """An archive of two records with schema 1, and none of schema 2 yet."""
    number = registry.register("orders-value", ONE)
    lake = Lake(
        MemoryStore(uuid.uuid4().hex), {P0: Range(0, 2)}, {"content": "record", "chunk_records": 10}, policies=policies
    )
    for offset in range(2):
        lake.odd[P0, offset] = {"value": framed(number, ONE, {"n": offset})}
    source = {"topics": ["orders"], "settle": 0, "registry": "r", "value": {"decode": "avro", **(value or {})}}
    lake.configure(Archive.model_validate({**lake.archive.model_dump(), "source": source}))
    lake.context = replace(lake.context, registry=registry.open)
    return lake


def test_what_the_registry_loses_after_planning_changes_no_retry() -> None:
    registry = LocalRegistry()
    lake = lake_of(registry)
    run = lake.run(1, until="planned")
    planned = lake.planned(run)
    [of_topic] = planned.schemas
    [writer] = of_topic.writers
    assert (of_topic.topic, of_topic.column, of_topic.framed) == ("orders", "value", True)
    assert (writer.id, writer.subject, writer.version) == (100, "orders-value", 1)
    assert writer.written_as == writer.fingerprint
    assert list(lake.ledger.schemas(planned.fingerprints)) == [writer.fingerprint]
    registry.down, registry.subjects = True, {}
    asked = registry.asked
    lake.run(1)
    before = {key: lake.store.get(key) for key in lake.stored()}
    assert lake.manifest(run).account["archived"] == 2
    lake.run(1)
    assert {key: lake.store.get(key) for key in lake.stored()} == before
    assert registry.asked == asked
    assert not lake.audit().findings


def test_a_registry_that_does_not_answer_lets_nothing_be_planned() -> None:
    registry = LocalRegistry()
    lake = lake_of(registry)
    lake.now = hour(1).end
    registry.down = True
    with pytest.raises(TransientError, match="no answer from the schema registry"):
        plan(lake.context, hour(1), "scheduled")
    assert lake.ledger.planned(1) is None
    registry.down = False
    # A preview writes nothing.
    assert preview(lake.context, hour(1), "scheduled").plan.schemas
    assert not list(lake.store.list("_ledger/"))
    lake.run(1)
    # Nothing is read, so no schema is needed.
    registry.down = True
    lake.run(2)


def test_a_schema_that_the_plan_does_not_have_goes_by_the_policy_on_every_retry() -> None:
    registry = LocalRegistry()
    lake = lake_of(registry, bad_record="dead_letter")
    other = registry.register("somewhere-else", ONE)
    lake.odd[P0, 1] = {"value": framed(other, ONE, {"n": 1})}
    run = lake.run(1, until="planned")
    # It appears between plan and read.
    registry.subjects["orders-value"].append((other, ONE))
    lake.run(1)
    account = lake.manifest(run).account
    assert (account["archived"], account["dead_lettered"]) == (1, 1)
    # The next plan has it.
    lake.logs[P0] = Range(0, 3)
    lake.odd[P0, 2] = {"value": framed(other, ONE, {"n": 2})}
    assert lake.manifest(lake.run(2)).account["archived"] == 1


def test_without_the_subject_nothing_is_planned() -> None:
    lake = lake_of(LocalRegistry(), {"subject": "record", "subjects": ["x.Order"]})
    lake.now = hour(1).end
    with pytest.raises(PermanentError, match=r"registry at http://registry has no subject x.Order, which has the sche"):
        plan(lake.context, hour(1), "scheduled")
    assert lake.ledger.planned(1) is None


def test_records_of_several_subjects_are_each_checked_by_their_own_schema() -> None:
    registry = LocalRegistry()
    lake = lake_of(registry, {"subject": "topic_record", "subjects": ["A", "B"]}, bad_record="skip")
    a, b = (registry.register(f"orders-{name}", record(name, "n")) for name in "AB")
    lake.logs[P0] = Range(0, 5)
    bad = [b"no frame", b"\0\0\0\0\1\2"]
    good = [framed(number, record("A", "n"), {"n": 1}) for number in (a, b, a)]
    for offset, value in enumerate([*good, *bad]):
        lake.odd[P0, offset] = {"value": value}
    account = lake.manifest(lake.run(1)).account
    assert (account["archived"], account["filtered"]) == (3, 2)


def test_a_rebuild_still_has_the_schemas_that_the_registry_has_lost() -> None:
    registry = LocalRegistry()
    lake = lake_of(registry)
    run = lake.run(1)
    registry.subjects["orders-value"] = [(900, TWO)]
    rebuilt = lake.planned(lake.rebuild(run))
    assert {w.id for w in rebuilt.schemas[0].writers} == {100, 900}
    assert lake.manifest(rebuilt.run).account["archived"] == 2
    registry.subjects = {}
    lake.rebuild(run)


@pytest.mark.parametrize("evolution", ["NONE", "BACKWARD"])
def test_an_id_that_the_registry_gives_to_another_schema_stays_what_it_was(evolution: str) -> None:
    """A registry that was set up anew. The other schema reads the same bytes as something else."""
    registry = LocalRegistry()
    lake = lake_of(registry)
    lake.configure(lake.archive.model_copy(update={"schema_evolution": evolution}))
    run = lake.run(1)
    [before] = lake.planned(run).schemas[0].writers
    registry.subjects["orders-value"] = [(100, record("Order", "other")), (101, TWO)]
    rebuilt = lake.planned(lake.rebuild(run))
    [decoded] = rebuilt.schemas
    assert {w.id: w.fingerprint for w in decoded.writers}[100] == before.fingerprint
    assert decoded.main is None or decoded.main in decoded.written
    assert lake.manifest(rebuilt.run).account["archived"] == 2


@pytest.mark.parametrize("damage", [b"{}", None])
@pytest.mark.parametrize("repaired", [True, False])
def test_a_damaged_schema_is_found_and_a_repair_or_the_next_plan_restores_it(
    damage: bytes | None, repaired: bool
) -> None:
    registry = LocalRegistry()
    lake = lake_of(registry)
    run = lake.run(1, until="planned")
    [fingerprint] = lake.planned(run).fingerprints
    key = schema_document(lake.name, fingerprint)
    right = lake.store.get(key)
    assert right
    lake.store.delete(key)
    if damage:
        lake.store.create(key, damage)
    with pytest.raises((IntegrityError, DocumentError), match=f"{key} is (gone|not a readable)"):
        lake.run(1)
    assert [(f.kind, f.subject) for f in lake.audit().damage] == [("unreadable" if damage else "schema-missing", key)]
    if repaired:
        registry.down = True
        assert find_repairs(lake.context, lake.audit()).to_restore == ()
        registry.down = False
        assert find_repairs(lake.context, lake.audit()).to_restore == (key,)
        restore_document(lake.ledger, key, registry.open)
    lake.logs[P0] = Range(0, 3)
    lake.odd[P0, 2] = {"value": None}
    lake.run(2)
    assert lake.store.get(key) == right
    assert not lake.audit().findings
