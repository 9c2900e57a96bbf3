"""The document of the job `archive`. Pure."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field

from kafka_archiver.jobs.base import JobDocument
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.policies import BadRecord, LostOffsets, ReadPolicies

if TYPE_CHECKING:
    # Not at runtime: it imports YAML, which the driver does not need.
    from kafka_archiver.config import Archive

# `auto` means native.
Reader = Literal["auto", "spark", "native"]


class ArchiveJob(JobDocument):
    """The runs to archive, with limits and policies. It holds no secrets.

    `store`: its URL. `requests`: what requests to the store have besides, as options of the store; not written if
    none. `runs`: their names in the ledger. `memory_bytes`: how much one task buffers before it spills. `max_paths`:
    how many paths one chunk may have. `record_seconds`, `record_memory_bytes`: the limits of decoders and mappers for
    a record; 0: none.
    """

    job: Literal["archive"] = "archive"
    archive: str
    store: str
    # Pairs, because `to_argument` allows no braces within. Not written if there are none.
    requests: tuple[tuple[str, str], ...] = Field(default=(), exclude_if=lambda requests: not requests)
    runs: Annotated[tuple[str, ...], Field(min_length=1)]
    reader: Reader
    memory_bytes: Annotated[int, Field(gt=0)]
    max_paths: Annotated[int, Field(gt=0)] = 10_000
    record_seconds: Annotated[int, Field(ge=0)] = 0
    record_memory_bytes: Annotated[int, Field(ge=0)] = 0
    lost_offsets: LostOffsets
    bad_record: BadRecord

    @classmethod
    def of(cls, archive: "Archive", runs: Sequence[str]) -> Self:
        """The job for some runs of an archive, with its present policies."""
        return cls(
            archive=archive.archive,
            store=archive.store.url,
            requests=tuple(archive.store.requests.items()),
            runs=tuple(runs),
            reader=archive.source.reader,
            memory_bytes=archive.spark.memory_bytes,
            max_paths=archive.store.max_paths,
            record_seconds=archive.spark.record_seconds,
            record_memory_bytes=archive.spark.record_memory_bytes,
            **asdict(ReadPolicies.of(archive.policies.model_dump())),
        )

    @property
    def read_policies(self) -> ReadPolicies:
        """The policies that decide while a run is read."""
        return ReadPolicies.of(self.model_dump())

    def options(self, endpoints: Endpoints) -> dict[str, str]:
        """The options of the store. The endpoints may be a person's, who need not know what requests have besides."""
        return {**endpoints.store, **dict(self.requests)}
