"""The Arrow types that every format with columns stores, and those that become one of them."""

from collections.abc import Callable
from functools import cache

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError

# In a field's metadata: uuid or duration, of bytes or text that Arrow keeps as they are.
LOGICAL = b"avro.logicalType"
_SAME: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_decimal128,
    pa.types.is_decimal256,
    pa.types.is_date32,
    pa.types.is_time,
    pa.types.is_timestamp,
    lambda kind: kind == pa.uuid(),
)
_BECOMES: dict[pa.DataType, pa.DataType] = {
    # Always null. Some readers of Parquet do not know the type.
    pa.null(): pa.string(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.json_(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.time32("ms"),
}
# Kinds of keys that have one spelling as the name in a JSON object.
_KEYS = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean)


def plain(field: pa.Field, name: str = "") -> pa.Field:
    """The field with the type that objects store; a batch's column is cast to it. Metadata stay.

    :param name: of the column, for the error.
    :raises ConfigError: there is no such type.
    """
    logical = (field.metadata or {}).get(LOGICAL)
    if field.type == pa.uuid().storage_type and logical == b"uuid":
        return field.with_type(pa.uuid())
    return field.with_type(_plain(field.type, name or field.name))


def _plain(kind: pa.DataType, name: str) -> pa.DataType:
    kind = _BECOMES.get(kind, kind)
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type, name)
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_timestamp(kind):
        # UTC: Parquet and Avro keep the instant, not the name of a zone.
        return pa.timestamp("ms" if kind.unit == "s" else kind.unit, tz=kind.tz and "UTC")
    if pa.types.is_decimal(kind) and not 0 <= kind.scale <= kind.precision:
        raise ConfigError(
            f"source.value.decode: no format has decimals of scale {kind.scale} and precision {kind.precision}, the "
            f"type of {name}; scales are from 0 to the precision"
        )
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_map(kind) and not any(of(_plain(kind.key_type, name)) for of in _KEYS):
        raise ConfigError(f"source.value.decode: no format has maps with keys of type {kind.key_type}, as in {name}")
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = pa.list_(kind.value_field)
    if pa.types.is_nested(kind):
        plain_kind = rebuilt(kind, lambda child: plain(child, f"{name}.{child.name}"))
        if plain_kind is not None:
            return plain_kind
    if not any(of(kind) for of in _SAME):
        raise ConfigError(f"source.value.decode: no format has a column of type {kind}, the type of {name}")
    return kind


def rebuilt(kind: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType | None:
    """A nested type with its fields changed; None for any other type."""
    if pa.types.is_map(kind):
        return pa.map_(change(kind.key_field), change(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(change(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(change(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(change(kind.value_field), kind.list_size)
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct(list(map(change, kind)))
    return None


@cache
def bare(schema: pa.Schema) -> pa.Schema:
    """The schema with UUIDs as 16 bytes: Arrow casts and spills these, but not its own type of UUIDs within lists."""
    return pa.schema(list(map(_bare, schema)), metadata=schema.metadata)


def _bare(field: pa.Field) -> pa.Field:
    if field.type == pa.uuid():
        return field.with_type(field.type.storage_type)
    return field.with_type(rebuilt(field.type, _bare) or field.type)


class _Seen:
    """The memory of a batch under another schema, by Arrow's interface for other libraries."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self._batch, self._schema = batch, schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._schema.__arrow_c_schema__(), self._batch.__arrow_c_array__()[1]


def seen_as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same memory with the types of a schema whose types have the same layout, as those of `bare` have."""
    return batch if batch.schema.equals(schema) else pa.record_batch(_Seen(batch, schema))
