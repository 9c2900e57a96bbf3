"""Rows of the open row group: none is copied that has memory of its own, and none keeps other rows in memory."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kafka_archiver.records.formats.shared.buffered_rows import BufferedRows
from kafka_archiver.records.vectors import numbers

pytestmark = pytest.mark.unit

SCHEMA = pa.schema({"a": pa.int64()})
ROWS = 10_000
SIZE = 8 * ROWS


def batch(values: pa.Array) -> pa.RecordBatch:
    """Rows."""
    return pa.RecordBatch.from_arrays([values], schema=SCHEMA)


def kept(some: pa.RecordBatch) -> tuple[bool, int]:
    """Return True if the rows are those in memory that are given, and the memory that is counted."""
    rows = BufferedRows(SCHEMA)
    rows.add(some)
    memory = rows.memory
    [column] = rows.take().column("a").chunks
    assert column.equals(some.column("a"))
    assert rows.memory == 0
    return column.buffers()[1].address == some.column("a").buffers()[1].address, memory


def test_rows_with_memory_of_their_own_are_not_copied() -> None:
    assert kept(batch(numbers(np.arange(ROWS)))) == (True, SIZE)


def test_a_few_rows_of_many_are_copied() -> None:
    is_same, memory = kept(batch(numbers(np.arange(ROWS))).slice(0, 10))
    assert not is_same
    assert memory < 1000


def test_rows_whose_memory_has_other_columns_are_copied() -> None:
    whole = pa.py_buffer(np.arange(3 * ROWS))
    is_same, memory = kept(batch(pa.Array.from_buffers(pa.int64(), ROWS, [None, whole.slice(SIZE, SIZE)])))
    assert not is_same
    assert SIZE <= memory < 1.1 * SIZE


def test_rows_on_disk_come_before_those_in_memory(tmp_path: Path) -> None:
    rows = BufferedRows(SCHEMA)
    for start in range(3):
        rows.add(batch(numbers(np.arange(start, ROWS, 3))))
        if start < 2:
            assert rows.spill(tmp_path) > 0
    expected = np.concatenate([np.arange(start, ROWS, 3) for start in range(3)])
    [column] = rows.take().column("a").chunks
    assert column.equals(numbers(expected))
