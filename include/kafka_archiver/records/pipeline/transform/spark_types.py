"""Decoded columns as Spark takes them, and the types of what Spark makes. Knows no Spark.

Spark has no unsigned numbers, times, UUIDs, nor moments of nanoseconds: wider numbers, and text as JSON lines have it.
"""

import json
import re
from typing import Any

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.formats.parquet import ParquetOptions
from kafka_archiver.records.formats.parquet.spark import as_readable, written
from kafka_archiver.records.formats.shared.plain_types import bare, plain, rebuilt, seen_as

_OPTIONS = ParquetOptions(readers="spark")
_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.timestamp("ms"): pa.timestamp("us"),
    pa.timestamp("ms", "UTC"): pa.timestamp("us", "UTC"),
}
# Spark's names of types that are not nested.
_NAMES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(), "byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"), "void": pa.string(),
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


class ForSpark:
    """A decoded column for Spark. :param field: the decoder's."""

    def __init__(self, field: pa.Field) -> None:
        self._plain = pa.schema([plain(field).with_name(field.name).with_nullable(True)])
        self._text = written(self._plain, _OPTIONS)
        self.field = _wider(_nullable(self._text.field(0))).remove_metadata()

    def array(self, column: pa.Array) -> pa.Array:
        """The column.

        :raises ValueError: Spark cannot have one of its values.
        """
        cast = column.cast(bare(self._plain).field(0).type)
        batch = seen_as(pa.record_batch([cast], schema=bare(self._plain)), self._plain)
        return as_readable(batch, self._plain, self._text).column(0).cast(self.field.type)


def _wider(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_fixed_size_binary(kind):
        return field.with_type(pa.binary())
    if pa.types.is_decimal256(kind):
        return field.with_type(pa.decimal128(kind.precision, kind.scale))
    return field.with_type(_WIDER.get(kind) or rebuilt(kind, _wider) or kind)


def _nullable(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_map(kind):
        # A key is never null.
        kind = pa.map_(_nullable(kind.key_field).with_nullable(False), _nullable(kind.item_field))
    else:
        kind = rebuilt(kind, _nullable) or kind
    return pa.field(field.name, kind)


def spelt(kind: pa.DataType) -> Any:
    """A type of `ForSpark` as Spark's JSON."""
    if pa.types.is_struct(kind):
        fields = [{"name": f.name, "type": spelt(f.type), "nullable": True, "metadata": {}} for f in kind]
        return {"type": "struct", "fields": fields}
    if pa.types.is_map(kind):
        return {"type": "map", "keyType": spelt(kind.key_type), "valueType": spelt(kind.item_type),
                "valueContainsNull": True}  # fmt: skip
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": spelt(kind.value_type), "containsNull": True}
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return next(name for name, arrow_type in _NAMES.items() if arrow_type == kind)


def field_of(text: str) -> pa.Field:
    """The field of values of a type, which is Spark's JSON.

    :raises ConfigError: objects have no such type.
    """
    return pa.field("value", _kind(json.loads(text), "value"))


def _kind(text: Any, name: str) -> pa.DataType:
    if isinstance(text, str):
        decimal = _DECIMAL.fullmatch(text)
        if decimal:
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        if text not in _NAMES:
            raise ConfigError(
                f"transform: {name} is of Spark's type {text}, which objects do not have; cast it, as to string"
            )
        return _NAMES[text]
    if text["type"] == "struct":
        return pa.struct([pa.field(member["name"], _kind(member["type"], member["name"])) for member in text["fields"]])
    if text["type"] == "array":
        return pa.list_(_kind(text["elementType"], f"{name}[]"))
    if text["type"] == "map":
        return pa.map_(_kind(text["keyType"], name), _kind(text["valueType"], name))
    raise ConfigError(f"transform: {name} is of Spark's type {text['type']}, which objects do not have; cast it")
