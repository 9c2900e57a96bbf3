"""Tells whether the bytes of one message can be read as another message, without a wrong or a lost value.

Field numbers count, names do not. Fields that the reader does not have are left out.
https://protobuf.dev/programming-guides/proto3/#updating
"""

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kafka_archiver.records.decode.protobuf.types import is_map

_F = FieldDescriptor
# What each of the writer's types may become, besides itself.
_WIDER: dict[int, tuple[int, ...]] = {
    _F.TYPE_BOOL: (_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64),
    _F.TYPE_ENUM: (_F.TYPE_INT32, _F.TYPE_INT64),
    _F.TYPE_INT32: (_F.TYPE_INT64, _F.TYPE_ENUM),
    _F.TYPE_UINT32: (_F.TYPE_UINT64, _F.TYPE_INT64),
    _F.TYPE_SINT32: (_F.TYPE_SINT64,),
    _F.TYPE_STRING: (_F.TYPE_BYTES,),
    _F.TYPE_BYTES: (_F.TYPE_STRING,),
}


def misfit(writer: Descriptor, reader: Descriptor) -> str:
    """Return why the writer's message cannot be read as the reader's; empty if it can. Neither contains itself."""
    for number, writer_field in writer.fields_by_number.items():
        reader_field = reader.fields_by_number.get(number)
        if reader_field is not None and (why := _field(writer_field, reader_field)):
            return f"field {reader_field.name} ({number}): {why}"
    return ""


def _field(writer_field: FieldDescriptor, reader_field: FieldDescriptor) -> str:
    if writer_field.is_repeated and not reader_field.is_repeated:
        return "found a repeated field, expected a single one"
    if is_map(writer_field) != is_map(reader_field):
        return "found a map, expected none" if is_map(writer_field) else "found no map, expected one"
    if writer_field.type == reader_field.type == _F.TYPE_ENUM:
        return _enum(writer_field, reader_field)
    if writer_field.type == reader_field.type and writer_field.message_type:
        return misfit(writer_field.message_type, reader_field.message_type)
    if writer_field.type != reader_field.type and reader_field.type not in _WIDER.get(writer_field.type, ()):
        return f"found type {_name(writer_field)}, expected {_name(reader_field)}"
    return ""


def _enum(writer_field: FieldDescriptor, reader_field: FieldDescriptor) -> str:
    """Compare the names of each number: one that our enum does not have is kept as its digits.

    A number may have several names (`allow_alias`): one that both have is enough.
    """
    our_names, their_names = _names(reader_field), _names(writer_field)
    for number, names in their_names.items():
        expected = our_names.get(number, names)
        if not set(names) & set(expected):
            return f"found {' | '.join(names)} for the enum's number {number}, expected {' | '.join(expected)}"
    return ""


def _names(field: FieldDescriptor) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for value in field.enum_type.values:
        names.setdefault(value.number, []).append(value.name)
    return names


def _name(field: FieldDescriptor) -> str:
    types: dict[int, str] = {value: key for key, value in vars(_F).items() if key.startswith("TYPE_")}
    return types[field.type].removeprefix("TYPE_").lower()
