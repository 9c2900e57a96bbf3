"""The records that attempts of a run leave out: records that no process survives, and offsets that no client can read.
Pure.

It is frozen before anything of the run is visible, so every attempt and every replay leaves out the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.plan import Chunk
from kafka_archiver.values.documents import ArchiveDocument, PartitionValue
from kafka_archiver.values.ranges import Range, TopicPartition, subtract


class RecordAside(PartitionValue):
    """A record that ends the process that decodes or maps it, or takes too long or too much memory alone."""

    offset: int
    reason: str

    @property
    def place(self) -> tuple[str, int, int]:
        return self.topic, self.partition, self.offset

    def __str__(self) -> str:
        return f"{self.name} offset {self.offset}: {self.reason}"


class FatalRecordsError(PermanentError):
    """Records of a run end the process that works on them. `records`: all that a search has found so far."""

    def __init__(self, records: Iterable[RecordAside]) -> None:
        self.records = tuple(records)
        further = len(self.records) - 1
        super().__init__(f"{self.records[0]}{f'; and {further} more' if further else ''}")


class OffsetsAside(PartitionValue):
    """Offsets that a person has given up by name, because no client can read them. `end` is exclusive."""

    start: Annotated[int, Field(ge=0)]
    end: int

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"expected an end behind {self.start}, found {self.end}")
        return self

    @property
    def range(self) -> Range:
        return Range(self.start, self.end)


class SetAside(ArchiveDocument):
    """The records and offsets that attempts of a run leave out. It only grows, until the run has a manifest.

    `records`: they are rejected unread, and `policies.bad_record` decides. `unread`: these offsets are lost.
    """

    document: Literal["kafka-archiver/set-aside"] = "kafka-archiver/set-aside"
    run: str
    records: tuple[RecordAside, ...] = ()
    unread: tuple[OffsetsAside, ...] = ()

    def with_records(self, records: Iterable[RecordAside]) -> Self:
        """Return it with further records; what it says of a record already stays."""
        known = {record.place: record for record in (*records, *self.records)}
        return self.model_copy(update={"records": tuple(known[place] for place in sorted(known))})

    def with_unread(self, offsets: OffsetsAside) -> Self:
        """Return it with further offsets that nobody reads."""
        known = {
            (unread.topic, unread.partition, unread.start, unread.end): unread for unread in (*self.unread, offsets)
        }
        return self.model_copy(update={"unread": tuple(known[place] for place in sorted(known))})

    def as_accounted(self, accounts: Sequence[ChunkAccount]) -> Self:
        """Return it with the records and offsets that a manifest says were left out, and no others: replays use it."""
        records = (
            RecordAside(topic=account.topic, partition=account.partition, offset=offset, reason=reason)
            for account in accounts
            for offset, reason in account.set_aside
        )
        unread = tuple(
            OffsetsAside(topic=unread.topic, partition=unread.partition, start=lost.start, end=lost.end)
            for unread in self.unread
            for account in accounts
            if account.name == unread.name
            for lost in account.lost_in(unread.range)
        )
        return self.model_copy(update={"records": (), "unread": unread}).with_records(records)

    def reasons(self, name: TopicPartition) -> Mapping[int, str]:
        """Return why, by offset, for the records of a partition."""
        return {record.offset: record.reason for record in self.records if record.name == name}

    def readable(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Return the parts of chunks that are read."""
        holes: dict[TopicPartition, list[Range]] = {}
        for unread in self.unread:
            holes.setdefault(unread.name, []).append(unread.range)
        return [part for chunk in chunks for part in _parts(chunk, holes.get(chunk.name, ()))]

    def not_given_up(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Return the chunks of which anything is read."""
        return [chunk for chunk in chunks if self.readable([chunk])]

    def losing(self, account: ChunkAccount) -> ChunkAccount:
        """Return the account of a chunk with the offsets that nobody reads as lost ones."""
        for unread in self.unread:
            if unread.name == account.name:
                account = account.giving_up(unread.range)
        return account


def _parts(chunk: Chunk, holes: Iterable[Range]) -> list[Chunk]:
    left = list(subtract(chunk.range, holes))
    return [chunk.model_copy(update={"start": part.start, "end": part.end}) for part in left]
