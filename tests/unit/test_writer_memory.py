"""Memory stays below a fixed limit, whatever is open: measured in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from kafka_archiver.records.writer import part
from kafka_archiver.records.writer.disk import LateDirectory
from kafka_archiver.records.writer.open_object import OpenObject
from kafka_archiver.records.writer.part import DOUBLE_AFTER, PartBuffer
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.records.writer.upload import PartStream
from kafka_archiver.store.base import Body, PendingUpload, UploadedPart, pieces
from tests.support.chunks import HOUR, chunk_of, new_store, write

pytestmark = [pytest.mark.unit, pytest.mark.slow]

MIB = 1 << 20
PART = 5 * MIB
LIMITS = Limits(memory_bytes=16 * MIB, upload_threads=2)
# What a chunk may take besides the limit: parts on their way, the block that is gathered, joined and sorted, the
# compressors' states (48 of 0.15 MiB), and what the allocators keep.
BESIDES = 2 * LIMITS.upload_threads * PART + 3 * LIMITS.block_bytes + 8 * MIB + 16 * MIB
ROWS, SIZE = 120_000, 1000


class Discard:
    """A store that keeps nothing."""

    def start_upload(self, key: str) -> PendingUpload:
        return PendingUpload(key, key)

    def upload_part(self, upload: PendingUpload, number: int, data: Body, crc32: int) -> UploadedPart:
        return UploadedPart("", crc32, sum(map(len, pieces(data))))


def batches(rows: int, hours: int) -> Iterator[pa.RecordBatch]:
    """Records that no codec makes much smaller, over so many hours in random order."""
    random = np.random.default_rng(7)
    for start in range(0, rows, 500):
        text = random.integers(48, 112, 500 * SIZE, np.uint8)
        values = pa.Array.from_buffers(
            pa.binary(), 500, [None, pa.py_buffer(np.arange(0, 501 * SIZE, SIZE, np.int32)), pa.py_buffer(text)]
        )
        nothing = pa.nulls(500, pa.binary())
        columns: dict[str, Any] = {
            "offset": pa.array(np.arange(start, start + 500)),
            "timestamp": pa.array(random.integers(0, hours, 500) * HOUR),
            "timestamp_type": pa.array(np.zeros(500, np.int32)),
            "key": nothing,
            "value": values,
            "headers": pa.array([[]] * 500, pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))),
        }
        yield pa.RecordBatch.from_pydict(columns)


def peak(format_: str, codec: str, content: str, hours: int, rows: int) -> int:
    """The bytes that writing needs more than what was there after the first records."""
    options = {"format": format_, "codec": codec, "content": content, "part_bytes": PART}
    write(chunk_of(0, 1000), batches(1000, 2), new_store(), LIMITS, **options)
    with growth() as grown:
        result = write(chunk_of(0, rows), batches(rows, hours), Discard(), LIMITS, **options)
    assert len(result.objects) == hours
    return grown[0]


@contextmanager
def growth() -> Iterator[list[int]]:
    """Adds the bytes by which the peak grows while the block runs."""
    # Sets the peak back to what is used now.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    grown, before = list[int](), peak_bytes()
    yield grown
    grown.append(peak_bytes() - before)


def peak_bytes() -> int:
    """The peak since it was set back."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(x for x in lines if x.startswith("VmHWM")).split()[1]) << 10


@pytest.mark.parametrize(
    ("format_", "codec", "content", "hours", "rows", "double_after"),
    [
        pytest.param("jsonl", "gzip", "value", 48, ROWS, DOUBLE_AFTER, id="hours"),
        pytest.param("parquet", "zstd", "record", 48, ROWS, DOUBLE_AFTER, id="row groups"),
        pytest.param("jsonl", "gzip", "value", 2000, ROWS, DOUBLE_AFTER, id="hours that wait"),
        pytest.param("jsonl", "none", "value", 1, 165_000, 1, id="parts of 5 to 80 MiB"),
    ],
)
def test_memory_does_not_grow_with_open_hours_or_large_parts(
    format_: str, codec: str, content: str, hours: int, rows: int, double_after: int
) -> None:
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root / 'include'}:{root}"}
    command = [sys.executable, __file__, format_, codec, content, *map(str, (hours, rows, double_after))]
    output = subprocess.run(command, env=environment, cwd=root, check=True, capture_output=True, text=True).stdout
    # At least 120 MB go through, and all of them would be in buffers of open objects.
    assert int(output) <= LIMITS.memory_bytes + BESIDES


class Given:
    """An encoder that gives what it was told to, and an upload that takes it."""

    pending = 0

    def __init__(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self.sent: list[bytes] = []

    def write(self, batch: pa.RecordBatch) -> list[bytearray]:
        return [self._buffer]

    def send(self, part: PartBuffer, last: bool) -> None:
        self.sent.append(cast(bytes, part.take()))


def test_what_waits_for_the_next_part_does_not_keep_what_was_sent(tmp_path: Path) -> None:
    large = bytearray(range(250))
    handed_over: Any = Given(large)
    output = OpenObject("p", handed_over, PartStream(handed_over, 100, LateDirectory(tmp_path)))
    output.write(pa.RecordBatch.from_pydict({"offset": [0], "timestamp": [0]}))
    assert handed_over.sent == [bytes(range(100)), bytes(range(100, 200))]
    assert output.memory == 50
    # It can not as long as anybody has a view of it.
    large.clear()
    assert output.parts.buffer.take() == bytes(range(200, 250))


if __name__ == "__main__":
    part.DOUBLE_AFTER = int(sys.argv[6])
    print(peak(*sys.argv[1:4], *map(int, sys.argv[4:6])))
