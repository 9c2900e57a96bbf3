"""The interface of a reader of other tools' files."""

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, Protocol

import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats.base import VALUE, Target


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


# Offset, time, topic and partition.
Enveloped = tuple[int, int | None, str, int]


class Known:
    """Collects the facts of records with offsets."""

    def __init__(self) -> None:
        self._facts = Facts(0)
        self._places: set[tuple[str, int]] = set()

    def add(self, records: Sequence[Enveloped]) -> None:
        """Take the next records of the file.

        :raises IntegrityError: their offsets do not rise.
        """
        if not records:
            return
        rows, low, high, first, last, _ = self._facts
        for offset, time, topic, partition in records:
            if high is not None and offset <= high:
                raise IntegrityError(f"its records are not in the order of their offsets: {offset} follows {high}")
            high = offset
            self._places.add((topic, partition))
            if time is not None and time >= 0:
                first = time if first is None else min(first, time)
                last = time if last is None else max(last, time)
        self._facts = Facts(rows + len(records), records[0][0] if low is None else low, high, first, last)

    def facts(self) -> Facts:
        """Return the facts of all records.

        :raises IntegrityError: they are of several partitions.
        """
        if len(self._places) > 1:
            raise IntegrityError(f"its records are of several partitions: {sorted(self._places)[:3]}")
        return self._facts._replace(place=next(iter(self._places), None))


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
