"""Lines of `content: value`: one value a line, as vectors. Only values with line breaks become Python objects."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.formats.base import Buffer, Rejections
from kafka_archiver.records.json_grammar import is_json
from kafka_archiver.records.vectors import ByteArray, Mask, large_binaries, large_binary, text_of
from kafka_archiver.values.columns import Int64s

_NEWLINE, _RETURN, _SPACE = b"\n\r "
# Pieces that fit the CPU's cache make the search twice as fast.
_PIECE = 128 << 10
_TWO_LINES = (
    "the value contains a newline or a carriage return and is not JSON, so it cannot be one line; "
    "set `store.content: record`, or another `store.format`"
)
_LINE_END, _NULL = map(large_binary, (b"\n", b"null"))


def value_lines(batch: pa.RecordBatch) -> Buffer:
    """One line a record: the value, or `null` for a null value. `one_line_each` has removed line breaks in values."""
    values = batch.column("value")
    if values.null_count:
        values = pc.fill_null(values.cast(pa.large_binary()), _NULL)
    text, ends = text_of(values)
    # All values and an empty one, joined as one list: a quarter of the CPU of joining each value with its line end.
    # large_binary: the joined lines may exceed 32-bit offsets.
    ended = large_binaries(np.append(ends, ends[-1]) - ends[0], text)
    whole = pa.Array.from_buffers(pa.int32(), 2, [None, pa.py_buffer(np.array([0, len(ended)], np.int32))])
    lines, _ = text_of(pc.binary_join(pa.ListArray.from_arrays(whole, ended), _LINE_END))
    return lines.data


def one_line_each(batch: pa.RecordBatch, marks: Rejections) -> pa.RecordBatch:
    """Remove line breaks from values.

    A newline or a carriage return ends a line for readers of text. In JSON either can only be white space between
    tokens, so it becomes a space. A value that has one and is not JSON is rejected.
    """
    values = batch.column("value")
    text, ends = text_of(values)
    # Five times as fast as the search for line breaks.
    if text.min(initial=255) > max(_NEWLINE, _RETURN):
        return batch
    breaks = _places(text)
    if not len(breaks):
        return batch
    text, ends = text.copy(), ends - ends[0]
    bad = []
    for row in np.unique(np.searchsorted(ends[1:], breaks, side="right")).tolist():
        value = text[ends[row] : ends[row + 1]]
        if is_json(value.tobytes()):
            value[_breaks(value)] = _SPACE
        # Arrow may hold anything in the place of a null.
        elif values[row].is_valid:
            bad.append(row)
    offsets = batch.column("offset")
    marks.reject({offsets[row].as_py(): _TWO_LINES for row in bad})
    column = batch.schema.get_field_index("value")
    return batch.set_column(column, batch.schema.field(column), _with_text(values, text, ends))


def _with_text(values: pa.Array, text: ByteArray, ends: Int64s) -> pa.Array:
    """The same array with other bytes."""
    nulls = values.buffers()[0]
    if nulls is not None:
        bits = np.unpackbits(np.frombuffer(nulls, np.uint8), bitorder="little")
        nulls = pa.py_buffer(np.packbits(bits[values.offset : values.offset + len(values)], bitorder="little"))
    return pa.Array.from_buffers(values.type, len(values), [nulls, pa.py_buffer(ends), pa.py_buffer(text)])


def _places(text: ByteArray) -> Int64s:
    """The positions of the line breaks."""
    pieces = [np.flatnonzero(_breaks(text[i : i + _PIECE])) + i for i in range(0, len(text), _PIECE)]
    return np.concatenate(pieces)


def _breaks(text: ByteArray) -> Mask:
    """True for each newline and carriage return."""
    either: Mask = (text == _NEWLINE) | (text == _RETURN)
    return either


def values_of(lines: bytes) -> pa.RecordBatch:
    """The column `value` of complete lines, each ending in a newline. The line `null` is a null value."""
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == _NEWLINE) + 1
    positions = np.concatenate([[0], ends]).astype(np.int64)
    whole = pa.Array.from_buffers(pa.large_binary(), len(ends), [None, pa.py_buffer(positions), pa.py_buffer(lines)])
    values = pc.binary_slice(whole, 0, -1)
    is_null = pc.equal(values, _NULL)
    return pa.record_batch(
        [pc.if_else(is_null, pa.scalar(None, pa.large_binary()), values).cast(pa.binary())], ["value"]
    )
