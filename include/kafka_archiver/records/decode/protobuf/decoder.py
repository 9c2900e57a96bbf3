"""The decoder of Protobuf."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from ptars import HandlerPool, PtarsConfig

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.decode.base import Decoded, Decoder, DecoderInput, Read
from kafka_archiver.records.decode.frames import Framed, Unframed
from kafka_archiver.records.decode.protobuf.files import compiled, messages
from kafka_archiver.records.decode.protobuf.fits import misfit
from kafka_archiver.records.decode.protobuf.frames import indexes, varint, without_indexes
from kafka_archiver.records.decode.protobuf.types import as_kind, is_unusual, message_field, require_finite
from kafka_archiver.records.decode.undecodable import decode_in_halves, is_panic
from kafka_archiver.records.vectors import indices

_F = FieldDescriptor
_WIDTHS = {
    **dict.fromkeys((_F.TYPE_FIXED32, _F.TYPE_SFIXED32, _F.TYPE_FLOAT), 4),
    **dict.fromkeys((_F.TYPE_FIXED64, _F.TYPE_SFIXED64, _F.TYPE_DOUBLE), 8),
}
_BYTES = 2


def wrong_lengths(message: Descriptor) -> str:
    """A regular expression for messages with repeated numbers in one piece of bytes that is no multiple of their width.

    ptars leaves out the rest of such bytes; Protobuf's own library refuses the message. All such messages match, and
    few others; empty if none can have such a piece.

    :param message: does not contain itself.
    """
    tags = [*_tags(message)]
    return "|".join(
        f"(?:{'|'.join(sorted({tag for tag, its in tags if its == width}))})[^{_escaped(range(0, 256, width))}]"
        for width in sorted({width for _, width in tags})
    )


def _tags(message: Descriptor) -> Iterator[tuple[str, int]]:
    """The tag of each such field, and the width of its numbers. The first byte of a length has its lowest bits."""
    for member in message.fields:
        if member.is_repeated and (width := _WIDTHS.get(member.type)):
            *first, last = varint(member.number << 3 | _BYTES)
            # It may have more bytes than it needs.
            yield f"{_escaped(first)}(?:{_escaped([last])}|{_escaped([last | 0x80])}\\x80*\\x00)", width
        if member.message_type:
            yield from _tags(member.message_type)


def _escaped(numbers: Iterable[int]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in numbers)


_CONFIG = PtarsConfig(enum_repr="string", list_value_nullable=True, map_value_nullable=True)
# ptars follows groups, which nest in a byte each, until the stack ends and the process with it. This many it can bear;
# longer messages are parsed by Protobuf's own library first, which refuses deep ones. So are those of `wrong_lengths`.
_SHORT = 4096


def make(of: DecoderInput) -> Decoder:
    """Make the decoder `protobuf`.

    :raises ConfigError: the schema is not valid, has no such message, or the message contains itself.
    """
    schema = of.required_schema
    file = compiled(schema)
    descriptor = file.message(of.message)
    require_finite(descriptor)
    whole = _Whole(descriptor)
    field = message_field(of.column, descriptor, whole.theirs, file.docs)
    whole.kind = field.type
    if not of.framed:
        return Unframed(field, whole.read)
    reads: dict[int, Read | str] = {}
    for number, writer in of.writers.items():
        try:
            writer_message = compiled(writer).message(descriptor.full_name)
            require_finite(writer_message)
            why = misfit(writer_message, descriptor)
        except ConfigError as error:
            why = str(error)
        reads[number] = (
            f"schema id {number} ({writer.fingerprint}) cannot be read as the schema that the run writes "
            f"({schema.fingerprint}): {why}"
            if why
            else _Indexed(whole, writer_message, of.column)
        )
    return Framed(field, reads)


class _Whole:
    """Reads messages without frames."""

    kind: pa.DataType

    def __init__(self, message: Descriptor) -> None:
        # Kept: it keeps the descriptors alive.
        self._message = message
        self._pool = _handlers(message)
        self._handler = self._pool.get_for_message(message)
        self._parse = GetMessageClass(message).FromString
        self._wrong = wrong_lengths(message)
        self.theirs = pa.struct(
            list(self._handler.schema()) if callable(self._handler.schema) else list(self._handler.schema)
        )

    def read(self, data: pa.Array) -> Decoded:
        data = data.cast(pa.binary())
        suspect = pc.greater(pc.binary_length(data), _SHORT)
        if self._wrong:
            suspect = pc.or_(suspect, pc.match_substring_regex(data, self._wrong))
        rows = pa.StructArray.from_arrays([data, suspect], ["data", "suspect"])
        return decode_in_halves(rows, self._whole, self.kind)

    def _whole(self, rows: pa.StructArray) -> pa.Array:
        data, suspect = rows.field("data"), rows.field("suspect")
        try:
            for row in pc.indices_nonzero(suspect).to_pylist():
                self._parse(data[row].as_py())
            array = self._handler.array_to_record_batch(data).to_struct_array()
            if is_unusual(array, self._message):
                if len(data) > 1:
                    raise ValueError("one by one")
                # As Protobuf's own library writes it.
                again = self._parse(data[0].as_py()).SerializePartialToString(deterministic=True)
                array = self._handler.array_to_record_batch(pa.array([again], pa.binary())).to_struct_array()
        except BaseException as error:
            if not isinstance(error, (ValueError, DecodeError)) and not is_panic(error):
                raise
            raise ValueError(f"the bytes do not fit their Protobuf message: {error}") from None
        return as_kind(array, self.kind)


def _handlers(message: Descriptor) -> HandlerPool:
    """:raises ConfigError: ptars cannot read the message's file."""
    try:
        return HandlerPool([message.file], _CONFIG)
    except BaseException as error:
        if not is_panic(error):
            raise
        raise ConfigError(
            f"the Protobuf file of {message.full_name} has something that this decoder cannot read; set `decode: "
            "bytes` and `content: record`"
        ) from None


class _Indexed:
    """Reads messages after their indexes."""

    def __init__(self, whole: _Whole, message: Descriptor, column: str) -> None:
        self._whole, self._path, self._column = whole, indexes(message), column
        package = f"{message.file.package}." if message.file.package else ""
        self._others = {indexes(other): other.full_name.removeprefix(package) for other in messages(message.file)}

    def __call__(self, data: pa.Array) -> Decoded:
        bodies, reasons = without_indexes(data, self._path, self._others, self._column)
        decoded = self._whole.read(bodies)
        if not reasons:
            return decoded
        places = np.array([-1 if row in reasons else row for row in range(len(data))], np.int64)
        return Decoded(decoded.column.take(indices(places)), {**decoded.reasons, **reasons})
