"""The records that a run leaves out: frozen once, only growing, and decided by the policy `bad_record`."""

import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import BadRecordError, PermanentError
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.set_aside import FatalRecordsError, OffsetsAside, RecordAside, SetAside
from kafka_archiver.records.writer.result import WriteJob
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.work.archive import set_aside as module
from kafka_archiver.work.archive.set_aside import freeze_fatal_records, set_aside_of
from tests.support.plans import partition, plan

pytestmark = pytest.mark.unit

PLAN = plan(1, partition(0, 10))
CHUNK = Chunk(topic="orders", partition=0, generation=0, start=0, end=10)


def record(
    offset: int, reason: str = "no process survives this record: it ended the process by SIGSEGV"
) -> RecordAside:
    return RecordAside(topic="orders", partition=0, offset=offset, reason=reason)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(MemoryStore(uuid.uuid4().hex), "orders")


def job(policy: str = "dead_letter") -> WriteJob:
    return replace(WriteJob.of(PLAN, "fail", {}), bad_record=policy)  # type: ignore[arg-type]


def test_under_dead_letter_it_is_frozen_and_what_is_known_stays(ledger: Ledger) -> None:
    first = freeze_fatal_records(ledger, PLAN, job(), FatalRecordsError([record(3)]))
    # Another attempt comes to another reason, and finds another record.
    second = freeze_fatal_records(ledger, PLAN, job(), FatalRecordsError([record(3, "it took long"), record(1)]))
    assert first.aside
    assert first.aside.records == (record(3),)
    assert second.aside == ledger.set_aside(PLAN.run).document == set_aside_of(ledger, PLAN.run, None)
    assert second.aside
    assert second.aside.records == (record(1), record(3))
    assert second.set_aside(CHUNK).keys() == {1, 3}


def test_under_fail_nothing_is_frozen_and_the_error_names_the_offset_and_the_choices(ledger: Ledger) -> None:
    with pytest.raises(BadRecordError, match=r"^orders\[0\] offset 3: no process survives .*bad_record") as caught:
        freeze_fatal_records(ledger, PLAN, job("fail"), FatalRecordsError([record(3)]))
    assert "policies.bad_record: dead_letter" in str(caught.value)
    assert ledger.set_aside(PLAN.run).document is None


def test_a_run_with_a_manifest_leaves_out_what_that_says(ledger: Ledger) -> None:
    freeze_fatal_records(ledger, PLAN, job(), FatalRecordsError([record(3)]))
    account = ChunkAccount(**CHUNK.model_dump(), archived=9, dead_lettered=1, set_aside=((7, "as it was"),))
    manifest = ledger.create_manifest(Manifest.of(PLAN, (), [account]))
    aside = set_aside_of(ledger, PLAN.run, manifest)
    assert aside
    assert aside.records == (record(7, "as it was"),)
    with pytest.raises(PermanentError, match="has a manifest already, and that record ended no process"):
        freeze_fatal_records(ledger, PLAN, job(), FatalRecordsError([record(5)]))


def test_too_many_records_are_no_fault_of_theirs(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RECORDS", 2)
    with pytest.raises(PermanentError, match=r"More than 2 records of run .* `airflow archive rebuild orders --run"):
        freeze_fatal_records(ledger, PLAN, job(), FatalRecordsError(map(record, range(3))))
    assert ledger.set_aside(PLAN.run).document is None


ranges = st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(ranges, max_size=6), st.lists(ranges, min_size=1, max_size=4))
def test_every_offset_is_read_or_given_up(holes: list[tuple[int, int]], places: list[tuple[int, int]]) -> None:
    aside = SetAside(archive="orders", run="r")
    for start, end in holes:
        aside = aside.with_unread(OffsetsAside(topic="orders", partition=0, start=start, end=end))
    gone = {offset for hole in holes for offset in range(*hole)}
    for start, end in places:
        chunk = CHUNK.model_copy(update={"start": start, "end": end})
        read = [offset for part in aside.readable([chunk]) for offset in range(part.start, part.end)]
        assert read == [offset for offset in range(start, end) if offset not in gone]
        account = aside.losing(ChunkAccount.nothing_there(chunk))
        assert account.lost == len(gone & set(range(start, end)))
        assert ChunkAccount.model_validate(account.model_dump()) == account
    other = CHUNK.model_copy(update={"partition": 1})
    assert aside.readable([other]) == [other]
