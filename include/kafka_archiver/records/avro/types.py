"""Avro types as Arrow types."""

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from kafka_archiver.records.avro.schema import Type
from kafka_archiver.records.avro.uuids import Uuids
from kafka_archiver.records.fields import SET, field

_ARROW = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}
# Logical types that Arrow has no type for.
_KEPT = ("uuid", "duration")
# The digits of Arrow's decimals of 16 and of 32 bytes.
_DIGITS, _MOST_DIGITS = 38, 76


def arrow_field(name: str, avro: Type, doc: str = "") -> pa.Field:
    """The field of a type."""
    single = without_null(avro)
    symbols: Sequence[str] = single.definition["symbols"] if single.kind == "enum" else ()
    logical = single.logical if single.logical in _KEPT else ""
    kind = arrow(avro)
    avro_name = "" if kind == SET else single.name
    return field(name, kind, doc=doc or single.doc, symbols=symbols, avro_name=avro_name, avro_logicalType=logical)


def without_null(avro: Type) -> Type:
    """Return the union without null: its one branch, or a smaller union."""
    if avro.kind != "union":
        return avro
    branches = tuple(branch for branch in avro.parts if branch.kind != "null")
    return (branches or avro.parts)[0] if len(branches) < 2 else Type("union", avro.definition, branches)


def arrow(avro: Type) -> pa.DataType:
    """The Arrow type of a value that is not null."""
    avro = without_null(avro)
    if avro.logical == "decimal":
        precision, scale = avro.definition["precision"], avro.definition.get("scale", 0)
        if precision <= _DIGITS:
            return pa.decimal128(precision, scale)
        if precision <= _MOST_DIGITS:
            return pa.decimal256(precision, scale)
    if avro.kind == "fixed":
        return pa.binary(avro.definition["size"])
    if avro.logical == "uuid":
        return Uuids.kind
    if avro.kind == "record" and not avro.parts:
        return SET
    if avro.kind == "record":
        return pa.struct([arrow_field(f["name"], part, f.get("doc", "")) for f, part in avro.fields])
    if avro.kind == "array":
        return pa.list_(arrow_field("item", avro.parts[0]))
    if avro.kind == "map":
        return pa.map_(pa.string(), arrow_field("value", avro.parts[0]))
    if avro.kind == "union":
        names = branch_names(avro.parts)
        return pa.struct([arrow_field(name, part) for name, part in zip(names, avro.parts, strict=True)])
    return _ARROW.get(avro.logical) or _ARROW[avro.kind]


def branch_names(branches: Sequence[Type]) -> list[str]:
    """The name of each branch of a union: its type, or a record's name, with its namespace if two have the same."""
    short = [branch.name.rpartition(".")[2] or branch.kind for branch in branches]
    counts = Counter(short)
    return [name if counts[name] == 1 else branch.name or name for name, branch in zip(short, branches, strict=True)]
