"""Whether what one message wrote can be read as another message, without a wrong or a lost value.

Field numbers count, names do not. Fields that the reader does not have are left out.
https://protobuf.dev/programming-guides/proto3/#updating
"""

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kafka_archiver.decode.protobuf.types import is_map

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
    """Why the writer's message cannot be read as the reader's; empty if it can. Neither contains itself."""
    for number, theirs in writer.fields_by_number.items():
        ours = reader.fields_by_number.get(number)
        if ours is not None and (why := _field(theirs, ours)):
            return f"field {ours.name} ({number}): {why}"
    return ""


def _field(theirs: FieldDescriptor, ours: FieldDescriptor) -> str:
    if theirs.is_repeated and not ours.is_repeated:
        return "found a repeated field, expected a single one"
    if is_map(theirs) != is_map(ours):
        return "found a map, expected none" if is_map(theirs) else "found no map, expected one"
    if theirs.type == ours.type == _F.TYPE_ENUM:
        return _enum(theirs, ours)
    if theirs.type == ours.type and theirs.message_type:
        return misfit(theirs.message_type, ours.message_type)
    if theirs.type != ours.type and ours.type not in _WIDER.get(theirs.type, ()):
        return f"found type {_name(theirs)}, expected {_name(ours)}"
    return ""


def _enum(theirs: FieldDescriptor, ours: FieldDescriptor) -> str:
    """Compare the names of each number: one that our enum does not have is kept as its digits.

    A number may have several names (`allow_alias`): one that both have is enough.
    """
    our_names, their_names = _names(ours), _names(theirs)
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
