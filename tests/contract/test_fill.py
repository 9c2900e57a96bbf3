"""Filling an archive: after backfills behind wrong clocks, everything that Kafka still has is archived."""

import random
from datetime import datetime
from typing import Any

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.errors import ConfigError
from kafka_archiver.intervals import from_ms, to_hour
from kafka_archiver.ledger import Ledger
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.steps.archive.policies import ReadPolicies
from kafka_archiver.steps.archive.step import ArchiveStep
from kafka_archiver.steps.backlog import archive_runs
from kafka_archiver.steps.close_hours import close_hours
from kafka_archiver.steps.commit import commit
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.plan import Fill, left_out_of, plan
from kafka_archiver.steps.verify import verify
from kafka_archiver.writer.chunk import write_chunk
from kafka_archiver.writer.result import Limits
from tests.support.archiver import hour
from tests.support.topics import DAY, HOUR, Record
from tests.support.worlds import TwinWorld

pytestmark = pytest.mark.contract

YEAR_2090 = 3_786_912_000_000
HOURS = 6


class Latest:
    """An archive from `latest` of a topic with three partitions; one record in fifty is of the year 2090."""

    def __init__(self, **source: Any) -> None:
        self.now = DAY + HOURS * HOUR
        self.world = TwinWorld(lambda: self.now)
        self.twin, self.ledger = self.world.twin, Ledger(self.world.store, "orders")
        self.archive = Archive.model_validate({
            "archive": "orders",
            "source": {"topics": ["orders"], "settle": 0, "start": "latest", **source},
            "store": {"url": "memory://x", "codec": "none"},
        })  # fmt: skip
        self.twin.create_topic("orders", 3)
        draw = random.Random(5)
        times = sorted(DAY + draw.randrange(HOURS * HOUR) for _ in range(600))
        records = [Record(draw.randrange(3), YEAR_2090 if draw.random() < 0.02 else time, b"{}") for time in times]
        self.twin.produce("orders", records)
        self.run(HOURS - 1, "scheduled")

    @property
    def context(self) -> Context:
        cluster: Any = self.twin
        return Context(self.archive, cluster, self.world.store, self.ledger, lambda: from_ms(self.now))

    def run(self, number: int, origin: Any, fill: Fill | None = None) -> None:
        self.now = max(self.now + 60_000, DAY + (number + 1) * HOUR + 60_000)
        context = self.context
        work = plan(context, hour(number), origin, fill)
        job = ArchiveStep(context.cluster, self.world.store, self.ledger, self, ReadPolicies("fail", "fail"))
        archive_runs(context, work, job.run)
        verify(context, work.runs)
        commit(context, work.runs)
        close_hours(context, work.runs)

    def write(self, planned: Any, chunks: Any, job: Any) -> Any:
        """The engine."""
        found = []
        for chunk in chunks:
            whole = planned.chunk_of(chunk.name, chunk.start)
            batches = self.twin.read_chunk(chunk, planned.settings)
            found.append(write_chunk(whole, batches, job, self.world.store, Limits(upload_threads=1)))
        return found

    def left(self, since: datetime | None = None) -> int:
        return sum(left_out_of(self.context, since).values())

    @property
    def statuses(self) -> list[str]:
        proofs = [self.ledger.hour(to_hour(hour(number).start)) for number in range(HOURS)]
        return [proof.status if proof else "none" for proof in proofs]


@pytest.fixture
def latest() -> Latest:
    made = Latest()
    for number in random.Random(3).sample(range(HOURS - 1), HOURS - 1):
        made.run(number, "backfill")
    return made


def test_backfills_leave_records_behind_and_name_the_command(latest: Latest) -> None:
    assert latest.left() > 0
    proof = latest.ledger.hour(to_hour(hour(2).start))
    assert proof
    assert proof.status == "incomplete"
    assert "`airflow archive fill orders` archives what Kafka still has" in str(proof.reason)


def test_a_fill_takes_all_that_is_left_and_completes_the_hours(latest: Latest) -> None:
    latest.run(HOURS, "backfill", Fill())
    assert latest.left() == 0
    assert latest.statuses == ["complete"] * HOURS
    rows = sum(entry.rows for run in latest.ledger.runs() if (m := latest.ledger.manifest(run)) for entry in m.objects)
    assert rows == 600


def test_a_fill_goes_on_where_the_limit_stopped_it(latest: Latest) -> None:
    whole = latest.left()
    latest.archive = latest.archive.model_copy(
        update={"source": latest.archive.source.model_copy(update={"max_records_per_run": whole // 3 + 1})}
    )
    left = [whole]
    for number in range(HOURS, HOURS + 3):
        latest.run(number, "backfill", Fill())
        left.append(latest.left())
    assert left == sorted(set(left), reverse=True)
    assert left[-1] == 0
    assert latest.statuses == ["complete"] * HOURS


def test_a_fill_from_an_hour_on_leaves_only_what_is_older() -> None:
    made = Latest()
    middle = hour(3).start
    assert 0 < made.left(middle) < made.left()
    made.run(HOURS, "backfill", Fill(middle))
    assert made.left(middle) == 0
    assert made.left() > 0
    # What is left is older than that hour.
    assert made.statuses[3:] == ["complete"] * (HOURS - 3)


def test_a_fill_moves_no_group_and_takes_nothing_of_the_scheduled_runs(latest: Latest) -> None:
    names = [TopicPartition("orders", number) for number in range(3)]
    stands = latest.twin.committed("archiver-orders", names)
    latest.twin.produce("orders", [Record(0, latest.now, b"{}")])
    latest.run(HOURS, "backfill", Fill())
    assert latest.twin.committed("archiver-orders", names) == stands
    planned = latest.ledger.plan(hour(HOURS).id)
    assert planned
    assert all(end <= (stands[p.name] or 0) for p in planned.partitions for _, end in p.ranges)


def test_an_hour_of_another_time_is_refused() -> None:
    made = Latest()
    timestamp = type(made.archive.timestamp).model_validate({"from": "wallclock"})
    made.archive = made.archive.model_copy(update={"timestamp": timestamp})
    with pytest.raises(ConfigError, match="Fill it without `from`"):
        made.left(hour(3).start)
