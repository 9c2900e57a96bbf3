"""The document of the job `archive`. Pure."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field

from kafka_archiver.jobs.base import StoreJob
from kafka_archiver.messages.policies import BadRecord, LostOffsets, ReadPolicies

if TYPE_CHECKING:
    # Not at runtime: it imports YAML, which the driver does not need.
    from kafka_archiver.config import Archive

# `auto` means native.
Reader = Literal["auto", "spark", "native"]


class ArchiveJob(StoreJob):
    """The runs to archive, with limits and policies. It holds no secrets.

    `runs`: their names in the ledger. `memory_bytes`: how much one task buffers before it spills. `max_paths`:
    how many paths one chunk may have. `record_seconds`, `record_memory_bytes`: the limits of decoders and mappers for
    a record; 0: none.
    """

    job: Literal["archive"] = "archive"
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
            **cls.of_store(archive),
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
