"""Repeated numbers of fixed width in one piece of bytes, whose length is no multiple of theirs.

ptars leaves out the rest of the bytes; Protobuf's own library refuses the message.
"""

from collections.abc import Iterable, Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kafka_archiver.records.decode.protobuf.frames import varint

_F = FieldDescriptor
_WIDTHS = {
    **dict.fromkeys((_F.TYPE_FIXED32, _F.TYPE_SFIXED32, _F.TYPE_FLOAT), 4),
    **dict.fromkeys((_F.TYPE_FIXED64, _F.TYPE_SFIXED64, _F.TYPE_DOUBLE), 8),
}
_BYTES = 2


def wrong_lengths(message: Descriptor) -> str:
    """A regular expression that all messages with such a piece match, and few others; empty if none can have one.

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
