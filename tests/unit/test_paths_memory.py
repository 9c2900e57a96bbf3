"""A chunk of three thousand paths takes as much memory as one of a single path: measured in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kafka_archiver.records.writer.result import Limits
from tests.support.chunks import chunk_of, write
from tests.unit.test_writer_memory import PART, Discard, batches

pytestmark = [pytest.mark.unit, pytest.mark.slow]

ROWS, PATHS = 18_000, 3_000


def keyed(paths: int) -> Iterator[pa.RecordBatch]:
    """Records of 1,000 bytes with so many keys, in random order."""
    random = np.random.default_rng(3)
    for batch in batches(ROWS, 1):
        keys = [b"%d" % key for key in random.integers(0, paths, batch.num_rows)]
        yield batch.set_column(batch.schema.get_field_index("key"), "key", pa.array(keys, pa.binary()))


def peak(paths: int) -> int:
    """The most memory of the process, in kilobytes."""
    options = {"format": "jsonl", "codec": "gzip", "content": "record", "part_bytes": PART}
    filed = {"layout": "fields", "layout_options": {"fields": ["key"]}}
    result = write(chunk_of(0, ROWS), keyed(paths), Discard(), Limits(), **options, **filed)
    assert len(result.objects) > 0.99 * paths
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def test_three_thousand_paths_take_the_memory_of_one() -> None:
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root / 'include'}:{root}"}

    def measured(paths: int) -> int:
        command = [sys.executable, __file__, str(paths)]
        return int(subprocess.run(command, env=environment, cwd=root, check=True, capture_output=True).stdout)

    single, many = measured(1), measured(PATHS)
    assert abs(many - single) <= 0.2 * single, f"{single} KiB for one path, {many} KiB for {PATHS}"


if __name__ == "__main__":
    print(peak(int(sys.argv[1])))
