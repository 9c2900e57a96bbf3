"""The writer's input besides records, and its result for the driver. All classes can be pickled."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.messages.policies import BadRecord
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.data_keys import DataKey
from kafka_archiver.model.manifest import HourRows, ObjectEntry
from kafka_archiver.model.plan import Chunk, Plan, TopicSchemas
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.set_aside import SetAside
from kafka_archiver.model.settings import Settings
from kafka_archiver.store.base import PendingUpload

if TYPE_CHECKING:
    from kafka_archiver.encryption.sealed import Sealer


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJob:
    """The settings that the chunks of one run have in common. `bad_record`: the policy for rejected records.

    `decoded`: the plan's schemas; `schemas`: their texts by fingerprint. `rejected_by`: if the records are dead letters
    that come from Kafka, the jobs that rejected them, one after the other. `keys`: the secret keys of transforms.
    `data_key`: the id of the key that encrypts its objects. `data_keys`: this key, and those of the dead letters that
    it reads, by id. `aside`: what the run leaves out.
    """

    archive: str
    settings: Settings
    revision: int = 0
    bad_record: BadRecord = "fail"
    decoded: tuple[TopicSchemas, ...] = ()
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    rejected_by: tuple[Self, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    data_key: str | None = None
    data_keys: Mapping[str, DataKey] = field(default_factory=dict, repr=False)
    aside: SetAside | None = None

    def set_aside(self, chunk: Chunk) -> Mapping[int, str]:
        """Return why, by offset, for the records of a chunk that are rejected unread."""
        return self.aside.reasons(chunk.name) if self.aside else {}

    @property
    def runs_code(self) -> bool:
        """Return True if records meet decoders or mappers, which may end the process."""
        transform = self.settings.transform
        return (
            bool(self.decoded or self.settings.headers or (transform and (transform.mapper or transform.sql)))
            or self.settings.decodes
        )

    def sealer(self, key: str) -> "Sealer | None":
        """Return the encryption of an object; None: it has none. `key`: the object's."""
        if self.settings.encryption and self.data_key is None:
            raise IntegrityError(f"{key} is to be encrypted, but its plan has no data key: nothing is written")
        if self.data_key is None:
            return None
        # Imported late: without encryption, executors need not have the library.
        from kafka_archiver.encryption.sealed import Sealer

        return Sealer(self.data_keys[self.data_key], key)

    @property
    def needs_all_columns(self) -> bool:
        """Return True if it needs all columns of a record, also if objects do not."""
        return self.bad_record == "dead_letter" or bool(self.rejected_by)

    def with_keys(self, keys: Mapping[str, str]) -> Self:
        """The same with the secret keys of transforms."""
        return replace(self, keys=keys, rejected_by=tuple(job.with_keys(keys) for job in self.rejected_by))

    @classmethod
    def of(
        cls,
        plan: Plan,
        bad_record: BadRecord,
        schemas: Mapping[str, Schema],
        data_keys: Mapping[str, DataKey] | None = None,
        aside: SetAside | None = None,
    ) -> Self:
        """Return the settings that the chunks of a plan have in common. `schemas`: all that it names, by fingerprint.
        `data_keys`: all that it needs, by id. `aside`: what the run leaves out.
        """
        return cls(
            archive=plan.archive,
            settings=plan.settings,
            revision=plan.revision,
            data_key=plan.data_key,
            bad_record=bad_record,
            decoded=plan.schemas,
            schemas=schemas,
            data_keys=data_keys or {},
            aside=aside,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The resources of one task. They never influence a byte, a part or a checksum.

    :param memory_bytes: encoded bytes not yet sent, plus rows that encoders hold, over all open objects. Data above
        this limit goes to disk.
    :param upload_threads: parts sent at the same time. Each takes up to `part_bytes` of memory, besides
        `memory_bytes`; a larger part is on disk.
    :param open_objects: encoders at the same time; the records of further objects wait on disk.
    :param max_paths: the most paths of one chunk; None: any number.
    :param record_seconds, record_memory_bytes: how long a record may take to be decoded and mapped, and how much
        memory; 0: no limit. A process that exceeds one ends.
    :param spill_directory: the parent of this task's temporary directory; None: the system's default.
    """

    memory_bytes: int = 128 << 20
    upload_threads: int = 4
    open_objects: int = 64
    max_paths: int | None = 10_000
    record_seconds: float = 0
    record_memory_bytes: int = 0
    spill_directory: Path | None = None

    @property
    def block_bytes(self) -> int:
        """The bytes of records to collect before they are sorted by part: small against `memory_bytes`.

        Two such blocks fit one array with 32-bit offsets.
        """
        return min(self.memory_bytes // 16, 1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenObject:
    """An object whose bytes are all sent. It is invisible until its upload is completed.

    :ivar rows, records: the numbers of rows and of their records; a record may have several rows.
    :ivar rows_by_hour: see `ObjectEntry`.
    :ivar sidecar_of: the key of the object whose sidecar this is; a sidecar has no rows.
    """

    chunk: Chunk
    path: str
    rows: int
    first_offset: int
    last_offset: int
    min_timestamp: int
    max_timestamp: int
    records: int
    rows_by_hour: tuple[HourRows, ...] | None
    upload: PendingUpload
    sidecar_of: str | None = None

    def sidecar(self, upload: PendingUpload) -> Self:
        return replace(self, rows=0, records=0, upload=upload, sidecar_of=self.upload.key)

    def entry(self, etag: str) -> ObjectEntry:
        """The manifest's entry, with the ETag from the store."""
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
            rows_by_hour=self.rows_by_hour,
            records=None if self.records == self.rows else self.records,
            sidecar_of=self.sidecar_of,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkResult:
    """The result of one chunk. Offsets that were not seen are `absent`; the driver decides which are lost."""

    account: ChunkAccount
    objects: tuple[WrittenObject, ...]

    @property
    def chunk(self) -> Chunk:
        return self.account.chunk
