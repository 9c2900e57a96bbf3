"""Plans how the bytes of a writer's schema become the columns of the schema that the run writes.

`nodes` and `nested` read the values, and raise what is wrong with one.

https://avro.apache.org/docs/1.12.0/specification/#schema-resolution
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kafka_archiver.records.avro import types
from kafka_archiver.records.avro.defaults import default
from kafka_archiver.records.avro.nested import Array, AvroMap, AvroRecord, Branch, Union
from kafka_archiver.records.avro.nodes import (
    AvroDecimals,
    AvroNode,
    AvroText,
    Boolean,
    Enum,
    Fixed,
    Integer,
    Null,
    Real,
    RefusedType,
)
from kafka_archiver.records.avro.schema import Type
from kafka_archiver.records.avro.uuids import Uuids

_INT, _LONG = (-(1 << 31), (1 << 31) - 1), (-(1 << 63), (1 << 63) - 1)
_BOUNDS = {"time-millis": (0, 86_400_000 - 1), "time-micros": (0, 86_400_000_000 - 1)}
# What each of the writer's types may become.
_PROMOTIONS: Mapping[str, tuple[str, ...]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


class MismatchError(Exception):
    """The writer's schema does not fit. The message says where and why."""


def resolve(writer: Type, reader: Type) -> AvroNode:
    """Return the reader of the writer's bytes as the reader's column.

    :raises MismatchError: no record of the writer fits.
    """
    if writer.kind == "union":
        return _union(writer, reader)
    if reader.kind == "union":
        return _branch(writer, reader)
    if writer.kind == reader.kind == "record":
        return _record(writer, reader)
    if writer.kind == reader.kind and writer.kind in ("array", "map"):
        item = resolve(writer.parts[0], reader.parts[0])
        if writer.kind == "map":
            return AvroMap(types.arrow(reader), item)
        return Array(types.arrow(reader), item, no_bytes=_takes_no_bytes(writer.parts[0]))
    if writer.kind == reader.kind == "enum":
        return _enum(writer, reader)
    return _plain(writer, reader)


def _plain(writer: Type, reader: Type) -> AvroNode:
    if writer.kind != reader.kind and reader.kind not in _PROMOTIONS.get(writer.kind, ()):
        raise MismatchError(f"found {writer}, expected {reader}")
    kind = types.arrow(reader)
    if writer.logical and reader.logical and _meaning(writer) != _meaning(reader):
        raise MismatchError(f"found {_meaning(writer)}, expected {_meaning(reader)}")
    size = writer.definition.get("size")
    if writer.kind == "fixed" and (size != reader.definition["size"] or not _same_name(writer, reader)):
        raise MismatchError(f"found fixed {writer} of {size} bytes, expected {reader} of {reader.definition['size']}")
    if pa.types.is_decimal(kind):
        return AvroDecimals(kind, size)
    if writer.kind in ("int", "long"):
        return Integer(kind, _BOUNDS.get(reader.logical, _INT if writer.kind == "int" else _LONG))
    if writer.kind in ("float", "double"):
        return Real(kind, 4 if writer.kind == "float" else 8)
    if writer.kind in ("bytes", "string"):
        return Uuids() if reader.logical == "uuid" else AvroText(kind)
    return (
        Fixed(writer.definition["size"])
        if writer.kind == "fixed"
        else Boolean()
        if writer.kind == "boolean"
        else Null(kind)
    )


def _takes_no_bytes(avro: Type) -> bool:
    if avro.kind == "record":
        return all(map(_takes_no_bytes, avro.parts))
    return avro.kind == "null" or (avro.kind == "fixed" and avro.definition["size"] == 0)


def _meaning(avro: Type) -> str:
    """Return the meaning of a logical type's bytes."""
    if avro.logical == "decimal":
        return f"decimal({avro.definition['precision']}, {avro.definition.get('scale', 0)})"
    return avro.logical


def _same_name(writer: Type, reader: Type) -> bool:
    """Return True if the writer's name, without its namespace, is the reader's or one of its aliases."""
    short = writer.name.rpartition(".")[2]
    return writer.name in reader.names or short == reader.name.rpartition(".")[2]


