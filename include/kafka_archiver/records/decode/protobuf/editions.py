"""Protobuf files with an edition as files with a syntax, which ptars can read.

The messages have the same bytes and the same fields with presence. https://protobuf.dev/editions/features/
"""

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from kafka_archiver.messages.errors import ConfigError


def without_edition(file: FileDescriptorProto, described: FileDescriptor) -> FileDescriptorProto:
    """Return the file with `proto2`, or with `proto3` if a field has no presence.

    :param described: the file's descriptor, which knows the features of each field.
    :raises ConfigError: a field has delimited encoding.
    """
    converted = FileDescriptorProto.FromString(file.SerializeToString())
    converted.ClearField("edition")
    tops = [(top, described.message_types_by_name[top.name]) for top in converted.message_type]
    fields = [pair for top, descriptor in tops for pair in _fields(top, descriptor)]
    has_implicit = any(_is_single(field) and not descriptor.has_presence for _, field, descriptor in fields)
    converted.syntax = "proto3" if has_implicit else "proto2"
    for message, field, descriptor in fields:
        if descriptor.type == FieldDescriptor.TYPE_GROUP:
            raise ConfigError(
                f"the Protobuf field {descriptor.full_name} has delimited encoding (a group), which has no columns; "
                "set `decode: bytes` and `content: record`"
            )
        if descriptor.is_required:
            field.label = FieldDescriptorProto.LABEL_REQUIRED
        # A column is null where the field is not set, whatever its default is.
        field.ClearField("default_value")
        if has_implicit and descriptor.has_presence and _is_single(field) and not field.HasField("oneof_index"):
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")
    _clear_features(converted)
    return converted


def _is_single(field: FieldDescriptorProto) -> bool:
    is_message = field.type in (FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_GROUP)
    return field.label != FieldDescriptorProto.LABEL_REPEATED and not is_message


def _fields(
    message: DescriptorProto, descriptor: Descriptor
) -> Iterator[tuple[DescriptorProto, FieldDescriptorProto, FieldDescriptor]]:
    for field in message.field:
        yield message, field, descriptor.fields_by_name[field.name]
    for inner in message.nested_type:
        yield from _fields(inner, descriptor.nested_types_by_name[inner.name])


def _clear_features(part: object) -> None:
    """Remove the features of every option: only editions may have them."""
    for field, value in part.ListFields():  # type: ignore[attr-defined]
        for item in value if field.is_repeated else [value]:
            if field.name == "options":
                item.ClearField("features")
            elif field.message_type:
                _clear_features(item)
