"""Count the records of one target partition as they are written, or recognised in its log."""

from dataclasses import dataclass
from typing import Self

from kafka_archiver.model.restore_progress import Place, RestoreProgress
from kafka_archiver.work.restore.digests import RunningDigest
from kafka_archiver.work.restore.lane import LaneBatch
from kafka_archiver.work.restore.rows import last_place


@dataclass
class Tally:
    """A restore's progress that still grows. `place`: of the next record; the others as of `RestoreProgress`."""

    plan: str
    place: Place
    records: int
    bytes: int
    digest: RunningDigest

    @classmethod
    def of(cls, progress: RestoreProgress) -> Self:
        """Return the tally that goes on behind a progress."""
        return cls(progress.plan, progress.place, progress.records, progress.bytes, RunningDigest(progress.digest))

    def add(self, batch: LaneBatch, size: int) -> None:
        """Add some records of so many bytes."""
        last = last_place(batch)
        self.place = Place(last.source, last.offset + 1)
        self.records += batch.records.num_rows
        self.bytes += size
        self.digest.add(batch.records)

    @property
    def progress(self) -> RestoreProgress:
        """The progress so far."""
        return RestoreProgress(
            plan=self.plan,
            source=self.place.source,
            offset=self.place.offset,
            records=self.records,
            bytes=self.bytes,
            digest=self.digest.text if self.records else "",
        )
