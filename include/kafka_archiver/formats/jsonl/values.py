"""Lines of `content: value`: one value a line, as vectors; Python sees only values that need a second look."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.formats.base import Buffer, Target
from kafka_archiver.formats.decoding import check_values, refuse
from kafka_archiver.formats.json_text import is_json
from kafka_archiver.formats.vectors import Int64s, large_binary

_NEWLINE, _RETURN, _SPACE = b"\n\r "
# Counting in pieces that fit the CPU's cache is twice as fast.
_PIECE = 128 << 10
_TWO_LINES = (
    "the value contains a newline or a carriage return and is not JSON, so it cannot be one line; "
    "set `store.content: record`, or another `store.format`"
)
_NOTHING, _LINE_END, _NULL = map(large_binary, (b"", b"\n", b"null"))

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def value_lines(batch: pa.RecordBatch, target: Target) -> Buffer:
    """One line a record: the value, `null` for a null value, nothing for an empty one.

    Newlines and carriage returns in a JSON value can only be white space between tokens; each becomes a space. For
    readers of text either ends a line.

    :raises BadRecordError: a value with one is not JSON, or one is not what `check_values` demands.
    """
    # Large, so that the joined lines cannot be too big for their positions.
    values = batch.column("value").cast(pa.large_binary())
    check_values(batch, target)
    is_plain = _least_byte(values) > max(_NEWLINE, _RETURN)
    lines = pc.binary_join_element_wise(values, _NOTHING, _LINE_END, null_handling="replace", null_replacement=b"null")
    _, positions, data = lines.buffers()
    ends = np.frombuffer(positions, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if len(lines) else np.empty(0, np.uint8)
    if not is_plain and _count(text) != len(lines):
        text = _on_one_line_each(text, ends[1:] - ends[0] - 1, batch, target)
    return text.data


def _least_byte(values: pa.LargeBinaryArray) -> int:
    """The smallest byte of all values: found in a fifth of the time that counting line breaks takes."""
    _, positions, data = values.buffers()
    ends = np.frombuffer(positions, np.int64)[values.offset : values.offset + len(values) + 1]
    return int(np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].min(initial=255)) if data else 255


def _count(text: Bytes) -> int:
    """How many line breaks there are."""
    return sum(int(np.count_nonzero(_breaks(text[i : i + _PIECE]))) for i in range(0, len(text), _PIECE))


def _breaks(text: Bytes) -> Mask:
    """The bytes with which a line may end."""
    either: Mask = (text == _NEWLINE) | (text == _RETURN)
    return either


def _on_one_line_each(text: Bytes, ends: Int64s, batch: pa.RecordBatch, target: Target) -> Bytes:
    """The lines with the breaks inside them replaced; `ends` are the positions of those that end them."""
    breaks = np.flatnonzero(_breaks(text))
    rows = np.unique(np.searchsorted(ends, breaks[~np.isin(breaks, ends, assume_unique=True)]))
    text = text.copy()
    bad = []
    for row in rows.tolist():
        line = text[ends[row - 1] + 1 if row else 0 : ends[row]]
        if is_json(line.tobytes()):
            line[_breaks(line)] = _SPACE
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
