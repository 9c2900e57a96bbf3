"""The limits of decoders and mappers: a process that exceeds one ends, and slices are as large as the records allow."""

import resource
import subprocess
import sys

import pyarrow as pa
import pytest

from kafka_archiver.records.writer import record_limits
from kafka_archiver.records.writer.record_limits import RecordLimits, watched

pytestmark = pytest.mark.unit


@pytest.mark.timeout(100)
@pytest.mark.parametrize("work", ["while True: pass", "import time; time.sleep(90)", "9 ** 9 ** 9"])
def test_a_process_ends_that_works_longer_than_its_limit(work: str) -> None:
    """Also one whose only thread never lets Python look at anything else."""
    code = f"from kafka_archiver.records.writer.record_limits import watched\nwith watched(1, 0):\n    {work}\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 1
    assert b"Timeout (0:00:01)!" in ended.stderr


def test_what_needs_more_memory_than_its_limit_fails_and_the_limit_is_taken_away() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(MemoryError), watched(0, 200 << 20):
        bytearray(400 << 20)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with watched(0, 600 << 20):
        bytearray(400 << 20)


def test_slices_grow_while_records_are_quick_and_shrink_when_they_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(record_limits.time, "monotonic", lambda: clock[0])
    batch = pa.record_batch({"offset": pa.array(range(3000), pa.int64())})
    slices: list[tuple[int, int]] = []

    def work(piece: pa.RecordBatch) -> None:
        first = piece.column("offset")[0].as_py()
        slices.append((first, piece.num_rows))
        # From offset 2000 on, each takes four seconds.
        clock[0] += sum(0.0001 if n < 2000 else 4.0 for n in range(first, first + piece.num_rows))

    of = RecordLimits(60)
    of.each(batch.slice(0, 2000), work)
    assert slices == [(0, 1), (1, 8), (9, 64), (73, 512), (585, 1415)]
    of.each(batch.slice(2000, 2), work)
    of.each(batch.slice(2002, 5), work)
    assert slices[5:] == [(2000, 2), (2002, 2), (2004, 2), (2006, 1)]
    assert [rows.num_rows for rows, _ in RecordLimits().each(batch, work)] == [3000]
