"""An archive on the twins of Kafka and the store, with the real steps and the real writer."""

from datetime import datetime
from typing import Any

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.proof import HourProof
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.values.intervals import from_ms, to_hour
from kafka_archiver.work.archive.step import ArchiveStep
from kafka_archiver.work.backlog import archive_runs
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.plan import Fill, PlannedWork, count_left_out, plan
from kafka_archiver.work.verify import verify
from tests.support.archiver import hour
from tests.support.topics import DAY, HOUR
from tests.support.worlds import TwinWorld


class TwinArchive:
    """The archive `orders` of the topic `orders`."""

    def __init__(
        self,
        partitions: int,
        hours: int,
        disorder: str | None = None,
        policies: dict[str, str] | None = None,
        **source: Any,
    ) -> None:
        self.now, self.hours = DAY, hours
        self.world = TwinWorld(lambda: self.now)
        self.twin, self.ledger = self.world.twin, Ledger(self.world.store, "orders")
        self.archive = Archive.model_validate({
            "archive": "orders",
            "source": {"topics": ["orders"], "settle": 0, **source},
            "timestamp": {"max_disorder": disorder} if disorder else {},
            "store": {"url": "memory://x", "codec": "none"},
            "policies": policies or {},
        })  # fmt: skip
        self.twin.create_topic("orders", partitions)

    @property
    def context(self) -> Context:
        cluster: Any = self.twin
        return Context(self.archive, cluster, self.world.store, self.ledger, lambda: from_ms(self.now))

    def file_by(self, time: dict[str, Any]) -> None:
        """Set the YAML's `timestamp`."""
        self.archive = Archive.model_validate(self.archive.model_dump(by_alias=True) | {"timestamp": time})

    def run(self, number: int, origin: Any, fill: Fill | None = None) -> None:
        self.finish(self.plan(number, origin, fill))

    def plan(self, number: int, origin: Any, fill: Fill | None = None) -> PlannedWork:
        self.now = max(self.now + 60_000, DAY + (number + 1) * HOUR + 60_000)
        return plan(self.context, hour(number), origin, fill)

    def finish(self, work: PlannedWork) -> None:
        context = self.context
        choice = ReadPolicies(self.archive.policies.lost_offsets, self.archive.policies.bad_record)
        job = ArchiveStep(context.cluster, self.world.store, self.ledger, self, choice)
        archive_runs(context, work, job.run)
        verify(context, work.runs)
        commit(context, work.runs)
        close_hours(context, work.runs)

    def write(self, planned: Any, chunks: Any, job: Any) -> Any:
        """The engine."""
        results = []
        for chunk in chunks:
            whole = planned.chunk_of(chunk.name, chunk.start)
            batches = self.twin.read_chunk(chunk, planned.settings)
            results.append(write_chunk(whole, batches, job, self.world.store, Limits(upload_threads=1)))
        return results

    def left(self, since: datetime | None = None) -> int:
        return sum(count_left_out(self.context, since).values())

    @property
    def statuses(self) -> list[str]:
        proofs = [self.proof(number) for number in range(self.hours)]
        return [proof.status if proof else "none" for proof in proofs]

    def proof(self, number: int) -> HourProof | None:
        return self.ledger.hour(to_hour(hour(number).start))

    @property
    def archived(self) -> set[tuple[int, int]]:
        """The partition and offset of each offset that is in a plan."""
        progress = self.ledger.progress()
        assert progress
        return {(p.partition, offset) for p in progress.partitions for r in p.covered for offset in range(*r)}
