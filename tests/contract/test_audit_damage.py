"""Damaged objects: the deep audit names each, whatever the readers of others make of it, and reads the rest."""

import random
from collections.abc import Iterator
from functools import cache
from typing import Any, BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.audit import readers
from kafka_archiver.audit.content import read_through
from kafka_archiver.audit.readers.base import FormatReader, RecordCoordinates
from kafka_archiver.audit.report import Report
from kafka_archiver.messages.errors import TransientError, kind_in_words
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.store import open_store
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.support.chunks import HOUR, Row, chunk_of, cut, new_store, write
from tests.support.formats import Case, every_case
from tests.support.lake import Lake
from tests.support.values import plan

pytestmark = pytest.mark.contract

COUNT = 300
TIME = 1_763_700_000_000 // HOUR * HOUR


@cache
def stored(case: Case) -> tuple[ObjectEntry, Plan, bytes]:
    """An object of ordinary records: its entry in the manifest, its plan and its bytes."""
    options = dict(case.settings)
    rows = [Row(i, TIME + i, 0, b"k%d" % i, b'{"n":%d}' % i, (("h", b"v"),)) for i in range(COUNT)]
    store = new_store()
    entry, *_ = complete([write(chunk_of(0, COUNT), cut(rows, 100), store, **options)], store)
    partition = PartitionPlan(
        topic=entry.topic, topic_id="id", partition=entry.partition, start=0, end=COUNT, log_start=0, log_end=COUNT,
        ranges=(Range(0, COUNT),),
    )  # fmt: skip
    return entry, plan(partition, settings=case.settings), store.get(entry.key) or b""


def problems(case: Case, data: bytes) -> list[str]:
    entry, of, _ = stored(case)
    return read_through(entry, of, lambda start, length: data[start : start + length])


@every_case
@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32), count=st.sampled_from([1, 1, 1, 2, 8]), place=st.sampled_from(["all", "first", "last"])
)
def test_no_flipped_bit_is_missed_and_none_ends_the_audit(case: Case, seed: int, count: int, place: str) -> None:
    data = bytearray(stored(case)[2])
    # What says how to read the rest is at an end of the object.
    edge = min(600, len(data))
    among = {"all": range(len(data)), "first": range(edge), "last": range(len(data) - edge, len(data))}[place]
    for bit in random.Random(seed).sample(range(8 * len(among)), count):
        data[among[bit // 8]] ^= 1 << bit % 8
    findings = problems(case, bytes(data))
    assert findings[0].startswith("its bytes have the checksum ")
    assert problems(case, stored(case)[2]) == []


class Panic(BaseException):
    """A panic of a library written in Rust that meets what it did not expect: no `Exception`."""


@pytest.mark.parametrize(
    "error", [Panic("index out of bounds"), RecursionError("deep"), ValueError("\ud800" + "x" * 5000), Exception()]
)
def test_whatever_a_reader_raises_is_what_is_wrong_with_the_object(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(file: BinaryIO, settings: Settings) -> Iterator[RecordCoordinates]:
        raise error
        yield

    case = Case("avro", "none", "record")
    monkeypatch.setitem(readers.READERS, "avro", FormatReader(records=failing))
    [finding] = problems(case, stored(case)[2])
    assert finding.startswith(f"it cannot be read: {kind_in_words(error)}")
    # It goes into the report, which is UTF-8, and is read by people.
    assert len(finding.encode()) < 500


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_who_ends_the_audit_ends_it(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: Any) -> int:
        raise error

    case = Case("jsonl", "gzip", "value")
    monkeypatch.setitem(readers.READERS, "jsonl", FormatReader(values=ended))
    with pytest.raises(type(error)):
        problems(case, stored(case)[2])


@every_case
def test_a_store_that_does_not_answer_is_no_damage_whatever_the_reader_makes_of_it(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, of, data = stored(case)
    reader = readers.READERS[case.format]

    def records(file: BinaryIO, settings: Settings) -> Iterator[RecordCoordinates]:
        try:
            yield from reader.records(file, settings) if reader.records else ()
        except TransientError:
            raise ValueError("read failed") from None

    def values(file: BinaryIO, settings: Settings) -> int:
        try:
            return reader.values(file, settings) if reader.values else 0
        except TransientError:
            raise ValueError("read failed") from None

    monkeypatch.setitem(readers.READERS, case.format, FormatReader(records, values))
    asked = iter([TransientError("no answer from the store")])

    def fetch(start: int, length: int) -> bytes:
        for error in asked:
            raise error
        return data[start : start + length]

    with pytest.raises(TransientError, match="no answer from the store"):
        read_through(entry, of, fetch)


@pytest.mark.parametrize("where", ["block", "schema"])
@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_one_damaged_object_of_avro_leaves_a_report_about_it_and_the_others(codec: str, where: str) -> None:
    store = open_store(f"memory://{new_store().url.removeprefix('memory://')}", {})
    logs = {TopicPartition("orders", number): Range(0, 3) for number in range(2)}
    lake = Lake(store, logs, settings={"format": "avro", "content": "record", "codec": codec})
    lake.run(3)
    key = lake.stored()[0]
    data = bytearray(store.get(key) or b"")
    data[data.index(b'"type":["null"') + 2 if where == "schema" else -30] ^= 1
    store.put(key, bytes(data))
    report = lake.audit(deep=True)
    assert {(f.kind, f.subject) for f in report.damage} == {("content-wrong", key)}
    assert report.counts.read == len(lake.stored()) > 1
    assert Report.from_json(report.to_json(), "audit.json") == report
