"""`google.protobuf.Struct`, `Value` and `ListValue` as JSON text: they contain themselves, so they have no columns.

In the place of each stands a message of one level, whose deeper ones are bytes. Its entries are repeated, so a Struct
or ListValue that the bytes have twice is merged, as Protobuf says; of a Value with two Structs, the last one counts.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, OneofDescriptorProto
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import ListValue, Struct, Value

from kafka_archiver.records.decode.protobuf.frames import varint

NAMES = ("Struct", "Value", "ListValue")
_F = FieldDescriptorProto
# Of a Value, by their numbers: null is an enum, which is a number on the wire.
_KINDS = {
    "null_value": _F.TYPE_INT32,
    "number_value": _F.TYPE_DOUBLE,
    "string_value": _F.TYPE_STRING,
    "bool_value": _F.TYPE_BOOL,
    "struct_value": _F.TYPE_BYTES,
    "list_value": _F.TYPE_BYTES,
}


def definitions() -> list[DescriptorProto]:
    """Return the messages of one level."""
    kinds = [
        _F(name=name, number=number, type=kind, label=_F.LABEL_OPTIONAL, oneof_index=0)
        for number, (name, kind) in enumerate(_KINDS.items(), start=1)
    ]
    return [
        DescriptorProto(name="Struct", field=[_repeated("fields")]),
        DescriptorProto(name="ListValue", field=[_repeated("values")]),
        DescriptorProto(name="Value", field=kinds, oneof_decl=[OneofDescriptorProto(name="kind")]),
    ]


def _repeated(name: str) -> FieldDescriptorProto:
    return _F(name=name, number=1, type=_F.TYPE_BYTES, label=_F.LABEL_REPEATED)


def json_texts(array: pa.StructArray) -> pa.Array:
    """Return the JSON text of each message of one level. Names are sorted, as a Struct has no order.

    :raises ValueError: the bytes are no such message.
    """
    names = {field.name for field in array.type}
    read: Callable[[Mapping[str, Any]], Any] = (
        _struct_row if "fields" in names else _list_row if "values" in names else _value_row
    )
    try:
        plain = [None if row is None else read(row) for row in array.to_pylist()]
    except DecodeError as error:
        raise ValueError(f"the bytes do not fit their Protobuf message: {error}") from None
    texts = [None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True) for value in plain]
    return pa.array(texts, pa.string())


def _again(parts: list[bytes]) -> bytes:
    """Return the message of these entries."""
    return b"".join(b"\x0a" + varint(len(part)) + part for part in parts)


def _struct_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return _members(Struct.FromString(_again(row["fields"])))


def _list_row(row: Mapping[str, Any]) -> list[Any]:
    return _items(ListValue.FromString(_again(row["values"])))


def _value_row(row: Mapping[str, Any]) -> Any:
    if row["struct_value"] is not None:
        return _members(Struct.FromString(row["struct_value"]))
    if row["list_value"] is not None:
        return _items(ListValue.FromString(row["list_value"]))
    values = (row[name] for name in ("number_value", "string_value", "bool_value"))
    return _number(next((value for value in values if value is not None), None))


def _members(struct: Struct) -> dict[str, Any]:
    return {name: _plain(value) for name, value in struct.fields.items()}


def _items(listed: ListValue) -> list[Any]:
    return [_plain(value) for value in listed.values]


def _plain(value: Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _members(value.struct_value)
    if kind == "list_value":
        return _items(value.list_value)
    return None if kind in (None, "null_value") else _number(getattr(value, kind))


def _number(value: Any) -> Any:
    """Return a number as JSON has it: NaN and infinities as text, as elsewhere in lines."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
