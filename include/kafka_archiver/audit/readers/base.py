"""The interface of the audit's readers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.settings import Settings

# Reads bytes of an object from the store: (start, length).
Fetch = Callable[[int, int], bytes]


class RecordCoordinates(NamedTuple):
    """The topic, partition, offset and timestamp in an archived record; None for what the object does not have."""

    topic: str | None
    partition: int | None
    offset: int
    timestamp: int | None


class SidecarOwner(NamedTuple):
    """The object to which a sidecar belongs: its entry in the manifest, and what reads its bytes."""

    entry: ObjectEntry
    fetch: Fetch


def coordinate_columns(settings: Settings) -> list[str | None]:
    """The columns of an object with the fields of `RecordCoordinates`; None for those that it does not have."""
    all_ = settings.content != "value"
    return [
        settings.metadata_prefix + name if all_ or name in settings.metadata else None
        for name in RecordCoordinates._fields
    ]


def coordinates(record: Mapping[str, Any], columns: Sequence[str | None]) -> RecordCoordinates:
    """Return the values of a record, given as a mapping.

    :param columns: as `coordinate_columns` gives them.
    """
    values: Any = [name and record[name] for name in columns]
    return RecordCoordinates(*values)


@dataclass(frozen=True, slots=True)
class FormatReader:
    """Functions that read the objects of one format; None if the format does not have this content.

    Files are seekable. At most a record, a block or a row group is in memory. Damaged bytes may raise any exception.

    :param records: the records of an object that has their offsets, in order.
    :param values: the number of records of an object that has no offsets; None if the object does not tell.
    :param sidecar: the faults of a sidecar, compared with its object.
    :param fault: why there is no reader; empty if there is one.
    """

    records: Callable[[BinaryIO, Settings], Iterator[RecordCoordinates]] | None = None
    values: Callable[[BinaryIO, Settings], int | None] | None = None
    sidecar: Callable[[BinaryIO, Settings, SidecarOwner], Iterator[str]] | None = None
    fault: str = ""
