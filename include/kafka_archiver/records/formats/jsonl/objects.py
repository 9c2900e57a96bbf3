"""Lines of JSON objects: one object a record, a key a column, made column by column.

Kafka's columns are those of `content: record`. In decoded columns numbers keep their digits, text is text, and what
JSON has no type for is a string: decimals, NaN and Infinity, bytes (base64), UUIDs, dates, times and timestamps (ISO
8601, with Z for an instant). A date or timestamp outside the years 1 to 9999 is its number. A map is an object. Columns
that a decoder has kept as JSON text (`JSON` in a field's metadata) are that JSON.
"""

from collections.abc import Callable, Iterator

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.formats.base import PLACE, VALUE, Buffer, Target
from kafka_archiver.records.formats.jsonl.values import value_lines
from kafka_archiver.records.formats.shared import texts
from kafka_archiver.records.formats.shared.compress import Pieces
from kafka_archiver.records.formats.shared.records import encoder_schema, kafkas, normalised, some_rows
from kafka_archiver.records.formats.shared.utf8 import is_binary, utf8_and_others
from kafka_archiver.records.vectors import (
    Piece,
    entries,
    grouped,
    joined,
    large_binaries,
    large_binary,
    numbers,
    spread,
    text_of,
    valid,
    wrapped,
)
from kafka_archiver.values.columns import Int64s

# In a field's metadata: `number` or `any`, a string that is JSON itself.
JSON = b"json"
_QUOTE, _NULL = b'"', b"null"
# A line break in JSON can only be white space between tokens.
_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
# Changes pieces.
Within = Callable[[list[Piece]], list[Piece]]


def object_lines(batch: pa.RecordBatch, target: Target) -> Iterator[Buffer]:
    """One line a record, some records at a time: of decoded records, `content: record` and dead letters."""
    place = dict(zip(PLACE, (target.topic, target.partition), strict=True))
    for some in some_rows(normalised(batch, encoder_schema(target.schema))):
        pieces: list[Piece] = []
        for field in target.schema:
            pieces.append(b"," if pieces else b"{")
            kafka = kafkas(field)
            if kafka in PLACE:
                pieces += [_name(field.name), orjson.dumps(place[kafka])]
            elif kafka in ("key", "value"):
                pieces += _bytes(field.name, some.column(field.name))
            elif kafka == "headers":
                pieces += [_name(field.name), *headers(some.column(field.name))]
            else:
                pieces += [_name(field.name), *column(some.column(field.name), field)]
        text, _ = text_of(joined(some.num_rows, [*pieces, b"}\n"]))
        yield text.data


def _name(name: str) -> bytes:
    return orjson.dumps(name) + b":"


def _bytes(name: str, values: pa.Array) -> list[Piece]:
    """The name and the value of bytes: UTF-8 is text; other bytes are base64, under the longer name."""
    short, long = _name(name), _name(f"{name}_base64")
    text, binary_rows = utf8_and_others(values)
    if binary_rows.null_count == len(binary_rows):
        return [short, *_quoted(texts.escaped(text))]
    binary = texts.in_base64(binary_rows)
    if text.null_count == len(text) and not binary_rows.null_count:
        return [long, *_quoted(binary)]
    either = pc.coalesce(binary, texts.escaped(text))
    return [pc.if_else(binary_rows.is_valid(), large_binary(long), large_binary(short)), *_quoted(either)]


def headers(values: pa.Array, within: Within = list) -> list[Piece]:
    """The pieces of lists of headers.

    :param within: as of `column`.
    """
    keys, items = values.flatten().flatten()
    pairs = [b'{"key":', *_quoted(texts.escaped(keys.cast(pa.large_binary()))), b",", *_bytes("value", items), b"}"]
    return _items(values.value_lengths().fill_null(0).to_numpy(), b"[", within(pairs), b"]")


def column(values: pa.Array, field: pa.Field, within: Within = list) -> list[Piece]:
    """The pieces of a column.

    :param field: by the schema; UUIDs are 16 bytes in `values`.
    :param within: changes pieces, for JSON within another format. It never gets the same bytes twice.
    """
    if not pa.types.is_nested(field.type):
        return within(_leaf(values, field))
    present = valid(values)
    if present is None:
        return _nested(values, field.type, within)
    # Without the nulls: Arrow may hold anything in the place of a null.
    whole = joined(int(present.sum()), _nested(values.drop_null(), field.type, within))
    return [spread(whole, present).fill_null(large_binary(_NULL))]


