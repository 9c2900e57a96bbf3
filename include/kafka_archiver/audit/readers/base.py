"""The interface of the audit's readers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from kafka_archiver.manifest import ObjectEntry
from kafka_archiver.plan import Settings

# Reads bytes of an object from the store: (start, length).
Fetch = Callable[[int, int], bytes]


class Seen(NamedTuple):
    """The topic, partition, offset and timestamp in an archived record; no timestamp if the format has none."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None


class Beside(NamedTuple):
    """The object to which a sidecar belongs: its entry in the manifest, and what reads its bytes."""

    entry: ObjectEntry
    fetch: Fetch


@dataclass(frozen=True, slots=True)
class Reader:
    """Functions that read the objects of one format; None if the format does not have this content.

    Files are seekable. At most a record, a block or a row group is in memory. Damaged bytes may raise any exception.

    :param records: the records of an object with `content: record`, in order.
    :param values: the number of records of an object with `content: value`; None if the object does not tell.
    :param sidecar: the faults of a sidecar, compared with its object.
    """

    records: Callable[[BinaryIO, Settings], Iterator[Seen]] | None = None
    values: Callable[[BinaryIO, Settings], int | None] | None = None
    sidecar: Callable[[BinaryIO, Settings, Beside], Iterator[str]] | None = None
