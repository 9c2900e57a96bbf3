"""`readers: spark`: columns of types that Spark's reader refuses are text, as JSON lines has it. Pure.

Spark finds no schema in a file with a UUID, a time, a timestamp of nanoseconds, or a decimal of more than 38 digits.
"""

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.formats.parquet import ParquetOptions
from kafka_archiver.records.formats.shared import texts
from kafka_archiver.records.formats.shared.plain_types import bare, rebuilt, seen_as
from kafka_archiver.records.vectors import entries, joined

_MOST_DIGITS = 38
_NUMBER = re.compile(r"-?\d+")
# Changes values that are not nested; the second argument is the type of the object's schema.
_Change = Callable[[pa.Array, pa.DataType], pa.Array]


def written(schema: pa.Schema, options: ParquetOptions) -> pa.Schema:
    """The columns of a file for those of an object."""
    return pa.schema(map(_readable, schema), schema.metadata) if options.readers == "spark" else schema


def as_readable(batch: pa.RecordBatch, schema: pa.Schema, stored_schema: pa.Schema) -> pa.RecordBatch:
    """The batch with text for what Spark refuses.

    :param schema: has the types that the batch's columns are of; `stored_schema`: the schema of the result.
    """
    columns = [_changed(batch.column(field.name), schema.field(field.name), _text) for field in stored_schema]
    return _batch(columns, stored_schema)


def as_before(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch of a file with the types of the object's schema again.

    :raises ValueError: a text is not one of its type.
    """
    columns = [_changed(batch.column(field.name), field, _value) for field in schema]
    return seen_as(_batch(columns, bare(schema)), schema)


def _is_refused(kind: pa.DataType) -> bool:
    return (
        kind == pa.uuid()
        or bool(pa.types.is_time(kind))
        or (pa.types.is_timestamp(kind) and kind.unit == "ns")
        or (pa.types.is_decimal(kind) and kind.precision > _MOST_DIGITS)
    )


def _readable(field: pa.Field) -> pa.Field:
    if _is_refused(field.type):
        return field.with_type(pa.string())
    return field.with_type(rebuilt(field.type, _readable) or field.type)


def _changed(values: pa.Array, field: pa.Field, change: _Change) -> pa.Array:
    """The values with what Spark refuses changed, however deep it is. `field`: of the object's schema.

    A field that is required has no nulls, also where what is around it is null.
    """
    kind = field.type
    if _is_refused(kind):
        changed_values = change(values, kind)
        return changed_values if field.nullable else _required(changed_values)
    if not _is_changed(field):
        return values
    # Arrow may hold anything in the place of a null, so nested values are taken without it.
    nulls = values.is_null() if field.nullable else None
    if pa.types.is_struct(kind):
        children = [
            _changed(part, member, change) if _is_changed(member) else values.field(place)
            for place, (part, member) in enumerate(zip(values.flatten(), kind, strict=True))
        ]
        fields = [f.with_type(c.type) for c, f in zip(children, kind, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=nulls)
    if pa.types.is_map(kind):
        rows = entries(values)
        keys, items = rows.flatten().flatten()
        return pa.MapArray.from_arrays(_ends(rows), keys, _changed(items, kind.item_field, change), mask=nulls)
    return pa.ListArray.from_arrays(_ends(values), _changed(values.flatten(), kind.value_field, change), mask=nulls)


def _is_changed(field: pa.Field) -> bool:
    return bool(_readable(field).type != field.type)


def _required(values: pa.Array) -> pa.Array:
    """Values that are not nested, with what lies in the place of a null."""
    _, *buffers = values.buffers()
    return pa.Array.from_buffers(values.type, len(values), [None, *buffers], offset=values.offset)


def _ends(lists: pa.Array) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lists.value_lengths().fill_null(0))]), pa.int32())


def _text(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind == pa.uuid():
        text = texts.uuids(values)
    elif pa.types.is_decimal(kind):
        text = texts.decimals(values)
    else:
        text = _moments(values) if pa.types.is_timestamp(kind) else texts.spelt(values)
    return text.cast(pa.string())


def _moments(values: pa.Array) -> pa.Array:
    text = joined(len(values), texts.moments(values, b"T", b"", b""))
    return pc.if_else(values.is_valid(), text, None)


def _value(values: pa.Array, kind: pa.DataType) -> pa.Array:
    # Imported late: writing does not need it.
    from kafka_archiver.records.formats.jsonl.typed_reader import leaf

    parse = leaf(kind)
    assert parse, "every refused type has one"
    is_moment = pa.types.is_timestamp(kind)

    def parsed(text: str) -> object:
        # A moment within the first second that nanoseconds have, in the year 1677, is its number.
        return int(text) if is_moment and _NUMBER.fullmatch(text) else parse(text)

    parsed_values = [None if text is None else parsed(text) for text in values.to_pylist()]
    return pa.array(parsed_values, bare(pa.schema([("", kind)])).types[0])


def _batch(columns: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    cast = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)
