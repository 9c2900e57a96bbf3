"""The interface of a reader of other tools' files."""

from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple, Protocol

import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.plan import Settings
from kafka_archiver.records.formats.base import VALUE, Target

# The offset of each row, in a column behind those of the file.
OFFSET = pa.field("kafka_archiver.offset", pa.int64())


class Facts(NamedTuple):
    """The content of a file: the smallest and largest offsets and times of its records; None: it does not have them.

    :ivar place: topic and partition, if the file says them.
    """

    rows: int
    low: int | None = None
    high: int | None = None
    min_timestamp: int | None = None
    max_timestamp: int | None = None
    place: tuple[str, int] | None = None


class Foreign(Protocol):
    """Files of one form. Instances are stateless; damaged bytes are an IntegrityError."""

    def facts(self, source: BinaryIO, target: Target, envelope: bool) -> Facts:
        """Return what a file has. Reads all of it, and holds a block of it at a time.

        :param source: seekable.
        :param envelope: whether the records may be in Lenses' envelope. Others' values may look like one.
        """

    def read(self, source: BinaryIO, target: Target, has_offsets: bool) -> Iterator[pa.RecordBatch]:
        """Yield the records with the file's own columns and, if they have offsets, `OFFSET` behind them."""


def foreign_target(topic: str, partition: int, key: str, form: str, codec: str) -> Target:
    """Return a file as formats know it."""
    settings = Settings(format=form, codec=codec, content="value")
    return Target(topic=topic, partition=partition, key=key, settings=settings, schema=VALUE)


# An offset and a time of a record; None: it does not have them.
Coordinates = tuple[int, int | None]


def facts_of(rows: int, known: Iterator[Coordinates], place: tuple[str, int] | None) -> Facts:
    """Return the facts of records with offsets.

    :raises IntegrityError: they do not rise.
    """
    low = high = first = last = None
    for offset, time in known:
        _require_order(high, offset)
        low = offset if low is None else low
        high = offset
        if time is not None and time >= 0:
            first = time if first is None else min(first, time)
            last = time if last is None else max(last, time)
    return Facts(rows, low, high, first, last, place)


def joined(parts: Sequence[Facts], place: tuple[str, int] | None) -> Facts:
    """Return the facts of all parts of a file, in their order; each has offsets.

    :raises IntegrityError: they do not rise.
    """
    bounds = [bound for part in parts for bound in (part.low, part.high) if bound is not None]
    for before, after in pairwise(bounds):
        if after < before:
            _require_order(before, after)
    times = [time for part in parts for time in (part.min_timestamp, part.max_timestamp) if time is not None]
    rows = sum(part.rows for part in parts)
    return Facts(rows, min(bounds), max(bounds), min(times, default=None), max(times, default=None), place)


def _require_order(before: int | None, offset: int) -> None:
    if before is not None and offset <= before:
        raise IntegrityError(f"its records are not in the order of their offsets: {offset} follows {before}")


def only(places: Set[tuple[str, int]]) -> tuple[str, int]:
    """Return the one topic and partition of all records of a file.

    :raises IntegrityError: they are of several.
    """
    if len(places) != 1:
        raise IntegrityError(f"its records are of several partitions: {sorted(places)[:3]}")
    return next(iter(places))


# Offset, time, topic and partition.
Enveloped = tuple[int, int | None, str, int]


def envelope_of(record: Any) -> Enveloped | None:
    """Return offset, time, topic and partition of a record in Lenses' envelope; None: it is in none."""
    metadata = record.get("metadata") if isinstance(record, dict) else None
    if not isinstance(metadata, dict) or not {"topic", "partition", "offset"} <= metadata.keys():
        return None
    offset, partition, topic = metadata["offset"], metadata["partition"], metadata["topic"]
    # Not isinstance: true is an int.
    if not (type(offset) is int and type(partition) is int and isinstance(topic, str)):
        return None
    time = metadata.get("timestamp")
    return offset, time if type(time) is int else None, topic, partition
