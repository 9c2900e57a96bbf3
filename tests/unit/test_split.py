"""Batches joined before they are parted by hour; what becomes of them: tests/unit/test_writer_chunk.py."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.records import vectors
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.records.writer.split import joined

# A record's bytes.
SIZE = 100


@given(st.integers(0, 1 << 45))
def test_what_is_joined_fits_one_array_however_much_memory_there_is(memory: int) -> None:
    # Less than twice a block, as the next test has it.
    assert 2 * Limits(memory_bytes=memory).block_bytes - 1 <= vectors.MOST


@given(st.lists(st.integers(1, 30), max_size=20))
def test_small_batches_are_joined_and_a_large_one_is_joined_with_nothing(rows: list[int]) -> None:
    """Two of a gigabyte each would be more than one array can hold."""
    parts = [pa.RecordBatch.from_pydict({"value": pa.array([b"%096d" % n] * n)}) for n in rows]
    limit = 10 * SIZE
    batches = list(joined(parts, limit))
    assert [v for b in batches for v in b.column("value").to_pylist()] == [b"%096d" % n for n in rows for _ in range(n)]
    alone = [part for part in parts if part.nbytes >= limit]
    assert all(any(batch.equals(part) for batch in batches) for part in alone)
    assert all(batch.nbytes < 2 * limit for batch in batches if not any(batch.equals(part) for part in alone))
