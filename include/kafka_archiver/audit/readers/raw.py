"""Text and bytes: counts values by what stands between or before them."""

import io
from typing import BinaryIO

from kafka_archiver.audit.readers.streams import READ, plain
from kafka_archiver.model.settings import Settings

_HEAD = 4


def lines(file: BinaryIO, settings: Settings) -> int:
    """The number of values of an object with a separator that is in no value.

    :raises ValueError: the last value has no separator.
    """
    separator = str(settings.options["separator"]).encode()
    count, pending = 0, b""
    with plain(file, settings.codec) as stream:
        while piece := stream.read(READ):
            *values, pending = (pending + piece).split(separator)
            count += len(values)
    if pending:
        raise ValueError("the last value has no separator")
    return count


def values(file: BinaryIO, settings: Settings) -> int | None:
    """The number of values of an object; None if it has no lengths: a value may then contain anything.

    :raises ValueError: the last value is not complete.
    """
    with plain(file, settings.codec) as stream:
        if settings.options["framing"] == "length":
            return _framed(io.BufferedReader(stream, READ))  # type: ignore[type-var]
        while stream.read(READ):
            pass
    return None


def _framed(stream: BinaryIO) -> int:
    count = 0
    while head := stream.read(_HEAD):
        size = max(0, int.from_bytes(head, "big", signed=True))
        if len(head) < _HEAD or len(stream.read(size)) < size:
            raise ValueError("the last value is not complete")
        count += 1
    return count
