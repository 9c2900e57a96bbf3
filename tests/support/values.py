"""Hypothesis strategies for plans and their manifests."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.layouts.hourly import hour_path
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.model.object_keys import ObjectName, is_dead_letter, object_key
from kafka_archiver.model.plan import Chunk, PartitionPlan, Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.intervals import Interval
from kafka_archiver.values.ranges import Range

FIVE = datetime(2026, 11, 21, 5, tzinfo=UTC)
# Hours 2026-11-21 05, 06 and 07, and no hour.
HOURS = (498_677, 498_678, 498_679, None)

LAST = 60
offsets = st.integers(0, LAST)
ranges = st.builds(Range, offsets, offsets)


@st.composite
def disjoint_ranges(draw: st.DrawFn, least: int = 0) -> tuple[Range, ...]:
    """At least `least` ranges, sorted, not empty; some touch."""
    bounds = sorted(draw(st.sets(offsets, min_size=least + 1, max_size=6)))
    return tuple(Range(*pair) for n, pair in enumerate(pairwise(bounds)) if n < least or draw(st.booleans()))


def plan(*partitions: PartitionPlan, start: datetime = FIVE, **changes: Any) -> Plan:
    """A plan of the hour from `start`."""
    fields = {
        "archive": "orders",
        "number": 1,
        "interval": Interval(start=start, end=start + timedelta(hours=1)),
        "origin": "scheduled",
        "planned_at": start + timedelta(hours=1),
        "cluster_id": "cluster",
        "group": "archiver-orders",
        "settings": Settings(),
        "policies": {"lost_offsets": "record_loss"},
        "partitions": partitions,
    }
    return Plan.model_validate({**fields, **changes})


@st.composite
def plans(draw: st.DrawFn, least: int = 0) -> Plan:
    """A plan with at least `least` partitions, and ranges in each."""
    partitions = [
        PartitionPlan(
            topic=topic,
            topic_id=f"id of {topic}",
            partition=number,
            start=0,
            end=LAST,
            log_start=0,
            log_end=LAST,
            high=LAST,
            ranges=taken[gone:],
            lost=taken[:gone],
        )
        for topic, number in sorted(
            draw(st.sets(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=least, max_size=2))
        )
        for taken in [draw(disjoint_ranges(least))]
        for gone in [draw(st.integers(0, len(taken) - least))]
    ]
    return plan(
        *partitions,
        origin=draw(st.sampled_from(["scheduled", "manual", "backfill"])),
        planned_at=FIVE + timedelta(hours=1, microseconds=draw(st.integers(0, 10**9))),
        settings=Settings(chunk_records=draw(st.integers(8, 40))),
    )


def _objects(chunk: Chunk, records: int, dead: bool = False, each: int = 1) -> Iterator[ObjectEntry]:
    """One object an hour, with one record each, and the rest in the last. `each`: rows per record."""
    for number, hour in enumerate(HOURS[:records]):
        mine = 1 if number < len(HOURS[:records]) - 1 else records - number
        path = hour_path(hour)
        yield ObjectEntry(
            key=object_key(
                ObjectName(chunk.topic, chunk.partition, chunk.start, chunk.generation), path, ".jsonl.gz", dead
            ),
            topic=chunk.topic,
            partition=chunk.partition,
            generation=chunk.generation,
            chunk_start=chunk.start,
            path=path,
            rows=each * mine,
            records=None if each == 1 else mine,
            bytes=100,
            checksum="0" * 32 + "-1",
            etag="0" * 32 + "-1",
            first_offset=chunk.start,
            last_offset=chunk.end - 1,
            min_timestamp=0,
            max_timestamp=0,
        )


def _sidecar(item: ObjectEntry) -> ObjectEntry:
    return item.model_copy(update={"key": f"{item.key}.index.json", "rows": 0, "records": None, "sidecar_of": item.key})


@st.composite
def accounts(draw: st.DrawFn, chunk: Chunk, least: int = 0) -> ChunkAccount:
    """At least `least` archived offsets, with one or three rows each; others filtered, dead-lettered or absent."""
    first, second, third = sorted(draw(st.tuples(*[st.integers(chunk.start + least, chunk.end)] * 3)))
    return ChunkAccount(
        **chunk.model_dump(),
        archived=first - chunk.start,
        filtered=second - first,
        dead_lettered=third - second,
        absent=chunk.end - third,
        absent_ranges=((third, chunk.end),) if third < chunk.end else (),
        rows=3 * (first - chunk.start) if first > chunk.start and draw(st.booleans()) else None,
    )


@st.composite
def runs(draw: st.DrawFn, least: int = 0, sidecars: bool = False) -> tuple[Plan, Manifest]:
    """A plan and its correct manifest, made from chunks in any order; with at least `least` of everything."""
    drawn = draw(plans(least))
    drawn_accounts = [draw(accounts(chunk, least)) for chunk in drawn.chunks()]
    objects = [
        item
        for account in drawn_accounts
        for dead, records in ((False, account.archived), (True, account.dead_lettered))
        for item in _objects(account.chunk, records, dead, 3 if account.rows and not dead else 1)
    ]
    if sidecars:
        objects += [_sidecar(item) for item in objects if not is_dead_letter(item.key)]
    return drawn, Manifest.of(drawn, draw(st.permutations(objects)), draw(st.permutations(drawn_accounts)))
