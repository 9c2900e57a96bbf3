"""The search for records that end a process: in real processes, which really end."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.set_aside import FatalRecordsError, RecordAside, SetAside
from kafka_archiver.model.settings import Settings
from kafka_archiver.model.transforms import Mapper, Transform
from kafka_archiver.records.formats.base import RECORD
from kafka_archiver.records.writer.result import Limits, WriteJob
from kafka_archiver.spark import fatal_records
from kafka_archiver.spark.fatal_records import Finder, Search, explained
from kafka_archiver.spark.sink import Sink
from tests.support.mappers import write_module
from tests.support.plans import partition, plan

pytestmark = [pytest.mark.unit, pytest.mark.timeout(600)]

MAPPER = """
import ctypes, os, sys, time
seen = 0
def fatal(record):
    global seen
    seen += 1
    print("no answer") if seen == 1 else None
    if record.value == b"segfault":
        ctypes.string_at(0)
    if record.value == b"abort":
        os.abort()
    if record.value == b"hang":
        while True:
            pass
    if record.value == b"child":
        if not os.fork():
            time.sleep(3600)
        os._exit(0)
    if record.value == b"memory":
        kept = [bytearray(64 << 20) for _ in range(100)]
    if record.value == b"third" and seen > 2:
        os._exit(1)
    return record
"""
LIMITS = Limits(record_seconds=3, record_memory_bytes=512 << 20)


def reading(
    values: Sequence[bytes], size: int, some: Sequence[Chunk]
) -> Iterator[tuple[Chunk, Iterator[pa.RecordBatch]]]:
    """Read records from memory, in batches of a size."""
    for chunk in some:
        rows = range(chunk.start, chunk.end)
        columns: dict[str, Any] = {
            "offset": pa.array(rows, pa.int64()),
            "timestamp": pa.array([0 for _ in rows], pa.int64()),
            "timestamp_type": pa.array([0 for _ in rows], pa.int32()),
            "key": pa.nulls(len(rows), pa.binary()),
            "value": pa.array([values[n] for n in rows], pa.binary()),
            "headers": pa.nulls(len(rows), RECORD.field("headers").type),
        }
        whole = pa.RecordBatch.from_pydict(columns)
        yield chunk, (whole.slice(n, size) for n in range(0, len(rows), size))


def failing(_: Sequence[Chunk]) -> Any:
    raise PermanentError("the brokers refused the credentials")
    yield


def finder(folder: Path, values: Sequence[bytes], aside: Sequence[int] = (), chunk_records: int = 30) -> Finder:
    mapper = Mapper(function=f"{write_module(folder, MAPPER)}:fatal")
    settings = Settings(transform=Transform(mapper=mapper), chunk_records=chunk_records)
    of = plan(1, partition(0, len(values)), settings=settings)
    left_out = SetAside(archive="orders", run=of.run, records=tuple(map(record, aside))) if aside else None
    job = WriteJob.of(of, "dead_letter", {}, aside=left_out)
    return Finder(Sink(of, "memory://x", {}, LIMITS, job, None, 1), partial(reading, values, 7))


def record(offset: int) -> RecordAside:
    return RecordAside(topic="orders", partition=0, offset=offset, reason="known")


def searched(of: Finder) -> Search:
    return of.find(list(of.sink.plan.chunks()))


def test_each_record_that_ends_the_process_is_found_wherever_it_is(tmp_path: Path) -> None:
    """The first one, two beside each other, and the last one."""
    values = [b"%d" % n for n in range(31)]
    fatal = {0: b"segfault", 12: b"abort", 13: b"child", 30: b"abort"}
    for offset, value in fatal.items():
        values[offset] = value
    how = {b"segfault": "by SIGSEGV", b"abort": "by SIGABRT", b"child": "with exit code 0"}
    records, innocent, failure = searched(finder(tmp_path, values))
    assert (innocent, failure) == ((), None)
    assert {bad_record.offset: bad_record.reason for bad_record in records} == {
        offset: f"no process survives this record: it ended the process {how[value]}" for offset, value in fatal.items()
    }


@pytest.mark.parametrize(
    ("value", "reason"),
    [(b"hang", "it took more than 3 s"), (b"memory", "it needed more than 536,870,912 bytes of memory")],
)
def test_a_record_that_exceeds_a_limit_is_found(tmp_path: Path, value: bytes, reason: str) -> None:
    records, _, _ = searched(finder(tmp_path, [b"1", value, b"2"]))
    assert [(bad_record.offset, bad_record.reason) for bad_record in records] == [
        (1, f"no process survives this record: {reason}")
    ]


def test_a_record_that_ends_no_process_alone_is_not_at_fault(tmp_path: Path) -> None:
    records, innocent, failure = searched(finder(tmp_path, [b"1", b"2", b"third", b"4"]))
    assert (records, failure) == ((), None)
    assert innocent == ("orders[0] [0, 4): it ended the process with exit code 1 (none of them alone)",)
    error = explained(Search(records, innocent), RuntimeError("Python worker exited unexpectedly"), Settings())
    assert isinstance(error, TransientError)
    assert "no record ends it alone; orders[0] [0, 4): it ended the process" in str(error)


def test_what_is_set_aside_already_is_not_looked_at(tmp_path: Path) -> None:
    assert searched(finder(tmp_path, [b"1", b"segfault", b"3"], aside=[1])) == Search((), (), None)


def test_records_that_cannot_be_read_are_an_error_of_the_reader(tmp_path: Path) -> None:
    broken_finder = finder(tmp_path, [b"1"])
    broken_finder.read = failing
    search_ = searched(broken_finder)
    assert search_.records == ()
    error = explained(search_, RuntimeError("x"), Settings())
    assert (type(error), str(error)) == (PermanentError, "the brokers refused the credentials")


def test_a_search_ends_after_some_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fatal_records, "MOST", 2)
    records, _, _ = searched(finder(tmp_path, [b"abort"] * 4))
    assert [bad_record.offset for bad_record in records] == [0, 1]
    assert isinstance(explained(Search(records), RuntimeError("x"), Settings()), FatalRecordsError)