def _enum(writer: Type, reader: Type) -> AvroNode:
    if not _same_name(writer, reader):
        raise MismatchError(f"found enum {writer}, expected {reader}")
    known, names = set(reader.definition["symbols"]), writer.definition["symbols"]
    fallback = reader.definition.get("default")
    if not names:
        raise MismatchError(f"enum {writer} has no symbols")
    return Enum([name if name in known else fallback for name in names], names)


def _record(writer: Type, reader: Type) -> AvroNode:
    if not _same_name(writer, reader):
        raise MismatchError(f"found record {writer}, expected {reader}")
    kind = types.arrow(reader)
    own = {field["name"]: place for place, (field, _) in enumerate(reader.fields)}
    aliases = {alias: place for place, (field, _) in enumerate(reader.fields) for alias in field.get("aliases", ())}
    # A field that the writer has by its name is not also another one by its alias.
    named = {own[field["name"]] for field, _ in writer.fields if field["name"] in own}
    places = {alias: place for alias, place in aliases.items() if place not in named} | own
    parts: list[tuple[str, AvroNode, int | None]] = []
    taken: set[int] = set()
    for field, avro in writer.fields:
        name = field["name"]
        field_place = places.get(name)
        if field_place is None or field_place in taken:
            parts.append((name, resolve(avro, avro), None))
            continue
        taken.add(field_place)
        try:
            parts.append((name, resolve(avro, reader.parts[field_place]), field_place))
        except MismatchError as error:
            raise MismatchError(f"field {name}: {error}") from None
    defaults: dict[int, Any] = {}
    for place, (field, avro) in enumerate(reader.fields):
        if place not in taken:
            if "default" not in field:
                raise MismatchError(f"field {field['name']} is missing and has no default")
            try:
                defaults[place] = default(avro, field["default"])
                pa.array([defaults[place]], kind[place].type)
            except (ValueError, LookupError, TypeError, OverflowError) as error:
                raise MismatchError(f"the default of field {field['name']}: {error}") from None
    return AvroRecord(kind, parts, defaults)


def _union(writer: Type, reader: Type) -> AvroNode:
    """Each branch of the writer as what it becomes. A branch that does not fit refuses the records that have it."""
    kind, is_struct = types.arrow(reader), _is_struct(reader)
    branches: list[tuple[AvroNode, int | None]] = []
    errors = []
    for branch in writer.parts:
        place: int | None = 0
        try:
            if reader.kind == "union":
                place, node = _target(branch, reader)
            else:
                node = resolve(branch, reader)
        except MismatchError as error:
            errors.append(str(error))
            node = RefusedType(kind, f"a union's branch does not fit the schema that the run writes: {error}")
            place = None
        branches.append((node, place))
    if len(errors) == len(branches):
        raise MismatchError(errors[0] if errors else "the union has no branches")
    return Union(kind, branches, is_struct)


def _branch(writer: Type, reader: Type) -> AvroNode:
    kind, (place, node) = types.arrow(reader), _target(writer, reader)
    if place is None:
        return Null(kind)
    return Branch(kind, node, place) if _is_struct(reader) else node


def _is_struct(reader: Type) -> bool:
    return types.without_null(reader).kind == "union"


def _target(writer: Type, reader: Type) -> tuple[int | None, AvroNode]:
    """The reader's branch for this type: the first of the same type, else the first that it fits.

    :return: the branch's place in the struct of the branches, None for null; and what reads the type as this branch.
    """
    fitting: list[tuple[Type, int | None, AvroNode]] = []
    value_branches = 0
    for branch in reader.parts:
        place = None if branch.kind == "null" else value_branches
        value_branches += branch.kind != "null"
        try:
            node = resolve(writer, branch)
        except MismatchError:
            continue
        if branch.kind == writer.kind and branch.name == writer.name:
            return place, node
        fitting.append((branch, place, node))
    if not fitting:
        raise MismatchError(f"found {writer}, expected one of {', '.join(map(str, reader.parts))}")
    _, place, node = next((fit for fit in fitting if fit[0].kind == writer.kind), fitting[0])
    return place, node