def _nested(values: pa.Array, kind: pa.DataType, within: Within) -> list[Piece]:
    """The pieces of values of which none is null."""
    if pa.types.is_struct(kind):
        pieces: list[Piece] = []
        for child, array in zip(kind, values.flatten(), strict=True):
            pieces += [b"," if pieces else b"{", *within([_name(child.name)]), *column(array, child, within)]
        return [*pieces, b"}"]
    if pa.types.is_map(kind):
        keys, items, counts = _last_of_each(values)
        names = within([_QUOTE, texts.escaped(texts.spelt(keys)), b'":'])
        return _items(counts, b"{", [*names, *column(items, kind.item_field, within)], b"}")
    return _items(values.value_lengths().to_numpy(), b"[", column(values.flatten(), kind.value_field, within), b"]")


def _items(counts: Int64s, before: bytes, pieces: list[Piece], after: bytes) -> list[Piece]:
    """The items of each record, with commas between them."""
    # A comma before every item; the first one of a record becomes `before`, in memory that nobody else has yet.
    items, empty = joined(int(counts.sum()), [b",", *pieces]), counts == 0
    text, starts = text_of(items)
    text[starts[(np.cumsum(counts) - counts)[~empty]]] = before[0]
    listed = [grouped(items, counts), after]
    if not empty.any():
        return listed
    ends = np.concatenate([[0], np.cumsum(empty)])
    return [large_binaries(ends, np.full(ends[-1], before[0], np.uint8)), *listed]


def _leaf(values: pa.Array, field: pa.Field) -> list[Piece]:
    kind = field.type
    if JSON in (field.metadata or {}):
        text, ends = text_of(values)
        lines = text.tobytes().translate(_ONE_LINE)
        return _bare(large_binaries(ends - ends[0], pa.py_buffer(lines), valid(values)))
    if kind == pa.uuid():
        return _quoted(texts.uuids(values))
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return texts.moments(values, b"T", _QUOTE, _NULL)
    if pa.types.is_decimal(kind):
        return _quoted(texts.decimals(values))
    if pa.types.is_floating(kind):
        return _bare(_floats(values))
    if is_binary(kind):
        return _quoted(texts.in_base64(values))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(texts.escaped(values.cast(pa.large_binary())))
    return _quoted(texts.spelt(values)) if pa.types.is_time(kind) else _bare(texts.spelt(values))


def _floats(values: pa.Array) -> pa.Array:
    written = texts.floats(values)
    if pc.all(pc.is_finite(values)).as_py() in (True, None):
        return written
    names = {b'"NaN"': pc.is_nan(values)}
    names |= {b'"Infinity"': pc.equal(values, float("inf")), b'"-Infinity"': pc.equal(values, -float("inf"))}
    for name, where in names.items():
        written = pc.if_else(where, large_binary(name), written)
    return written


def _bare(text: pa.Array) -> list[Piece]:
    return wrapped(text, b"", b"", _NULL)


def _quoted(text: pa.Array) -> list[Piece]:
    return wrapped(text, _QUOTE, _QUOTE, _NULL)


def _last_of_each(maps: pa.Array) -> tuple[pa.Array, pa.Array, Int64s]:
    """Return all keys, all items and the number of pairs of each map, of which none is null.

    Of a key that a map has twice, the last item, in the place of the first.
    """
    pairs = entries(maps)
    keys, items = pairs.flatten().flatten()
    counts: Int64s = pairs.value_lengths().to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(len(maps)), counts)
    coded = keys.dictionary_encode()
    names = rows * max(1, len(coded.dictionary)) + coded.indices.to_numpy()
    ordered = np.sort(names)
    if not (ordered[1:] == ordered[:-1]).any():
        return keys, items, counts
    _, first = np.unique(names, return_index=True)
    _, from_end = np.unique(names[::-1], return_index=True)
    order = np.argsort(first)
    first, last = first[order], (len(names) - 1 - from_end)[order]
    return keys.take(numbers(first)), items.take(numbers(last)), np.bincount(rows[first], minlength=len(maps))


def lines_of(target: Target) -> Pieces:
    """The function that makes the lines of an object."""
    return (lambda batch, _: [value_lines(batch)]) if target.schema.equals(VALUE) else object_lines
