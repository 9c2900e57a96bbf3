"""Lines of `content: value`: one value a line, as vectors; Python sees only values that need a second look."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.formats.base import Buffer, Target
from kafka_archiver.formats.decoding import check_values, is_json, refuse
from kafka_archiver.formats.vectors import Int64s, large_binary

_NEWLINE, _RETURN, _SPACE = b"\n\r "
# Counting in pieces that fit the CPU's cache is twice as fast.
_PIECE = 128 << 10
_TWO_LINES = (
    "the value contains a newline and is not JSON, so it cannot be one line; "
    "set `store.content: record`, or another `store.format`"
)
_NOTHING, _LINE_END, _NULL = map(large_binary, (b"", b"\n", b"null"))

Bytes = npt.NDArray[np.uint8]


def value_lines(batch: pa.RecordBatch, target: Target) -> Buffer:
    """One line a record: the value, `null` for a null value, nothing for an empty one.

    Newlines inside a JSON value can only be white space between tokens; each becomes a space.

    :raises BadRecordError: a value with a newline is not JSON, or one is not what `check_values` demands.
    """
    # Large, so that the joined lines cannot be too big for their positions.
    values = batch.column("value").cast(pa.large_binary())
    check_values(batch, target)
    lines = pc.binary_join_element_wise(values, _NOTHING, _LINE_END, null_handling="replace", null_replacement=b"null")
    _, positions, data = lines.buffers()
    ends = np.frombuffer(positions, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if len(lines) else np.empty(0, np.uint8)
    if _newlines(text) != len(lines):
        text = _on_one_line_each(text, ends[1:] - ends[0] - 1, batch, target)
    return text.data


def _newlines(text: Bytes) -> int:
    return sum(int(np.count_nonzero(text[i : i + _PIECE] == _NEWLINE)) for i in range(0, len(text), _PIECE))


def _on_one_line_each(text: Bytes, ends: Int64s, batch: pa.RecordBatch, target: Target) -> Bytes:
    """The lines with the newlines inside them replaced; `ends` are the positions of those that end them."""
    newlines = np.flatnonzero(text == _NEWLINE)
    rows = np.unique(np.searchsorted(ends, newlines[~np.isin(newlines, ends, assume_unique=True)]))
    text = text.copy()
    bad = []
    for row in rows.tolist():
        line = text[ends[row - 1] + 1 if row else 0 : ends[row]]
        if is_json(line.tobytes()):
            line[(line == _NEWLINE) | (line == _RETURN)] = _SPACE
        else:
            bad.append(row)
    refuse(batch, target, dict.fromkeys(bad, _TWO_LINES))
    return text


def values_of(lines: bytes) -> pa.RecordBatch:
    """The column `value` back: whole lines, each ending in a newline. The line `null` is a null value."""
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == _NEWLINE) + 1
    positions = np.concatenate([[0], ends]).astype(np.int64)
    whole = pa.Array.from_buffers(pa.large_binary(), len(ends), [None, pa.py_buffer(positions), pa.py_buffer(lines)])
    values = pc.binary_slice(whole, 0, -1)
    is_null = pc.equal(values, _NULL)
    return pa.record_batch(
        [pc.if_else(is_null, pa.scalar(None, pa.large_binary()), values).cast(pa.binary())], ["value"]
    )
