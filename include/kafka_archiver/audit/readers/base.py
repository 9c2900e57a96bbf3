"""The interface of the audit's readers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from kafka_archiver.plan import Settings


class Seen(NamedTuple):
    """The topic, partition, offset and timestamp in an archived record."""

    topic: str
    partition: int
    offset: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class Reader:
    """Functions that read the objects of one format; None if the format does not have this content.

    Files are seekable. At most a record, a block or a row group is in memory. Damaged bytes may raise any exception.

    :param records: the records of an object with `content: record`, in order.
    :param values: the number of records of an object with `content: value`; None if the object does not tell.
    """

    records: Callable[[BinaryIO, Settings], Iterator[Seen]] | None = None
    values: Callable[[BinaryIO, Settings], int | None] | None = None
