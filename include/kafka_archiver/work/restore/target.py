"""The target of a restore, as its steps see it. `kafka.target` is the real one, tests have a twin."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from kafka_archiver.kafka.groups import Position
from kafka_archiver.model.settings import Isolation
from kafka_archiver.values.ranges import Range, TopicPartition


class Writer(Protocol):
    """The only writer of one target partition, until another one is made. `kafka.transactional` describes it."""

    def send(self, batch: pa.RecordBatch, /) -> None:
        """Send records in the open transaction, which begins with the first one."""

    def commit(self, group: str, stamp: str, /) -> Range:
        """Commit the open transaction with the restore's progress; return the offsets of its records."""

    def close(self) -> None:
        """Let go of the connections; an open transaction is aborted."""


class Target(Protocol):
    """A cluster that is written.

    :raises TransientError, PermanentError: in every method: no answer, or a refusal.
    """

    def writer(self, transactional_id: str, name: TopicPartition, /) -> Writer:
        """Become the only writer of a partition: what another had not committed is aborted before this returns."""

    def progress(self, group: str, name: TopicPartition, /) -> Position | None:
        """Return the group's offset of a partition; never one whose transaction is not decided."""

    def ends(self, name: TopicPartition, /) -> tuple[int, int]:
        """Return the last stable offset and the high watermark of a partition, by its leader."""

    def topic_id(self, topic: str, /) -> str | None:
        """Return the id of a topic; None if there is none."""

    def read(self, name: TopicPartition, offsets: Range, isolation: Isolation, /) -> Iterator[pa.RecordBatch]:
        """Yield the records of some offsets, as `COLUMNS`.

        :raises TransientError: the log ends before.
        """

    def count(self, name: TopicPartition, ranges: Sequence[Range], /) -> int:
        """Return the number of records at these offsets, those of aborted transactions too; ascending ranges.

        :raises TransientError: the log ends before.
        """
