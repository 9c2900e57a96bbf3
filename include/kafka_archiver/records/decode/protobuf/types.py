"""The columns of a Protobuf message, and ptars's columns as these."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.decode.protobuf import structs
from kafka_archiver.records.decode.protobuf.files import PLAIN, WRAPPERS
from kafka_archiver.records.fields import SET, field

TIMESTAMP = f"{PLAIN}.Timestamp"
_WRAPPERS = frozenset(f"{PLAIN}.{name}" for name in WRAPPERS)
# Their columns are JSON text.
_TEXTS = frozenset(f"{PLAIN}.{name}" for name in structs.NAMES)
# The first and the last second of the years 1 to 9999.
_FIRST, _LAST = -62_135_596_800, 253_402_300_799

# A schema names its messages once, and its columns are each of them in each place.
_MOST_COLUMNS = 20_000


def message_field(name: str, message: Descriptor, arrow_type: pa.StructType, docs: Mapping[str, str]) -> pa.Field:
    """The field of a message.

    :param arrow_type: the type that ptars has for it.
    """
    kind = _struct(message, arrow_type, docs)
    name_in_avro = message.full_name if pa.types.is_struct(kind) else ""
    return field(name, kind, doc=docs.get(message.full_name, ""), avro_name=name_in_avro)


def require_finite(message: Descriptor) -> None:
    """Refuse a message that contains itself or a group, which ptars leaves out, or that has too many columns.

    :raises ConfigError: it does.
    """
    if (count := _columns(message, (), {})) > _MOST_COLUMNS:
        raise ConfigError(
            f"the Protobuf message {message.full_name} has {count:,} columns, with those of each message in each of "
            f"its places; expected at most {_MOST_COLUMNS:,}. Set `decode: bytes` and `content: record`"
        )


def _columns(message: Descriptor, around: tuple[str, ...], known: dict[str, int]) -> int:
    """Return how many columns a message has. `known`: of messages that were counted; changed here."""
    if message.full_name in around:
        raise ConfigError(
            f"the Protobuf message {message.full_name} contains itself, so it has no columns; set `decode: bytes` and "
            "`content: record`"
        )
    for member in message.fields:
        if member.type == FieldDescriptor.TYPE_GROUP:
            raise ConfigError(
                f"the Protobuf field {member.full_name} is a group, which has no columns; set `decode: bytes` and "
                "`content: record`"
            )
        if member.message_type and member.message_type.full_name not in known:
            _columns(member.message_type, (*around, message.full_name), known)
    known[message.full_name] = sum(
        1 + (known[member.message_type.full_name] if member.message_type else 0) for member in message.fields
    )
    return known[message.full_name]


def _struct(message: Descriptor, arrow_type: pa.StructType, docs: Mapping[str, str]) -> pa.DataType:
    """Return the type of a message. No format has a group without fields: `SET` says that the message is there."""
    if not message.fields:
        return SET
    fields = []
    # As they are declared; ptars has them by number.
    for member in message.fields:
        doc, their = docs.get(member.full_name, ""), arrow_type.field(member.name).type
        kind = _kind(member, their, docs)
        json = "" if pa.types.is_nested(kind) else _json(member)
        fields.append(field(member.name, kind, doc=doc, avro_name=_name(member), json=json))
    return pa.struct(fields)


def is_map(member: FieldDescriptor) -> bool:
    """Return True if a field is a map."""
    return bool(member.message_type and member.message_type.GetOptions().map_entry)


def _name(member: FieldDescriptor) -> str:
    inner = member.message_type
    plain = inner is None or is_map(member) or not inner.fields or inner.full_name in {TIMESTAMP, *_WRAPPERS, *_TEXTS}
    return "" if plain else inner.full_name


def _json(member: FieldDescriptor) -> str:
    return "any" if member.message_type and member.message_type.full_name in _TEXTS else ""


def _kind(member: FieldDescriptor, arrow_type: pa.DataType, docs: Mapping[str, str]) -> pa.DataType:
    if is_map(member):
        key, value = member.message_type.fields_by_number[1], member.message_type.fields_by_number[2]
        item = field("value", _kind(value, arrow_type.item_type, docs), json=_json(value))
        return pa.map_(_kind(key, arrow_type.key_type, docs), item)
    if member.is_repeated:
        item = _single(member, arrow_type.value_type, docs)
        return pa.list_(field("item", item, avro_name=_name(member), json=_json(member)))
    return _single(member, arrow_type, docs)


def _single(member: FieldDescriptor, arrow_type: pa.DataType, docs: Mapping[str, str]) -> pa.DataType:
    inner = member.message_type
    if inner is None:
        return arrow_type
    if inner.full_name in _WRAPPERS:
        return arrow_type.field("value").type
    if inner.full_name in _TEXTS:
        return pa.string()
    return pa.timestamp("us", "UTC") if inner.full_name == TIMESTAMP else _struct(inner, arrow_type, docs)


def is_unusual(array: pa.Array, message: Descriptor) -> bool:
    """Return True if a message has several members of a oneof, or an entry of a map without a value: ptars takes all of
    the members, but the last one counts, and a value that is not there has its default.

    :param array: ptars's column of the message.
    """
    for oneof in message.oneofs:
        parts = [array.field(member.name) for member in oneof.fields]
        members = sum(part.is_valid().cast(pa.int8()).to_numpy(zero_copy_only=False) for part in parts)
        if (members > 1).any():
            return True
    for member in message.fields:
        part, inner = array.field(member.name), member.message_type
        if is_map(member):
            part, inner = part.items, inner.fields_by_name["value"].message_type
            if part.null_count:
                return True
        elif member.is_repeated:
            part = part.values
        if inner is not None and pa.types.is_struct(part.type) and is_unusual(part, inner):
            return True
    return False


def as_kind(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """ptars's column as ours.

    :raises ValueError: a value is out of range, or an entry of a map has no value.
    """
    if pa.types.is_timestamp(kind):
        return _timestamps(array, kind)
    if pa.types.is_struct(array.type) and not array.type.num_fields:
        return pc.if_else(array.is_valid(), True, pa.scalar(None, SET))
    if pa.types.is_struct(array.type) and pa.types.is_string(kind) and array.type.get_field_index("value") < 0:
        return structs.json_texts(array)
    if pa.types.is_struct(array.type) and not pa.types.is_struct(kind):
        # A wrapper.
        return pc.if_else(array.is_valid(), array.field("value"), pa.scalar(None, kind))
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        parts = [as_kind(array.field(member.name), member.type) for member in kind]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        if array.items.null_count:
            raise ValueError("an entry of a map has no value")
        values = as_kind(array.items, kind.item_type)
        return pa.MapArray.from_arrays(array.offsets, array.keys, values, kind, mask=mask)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, as_kind(array.values, kind.value_type), kind, mask=mask)
    return array


def _timestamps(array: pa.StructArray, kind: pa.DataType) -> pa.Array:
    """Whole microseconds: a nanosecond is cut off, towards the past."""
    parts = (array.field(name).cast(pa.int64()) for name in ("seconds", "nanos"))
    seconds, nanos = (pc.if_else(array.is_valid(), part, None) for part in parts)
    outside = pc.or_(_outside(seconds, _FIRST, _LAST), _outside(nanos, 0, 999_999_999))
    if pc.any(outside).as_py():
        raise ValueError("a google.protobuf.Timestamp is not in the years 1 to 9999, or has too many nanoseconds")
    return pc.add(pc.multiply(seconds, 1_000_000), pc.divide(nanos, 1000)).cast(kind)


def _outside(numbers: pa.Array, low: int, high: int) -> pa.Array:
    return pc.or_(pc.less(numbers, low), pc.greater(numbers, high))
