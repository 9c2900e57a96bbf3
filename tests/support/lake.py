"""An archive on any store, with records that a test defines: no broker, no Spark, but the real writer and steps.

Partition p's record at offset o has the timestamp of hour o of the day, unless the test says otherwise.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_archiver.audit.inspection import audit
from kafka_archiver.audit.report import Report
from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.encryption import Keyring
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.manifest import Commit, Manifest
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import HourProof
from kafka_archiver.records.formats.base import COLUMNS, VALUE
from kafka_archiver.records.pipeline.transform.base import BatchOrigin
from kafka_archiver.records.pipeline.transform.chain import require_transforms
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.dead_letter_reader import read_letters
from kafka_archiver.records.writer.result import ChunkResult, Limits, WriteJob
from kafka_archiver.spark.reading import whole_chunk
from kafka_archiver.store import Store
from kafka_archiver.values.intervals import Interval, to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.archive.step import ArchiveStep
from kafka_archiver.work.backlog import archive_runs
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.dead_letters import HourRange, replay_letters
from kafka_archiver.work.plan import Origin, PlannedWork, plan
from kafka_archiver.work.rebuild import rebuild_run
from kafka_archiver.work.verify import verify
from tests.support.brokers import Brokers
from tests.support.chunks import Row, batch
from tests.support.worlds import Clocked

FIRST = datetime(2026, 11, 20, tzinfo=UTC)
HOUR = 3_600_000


def hour(number: int) -> Interval:
    """The `number`th hour of the day."""
    return Interval(start=FIRST + timedelta(hours=number), end=FIRST + timedelta(hours=number + 1))


@dataclass
class Lake:
    """One archive of the topics that `logs` has."""

    store: Store
    logs: dict[TopicPartition, Range]
    settings: dict[str, Any] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    odd: dict[tuple[TopicPartition, int], dict[str, Any]] = field(default_factory=dict)
    # Offsets without a record, as compaction leaves them.
    absent: set[tuple[TopicPartition, int]] = field(default_factory=set)
    name: str = field(default_factory=lambda: f"a{uuid.uuid4().hex[:8]}")
    keyring: Keyring | None = None

    def __post_init__(self) -> None:
        self.brokers = Brokers(self.logs, first=to_ms(FIRST) // HOUR)
        self.archive = Archive.model_validate(
            {
                "archive": self.name,
                "source": {"topics": sorted({name.topic for name in self.logs}), "settle": 0},
                "store": {"url": "memory://unused", "chunk_records": 2, **self.settings},
                "policies": self.policies,
            }
        )
        self.now = FIRST
        self.ledger = Ledger(self.store, self.name, self.keyring)
        timed: Any = Clocked(self.store, lambda: to_ms(self.now))
        self.context = Context(self.archive, self.brokers, timed, self.ledger, lambda: self.now)  # type: ignore[arg-type]

    def choose(self, **policies: str) -> None:
        """Choose policies, as an edit of the YAML does."""
        self.configure(self.archive.choosing(policies))

    def configure(self, archive: Archive) -> None:
        """From now on by another YAML."""
        self.archive, self.context = archive, replace(self.context, archive=archive)

    def use(self, keyring: Keyring | None) -> None:
        """From now on with other master keys."""
        self.ledger = replace(self.ledger, keyring=keyring)
        self.context = replace(self.context, ledger=self.ledger)

    def run(self, number: int, origin: Origin = "scheduled", until: str = "settled") -> str:
        """Run an hour, up to a state (planned, written, committed, settled). Returns the run's name."""
        self._later(hour(number).end + timedelta(minutes=5))
        self.finish(plan(self.context, hour(number), origin), until)
        return hour(number).id

    def rebuild(self, run: str, keep: bool = False, until: str = "settled", fewer: bool = False) -> str:
        """Rebuild a run, up to a state. Returns the rebuild's name."""
        self._later(FIRST)
        work = rebuild_run(self.context, run, keep, fewer)
        self.finish(work, until)
        return work.runs[-1]

    def replay(self, selection: list[str] | HourRange | None = None, until: str = "settled") -> str:
        """Replay dead letters, up to a state. Returns the revision's name."""
        self._later(FIRST)
        work = replay_letters(self.context, selection)
        self.finish(work, until)
        return work.runs[-1]

    def _later(self, moment: datetime) -> None:
        """Set the time to that moment, or a later one: time does not go back."""
        self.now = max(moment, self.now + timedelta(minutes=5))

    def finish(self, work: PlannedWork, until: str = "settled") -> None:
        """Execute the planner's work, up to a state."""
        if until == "planned":
            return
        archive_runs(self.context, work, self.job().run)
        if until == "written":
            return
        verify(self.context, work.runs)
        self.now += timedelta(minutes=1)
        commit(self.context, work.runs)
        if until != "committed":
            close_hours(self.context, work.runs)

    def job(self) -> ArchiveStep:
        choice = ReadPolicies.of(self.archive.policies.model_dump())
        return ArchiveStep(self.brokers, self.store, self.ledger, self, choice)  # type: ignore[arg-type]

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        """Write the chunks: this object is the job's engine."""
        job = job.with_keys(self.context.keys)
        require_transforms(plan.settings, BatchOrigin(keys=job.keys))
        columns = COLUMNS if plan.settings.whole_records or job.needs_all_columns else VALUE.names
        results = []
        for chunk in chunks:
            if plan.letters:
                records = read_letters(self.store, chunk, plan.letters_of(chunk), job.data_keys)
                results.append(write_chunk(chunk, records, job, self.store, Limits()))
                continue
            offsets = [n for n in range(chunk.start, chunk.end) if (chunk.name, n) not in self.absent]
            rows = [self._row(chunk.name, offset) for offset in offsets]
            whole = whole_chunk(plan, chunk.name, chunk.start)
            results.append(write_chunk(whole, [batch(rows).select(columns)], job, self.store, Limits()))
        return results

    def _row(self, name: TopicPartition, offset: int) -> Row:
        time = (self.brokers.first + offset) * HOUR
        fields = {"timestamp": time, "key": b"k", "value": b'{"n": %d}' % offset, **self.odd.get((name, offset), {})}
        return Row(offset, **fields)

    def proof(self, number: int) -> HourProof:
        """Return the proof of the `number`th hour of the day, which has one."""
        proof = self.ledger.hour(self.brokers.first + number)
        assert proof
        return proof

    def planned(self, run: str) -> Plan:
        plan = self.ledger.plan(run)
        assert plan
        return plan

    def manifest(self, run: str) -> Manifest:
        manifest = self.ledger.manifest(run)
        assert manifest
        return manifest

    def commit(self, run: str) -> Commit:
        commit = self.ledger.commit(run)
        assert commit
        return commit

    @property
    def progress(self) -> Progress:
        progress = self.ledger.progress()
        assert progress
        return progress

    def audit(self, **options: Any) -> Report:
        return audit(self.archive, self.store, datetime.now(UTC), **{"keyring": self.ledger.keyring, **options})

    def stored(self) -> list[str]:
        """The keys of this archive's objects."""
        topics = {name.topic for name in self.logs}
        return sorted(s.key for s in self.store.list("") if s.key.removeprefix("_dead_letter/").split("/")[0] in topics)
