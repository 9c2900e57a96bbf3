"""An hour that a backfill proves alone, by what the archive assumes of the order of times."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.model.chunk_accounts import ChunkAccount, Witness
from kafka_archiver.model.complete_hours import complete_if_ordered
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.settings import Settings
from kafka_archiver.model.unsure_hours import Unsure
from kafka_archiver.values.intervals import to_ms
from tests.support.plans import HOUR, at, entry, partition, plan

MINUTE = 60_000


def backfill(*, start: int = 10, end: int = 20, chunk: int = 100, **fields: Any) -> Plan:
    """Return the plan of a backfill of the hour from five on, planned four hours later."""
    backfilled = partition(start, end, **({"high": 50, "log_end": 50} | fields))
    return plan(1, backfilled, start=0, origin="backfill", max_disorder_ms=5 * MINUTE, planned_at=at(4),
                settings=Settings(chunk_records=chunk))  # fmt: skip


def written(of: Plan, times: list[int], at_offset: int | None = None) -> Manifest:
    """Records at the plan's first offsets, or from one on, at these minutes after five."""
    objects, accounts, left = [], [], list(enumerate(times, start=at_offset or of.partitions[0].start))
    for chunk in of.chunks():
        mine = [(offset, minute) for offset, minute in left if offset in chunk.range]
        stamps = [to_ms(at(0)) + minute * MINUTE for _, minute in mine]
        latest, disorder = -1, 0
        for stamp in stamps:
            disorder, latest = max(disorder, latest - stamp), max(latest, stamp)
        objects += [
            entry(of, offset, minute // 60, chunk.start, min_timestamp=stamp, max_timestamp=stamp)
            for (offset, minute), stamp in zip(mine, stamps, strict=True)
        ]
        absent = chunk.range.size - len(mine)
        accounts.append(
            ChunkAccount(
                **chunk.model_dump(),
                archived=len(mine),
                absent=absent,
                disorder=disorder,
                absent_ranges=((chunk.end - absent, chunk.end),) if absent else (),
            )
        )
    return Manifest.of(of, objects, accounts)


def hours(of: Plan, times: list[int], before: Progress | None = None) -> set[int]:
    manifest = written(of, times)
    after = (before or Progress(archive="orders")).after(of, "committed", manifest)
    return {hour - HOUR for hour in complete_if_ordered(of, manifest, after)}


def test_a_backfill_that_has_all_of_its_interval_proves_its_hour_and_names_the_assumption() -> None:
    of = backfill()
    manifest = written(of, [-3, 0, 10, 8, 59, 70])
    proofs = complete_if_ordered(of, manifest, Progress(archive="orders").after(of, "committed", manifest))
    assert {h - HOUR: (j.status, j.as_of, j.assumes) for h, j in proofs.items()} == {
        0: ("complete", at(4), "no record is more than 300 s older than an earlier one of its partition")
    }


def test_without_the_assumption_it_proves_nothing() -> None:
    of = backfill().model_copy(update={"max_disorder_ms": None})
    assert hours(of, [0, 1]) == set()


@pytest.mark.parametrize("chunk", [100, 1, 3])
@given(times=st.lists(st.integers(-10, 80), max_size=10))
def test_one_record_that_breaks_the_assumption_voids_it_also_across_chunks(chunk: int, times: list[int]) -> None:
    worst = max((a - b for n, a in enumerate(times) for b in times[n:]), default=0)
    assert hours(backfill(chunk=chunk), times) == ({0} if worst <= 5 else set())


@pytest.mark.parametrize(
    "fields",
    [
        # What retention has removed, and what an open transaction holds back, may have been of the hour.
        {"start": 10, "log_start": 10},
        {"end": 20, "log_end": 20, "high": 21},
        # A further revision has not looked at the ends again: so may what came, or went, since the first one.
        {"end": 20, "log_end": 20, "high": None},
        {"start": 10, "log_start": 11, "ranges": ((11, 20),)},
    ],
)
def test_what_the_log_does_not_give_any_more_or_not_yet_voids_it(fields: dict[str, Any]) -> None:
    assert hours(backfill(**fields), [0]) == set()


def test_it_does_not_where_the_archive_has_it() -> None:
    earlier = Progress(archive="orders").after(plan(1, partition(0, 10), start=-9))
    assert hours(backfill(log_start=10).model_copy(update={"number": 2}), [0], earlier) == {0}


def test_neither_hours_that_may_lack_what_is_lost_nor_those_that_are_not_over_are_proved() -> None:
    unsure = Progress(archive="orders", unsure=Unsure(until=at(1), reason="lost"))
    assert hours(backfill(), [0], unsure) == set()
    assert hours(backfill().model_copy(update={"planned_at": at(0.9)}), [0]) == set()


@given(times=st.lists(st.integers(-10, 80), min_size=1, max_size=10), data=st.data())
def test_so_it_does_where_several_backfills_have_read_it(times: list[int], data: st.DataObject) -> None:
    """Pieces of one range in any order: each is read once, and the last one is judged by all that was read."""
    cuts = sorted(data.draw(st.sets(st.integers(1, len(times)), max_size=3)) | {0, len(times)})
    pieces = data.draw(st.permutations(list(pairwise(cuts))))
    progress, proved = Progress(archive="orders"), set()
    for number, (start, end) in enumerate(pieces, start=1):
        ranges = {"ranges": ((10 + start, 10 + end),)}
        of = backfill(end=10 + len(times), **ranges).model_copy(update={"number": number})
        manifest = written(of, times[start:end], at_offset=10 + start)
        progress = progress.after(of, "committed", manifest)
        proved = {hour - HOUR for hour in complete_if_ordered(of, manifest, progress)}
        assert number == len(pieces) or not proved
    worst = max(a - b for n, a in enumerate(times) for b in times[n:])
    assert proved == ({0} if worst <= 5 else set())


def test_a_record_of_a_wrong_clock_voids_the_backfills_that_find_nothing_left_to_read() -> None:
    """Whoever reads it first sees it; those after it had their hours called complete."""
    first, second = backfill(), backfill(ranges=()).model_copy(update={"number": 2})
    progress = Progress(archive="orders").after(first, "committed", manifest := written(first, [0, 80, 1]))
    assert complete_if_ordered(first, manifest, progress) == {}
    nothing = Manifest.of(second, [], [])
    assert complete_if_ordered(second, nothing, progress.after(second, "committed", nothing)) == {}


def test_the_last_record_of_a_chunk_counts_also_where_it_was_filtered() -> None:
    of = backfill(chunk=1, end=12)
    first, second = written(of, [0, 1]).chunks
    filtered = first.model_copy(
        update={"archived": 0, "filtered": 1, "last": Witness(offset=10, timestamp=to_ms(at(1)), value=None)}
    )
    manifest = Manifest.of(of, [entry(of, 11, 0, 11)], [filtered, second])
    assert complete_if_ordered(of, manifest, Progress(archive="orders").after(of, "committed", manifest)) == {}
