"""What the audit wants of an object."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from kafka_archiver.plan import Settings


class Seen(NamedTuple):
    """Where a record in an object says that it comes from."""

    topic: str
    partition: int
    offset: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class Reader:
    """How the objects of one format are read, by code that did not write them; None: it has no such content.

    Files are seekable. Nothing is in memory but a record, a block or a row group. Of damaged bytes they raise what they
    like.

    :param records: the records of an object with `content: record`, in its order.
    :param values: how many records an object with `content: value` has.
    """

    records: Callable[[BinaryIO, Settings], Iterator[Seen]] | None = None
    values: Callable[[BinaryIO, Settings], int] | None = None
