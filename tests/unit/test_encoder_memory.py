"""The memory of an encoder stays small, however many records a block has: measured in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_archiver.records.formats.base import HEADERS
from kafka_archiver.records.writer.result import Limits
from scripts.stack.paths import ROOT
from tests.support.chunks import HOUR, chunk_of, new_store, write
from tests.unit.test_writer_memory import MIB, PART, Discard, growth

pytestmark = [pytest.mark.unit, pytest.mark.slow]

LIMITS = Limits()
# Parts on their way (a spilled one twice), the block that is gathered, joined and sorted, and what the allocators keep.
# Without a codec a part is as large as its lines.
ALLOWED = 2 * LIMITS.upload_threads * PART + 3 * LIMITS.block_bytes + 2 * PART + 24 * MIB


def tiny(rows: int, headers: int) -> Iterator[pa.RecordBatch]:
    """Records of few bytes, in turn of two hours: as Python objects they would take a hundred times as much."""
    for start in range(0, rows, 2000):
        ends = pa.array(np.arange(0, 2000 * headers + 1, headers) if headers else np.zeros(2001), pa.int32())
        parts = [pa.array([""] * (2000 * headers), pa.string()), pa.nulls(2000 * headers, pa.binary())]
        pairs = pa.StructArray.from_arrays(parts, fields=list(HEADERS.value_type))
        columns: dict[str, Any] = {
            "offset": pa.array(np.arange(start, start + 2000)),
            "timestamp": pa.array(np.arange(2000) % 2 * HOUR),
            "timestamp_type": pa.array(np.zeros(2000, np.int32)),
            "key": pa.nulls(2000, pa.binary()),
            "value": pa.array([b""] * 2000, pa.binary()),
            "headers": pa.ListArray.from_arrays(ends, pairs, HEADERS),
        }
        yield pa.RecordBatch.from_pydict(columns)


def peak(format_: str, codec: str, headers: int) -> int:
    """The bytes that writing needs more than what was there after the first records."""
    options: dict[str, Any] = {"format": format_, "codec": codec, "content": "record", "part_bytes": PART}
    rows = 300_000 // (1 + headers) // 2000 * 2000
    write(chunk_of(0, 2000), tiny(2000, headers), new_store(), LIMITS, **options)
    discard: Any = Discard()
    with growth() as grown:
        assert write(chunk_of(0, rows), tiny(rows, headers), discard, LIMITS, **options).account.archived == rows
    return grown[0]


@pytest.mark.parametrize(
    ("format_", "codec", "headers"),
    [
        ("jsonl", "none", 0),
        ("jsonl", "gzip", 20),
        ("csv", "none", 20),
        ("avro", "zstd", 20),
        ("parquet", "zstd", 0),
        ("mak", "none", 20),
    ],
)
def test_memory_does_not_grow_with_the_records_in_a_block(format_: str, codec: str, headers: int) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'include'}:{ROOT}"}
    command = [sys.executable, __file__, format_, codec, str(headers)]
    output = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert int(output) <= ALLOWED


if __name__ == "__main__":
    print(peak(*sys.argv[1:3], int(sys.argv[3])))
