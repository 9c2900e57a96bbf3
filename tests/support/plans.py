"""Plans and manifests for tests; one partition by default."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.layouts.hourly import hour_path
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.intervals import Interval, hour_start, to_hour

FIVE = datetime(2026, 11, 21, 5, tzinfo=UTC)
HOUR = to_hour(FIVE)


def at(hour: float) -> datetime:
    """The time so many hours after 05:00."""
    return FIVE + timedelta(hours=hour)


def partition(start: int, end: int, **fields: Any) -> PartitionPlan:
    """A partition with the range [start, end), at the end of its log."""
    known = {"topic": "orders", "topic_id": "id", "partition": 0, "start": start, "end": end, "log_start": 0}
    ends = {"log_end": end, "high": end, "ranges": ((start, end),) if end > start else ()}
    return PartitionPlan.model_validate(known | ends | fields)


def plan(number: int, *partitions: PartitionPlan, start: float | None = None, **fields: Any) -> Plan:
    """The `number`th plan of the line, by default for the `number`th hour after 05:00, planned a minute after its end.

    :param start: in hours after 05:00.
    """
    begin = number - 1 if start is None else start
    known = {
        "archive": "orders",
        "number": number,
        "interval": Interval(start=at(begin), end=at(begin + 1)),
        "origin": "scheduled",
        "loss_rules": 2,
        "planned_at": at(begin + 1) + timedelta(minutes=1),
        "cluster_id": "c",
        "group": "g",
        "settings": Settings(),
        "policies": {},
        "partitions": partitions,
    }
    return Plan.model_validate(known | fields)


def entry(of: Plan, offset: int, hour: int | None, chunk_start: float | None = None, **fields: Any) -> ObjectEntry:
    """An object with one record.

    :param hour: hours after 05:00; None: a record without a timestamp.
    """
    path = hour_path(None if hour is None else HOUR + hour)
    time = 0 if hour is None else int(hour_start(HOUR + hour).timestamp()) * 1000
    known = {
        "key": f"orders/{path}/orders+0+{offset}+{of.run}",
        "topic": "orders",
        "partition": 0,
        "generation": of.partitions[0].generation,
        "chunk_start": next(of.chunks()).start if chunk_start is None else chunk_start,
        "path": path,
        "rows": 1,
        "bytes": 7,
        "checksum": "c",
        "etag": "e",
        "first_offset": offset,
        "last_offset": offset,
        "min_timestamp": time,
        "max_timestamp": time,
    }
    return ObjectEntry.model_validate(known | fields)


def manifest(of: Plan, hours: Sequence[int | None] = (), lost: int = 0) -> Manifest:
    """A manifest with one record for each of these hours, at the first offsets that are not lost.

    :param lost: the number of lost offsets at the start of the first chunk. All other offsets are absent.
    """
    chunks = list(of.chunks())
    begin = chunks[0].start + lost if chunks else 0
    objects = [entry(of, begin + number, hour) for number, hour in enumerate(hours)]
    accounts = []
    for number, chunk in enumerate(chunks):
        archived, gone = (len(hours), lost) if number == 0 else (0, 0)
        absent = chunk.range.size - archived - gone
        accounts.append(
            ChunkAccount(
                **chunk.model_dump(),
                archived=archived,
                absent=absent,
                absent_ranges=((chunk.end - absent, chunk.end),) if absent else (),
                lost=gone,
                lost_ranges=((chunk.start, chunk.start + gone),) if gone else (),
            )
        )
    return Manifest.of(of, objects, accounts)
