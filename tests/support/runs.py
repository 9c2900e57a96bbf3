"""Runs of the archive `orders` on brokers that a test defines, as if Spark had archived them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_archiver.context.archive_context import Context
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.values.intervals import Interval, to_ms
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.plan import PlannedWork, plan
from tests.support.worlds import Clocked

DAY = datetime(2026, 11, 20, tzinfo=UTC)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def hour(number: int) -> Interval:
    return Interval(start=DAY + timedelta(hours=number), end=DAY + timedelta(hours=number + 1))


def run(context: Context, number: int, until: str = "settled") -> None:
    """The `number`th run of the day, up to a state, with one object per chunk."""
    moment = hour(number).end + timedelta(minutes=5)
    timed: Any = Clocked(context.store, lambda: to_ms(moment))
    context = replace(context, store=timed, clock=lambda: moment)
    work = plan(context, hour(number), "scheduled")
    if until != "planned":
        finish(context, work, until)


def finish(context: Context, work: PlannedWork, until: str = "settled") -> None:
    """Do what is planned of the last run, up to a state."""
    plan = context.ledger.plan(work.runs[-1])
    assert plan is not None
    accounts = [ChunkAccount(**c.model_dump(), archived=c.range.size) for c in plan.chunks()]
    objects = [
        ObjectEntry(
            key=f"orders/o+{a.partition}+{a.start}.jsonl.gz", topic=a.topic, partition=a.partition, generation=0,
            chunk_start=a.start, path=f"date=2026-11-20/hour={a.start:02d}", rows=a.archived, bytes=1000 * a.archived,
            checksum=f"md5of{a.partition}{a.start}-1", etag="etag", first_offset=a.start, last_offset=a.end - 1,
            min_timestamp=0, max_timestamp=1,
        )
        for a in accounts
    ]  # fmt: skip
    context.ledger.create_manifest(Manifest.of(plan, objects, accounts))
    if until != "written":
        moment = context.clock()
        commit(replace(context, clock=lambda: moment + timedelta(minutes=1)), work.runs)
    if until == "settled":
        close_hours(context, work.runs)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]
