"""What a chunk's writer is given besides records, and what it hands to the driver. All of it pickles."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kafka_archiver.manifest import ChunkAccount, ObjectEntry
from kafka_archiver.plan import BadRecord, Chunk, Plan, Settings
from kafka_archiver.store.base import PendingUpload


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJob:
    """What the chunks of one run have in common. `bad_record`: what becomes of records that a stage rejects."""

    archive: str
    settings: Settings
    revision: int = 0
    bad_record: BadRecord = "fail"

    @classmethod
    def of(cls, plan: Plan, bad_record: BadRecord) -> Self:
        """What the chunks of a plan have in common."""
        return cls(archive=plan.archive, settings=plan.settings, revision=plan.revision, bad_record=bad_record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one task may use. Never influences a byte, a part or a checksum.

    :param memory_bytes: finished bytes not yet sent plus rows that encoders hold back, over all open objects;
        what is above it goes to disk.
    :param upload_threads: parts sent at the same time. Up to `part_bytes` of each are in memory then, besides
        `memory_bytes`; a larger one is on disk.
    :param open_objects: encoders at work at the same time; the records of further hours wait on disk.
    :param spill_directory: where a directory for this task's temporary files is made; None: the system's place.
    """

    memory_bytes: int = 128 << 20
    upload_threads: int = 4
    open_objects: int = 64
    spill_directory: Path | None = None

    @property
    def block_bytes(self) -> int:
        """How much is gathered before it is sorted: small beside the memory, large beside the cost of a call.

        Two such blocks fit one array, whose positions have 32 bits.
        """
        return min(self.memory_bytes // 16, 1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenObject:
    """An object with all its bytes sent, invisible until its upload is completed.

    :ivar rows, records: of how many records the rows are; a record may be several.
    """

    chunk: Chunk
    path: str
    rows: int
    first_offset: int
    last_offset: int
    min_timestamp: int
    max_timestamp: int
    records: int
    upload: PendingUpload

    def entry(self, etag: str) -> ObjectEntry:
        """The manifest's entry of it, once the store has given it an ETag."""
        return ObjectEntry(
            key=self.upload.key,
            topic=self.chunk.topic,
            partition=self.chunk.partition,
            generation=self.chunk.generation,
            chunk_start=self.chunk.start,
            path=self.path,
            rows=self.rows,
            bytes=self.upload.size,
            checksum=self.upload.checksum,
            etag=etag,
            first_offset=self.first_offset,
            last_offset=self.last_offset,
            min_timestamp=self.min_timestamp,
            max_timestamp=self.max_timestamp,
            records=None if self.records == self.rows else self.records,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkResult:
    """What became of one chunk. Offsets that were not seen are `absent`: whether that is loss the driver decides."""

    account: ChunkAccount
    objects: tuple[WrittenObject, ...]

    @property
    def chunk(self) -> Chunk:
        """The chunk it is the result of."""
        return self.account.chunk
