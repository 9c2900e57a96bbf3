"""When an hour is complete, what came late, and that proving twice changes nothing."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.intervals import Interval, hour_of, to_ms
from kafka_archiver.keys import hour_path
from kafka_archiver.manifest import ChunkAccount, Manifest, ObjectEntry
from kafka_archiver.plan import PartitionPlan, Plan, Settings
from kafka_archiver.proof import HourProof, Progress, hours_to_prove, prove

FIVE = datetime(2026, 11, 21, 5, tzinfo=UTC)
HOUR = hour_of(to_ms(FIVE))
assert HOUR is not None


def plan(start: datetime = FIVE, hours: int = 1, closes: bool = True, origin: str = "scheduled", end: int = 10) -> Plan:
    return Plan.model_validate(
        {
            "archive": "orders",
            "interval": Interval(start=start, end=start + timedelta(hours=hours)),
            "origin": origin,
            "planned_at": start + timedelta(hours=hours, minutes=1),
            "cluster_id": "c",
            "group": "g",
            "settings": Settings(),
            "policies": {},
            "partitions": [
                PartitionPlan(
                    topic="orders",
                    topic_id="id",
                    partition=0,
                    start=0,
                    end=end,
                    log_start=0,
                    log_end=end,
                    closes=closes,
                    ranges=((0, end),),
                )
            ],
        }
    )


def manifest(of: Plan, *hours: int | None) -> Manifest:
    objects = [
        ObjectEntry(
            key=f"orders/{hour_path(hour)}/orders+0+{of.run}",
            topic="orders",
            partition=0,
            generation=0,
            chunk_start=0,
            path=hour_path(hour),
            rows=1,
            bytes=7,
            checksum="c",
            etag="e",
            first_offset=number,
            last_offset=number,
            min_timestamp=0,
            max_timestamp=0,
        )
        for number, hour in enumerate(hours)
    ]
    accounts = [
        ChunkAccount(
            **chunk.model_dump(),
            archived=len(hours),
            absent=chunk.range.size - len(hours),
            absent_ranges=((len(hours), chunk.end),),
        )
        for chunk in of.chunks()
    ]
    return Manifest.of(of, objects, accounts)


def settle(
    progress: Progress,
    hours: dict[int | None, HourProof],
    of: Plan,
    written: Manifest,
    superseded: Manifest | None = None,
) -> Progress:
    for hour, verdict in hours_to_prove(progress, of, written, superseded).items():
        hours[hour] = prove(hour, hours.get(hour), of, written, verdict)
    return progress.after(of, written, [h for h, p in hours.items() if h is not None and p.status == "open"])


def test_a_run_that_passes_the_end_of_its_interval_completes_the_hour() -> None:
    one = plan()
    hours: dict[int | None, HourProof] = {}
    progress = settle(Progress(archive="orders"), hours, one, manifest(one, HOUR))
    assert hours[HOUR].status == "complete"
    assert hours[HOUR].complete_as_of == one.planned_at
    assert hours[HOUR].closed_by == one.run
    assert progress.closed_until == one.interval.end


def test_an_idle_hour_is_completed_on_time_too() -> None:
    one = plan()
    hours: dict[int | None, HourProof] = {}
    settle(Progress(archive="orders"), hours, one, manifest(one))
    assert (hours[HOUR].status, hours[HOUR].rows) == ("complete", 0)


def test_a_capped_run_leaves_its_hour_open_until_the_next_one() -> None:
    one, two = plan(closes=False), plan(FIVE + timedelta(hours=1))
    hours: dict[int | None, HourProof] = {}
    progress = settle(Progress(archive="orders"), hours, one, manifest(one, HOUR))
    assert hours[HOUR].status == "open"
    assert progress.open_hours == (HOUR,)
    progress = settle(progress, hours, two, manifest(two))
    assert (hours[HOUR].status, hours[HOUR].closed_by) == ("complete", two.run)
    assert progress.open_hours == ()


def test_an_outage_is_made_up_for_by_one_run() -> None:
    one, later = plan(), plan(FIVE + timedelta(hours=6))
    hours: dict[int | None, HourProof] = {}
    progress = settle(Progress(archive="orders"), hours, one, manifest(one))
    settle(progress, hours, later, manifest(later, HOUR + 3))
    assert all(hours[HOUR + n].status == "complete" for n in range(7))


def test_a_record_for_an_hour_to_come_leaves_that_hour_open() -> None:
    one = plan()
    hours: dict[int | None, HourProof] = {}
    settle(Progress(archive="orders"), hours, one, manifest(one, HOUR, HOUR + 1, None))
    assert hours[HOUR + 1].status == "open"
    assert hours[None].status == "open"


def test_what_comes_after_the_hour_was_complete_is_late() -> None:
    one, two = plan(), plan(FIVE + timedelta(hours=1))
    hours: dict[int | None, HourProof] = {}
    progress = settle(Progress(archive="orders"), hours, one, manifest(one, HOUR))
    settle(progress, hours, two, manifest(two, HOUR, HOUR + 1))
    proof = hours[HOUR]
    assert (proof.rows, proof.late_rows, proof.closed_by, proof.changed_by) == (2, 1, one.run, two.run)
    assert [c.late for c in proof.runs] == [False, True]
    assert hours[HOUR + 1].late_rows == 0


def test_a_backfill_completes_its_own_hour_only() -> None:
    one = plan(origin="backfill")
    hours: dict[int | None, HourProof] = {}
    progress = settle(Progress(archive="orders"), hours, one, manifest(one, HOUR))
    assert hours[HOUR].status == "complete"
    assert progress.closed_until is None


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.lists(st.integers(0, 6), unique=True)), max_size=8))
def test_settling_a_run_again_changes_nothing(runs: list[tuple[int, bool, list[int]]]) -> None:
    progress = Progress(archive="orders")
    hours: dict[int | None, HourProof] = {}
    for number, (start, closing, touched) in enumerate(runs):
        one = plan(FIVE + timedelta(hours=start, microseconds=number), closes=closing)
        written = manifest(one, *(HOUR + t for t in touched))
        progress = settle(progress, hours, one, written)
        before = dict(hours)
        assert settle(progress, hours, one, written) == progress
        assert hours == before


def test_idle_hours_are_completed_where_intervals_begin_in_the_middle_of_hours() -> None:
    half = FIVE + timedelta(minutes=30)
    one, two = plan(half), plan(half + timedelta(hours=1))
    hours: dict[int | None, HourProof] = {}
    progress = settle(Progress(archive="orders"), hours, one, manifest(one))
    settle(progress, hours, two, manifest(two))
    assert hours[HOUR + 1].status == "complete"
    assert HOUR + 2 not in hours


def losing(of: Plan, *hours: int | None) -> Manifest:
    """A manifest with the first offsets lost, and an object for each hour behind them."""
    whole = manifest(of, *hours)
    [account] = whole.chunks
    lost = account.absent
    moved = account.model_copy(update={"absent": 0, "absent_ranges": (), "lost": lost, "lost_ranges": ((0, lost),)})
    objects = [
        o.model_copy(update={"first_offset": lost + n, "last_offset": lost + n}) for n, o in enumerate(whole.objects)
    ]
    return Manifest.of(of, objects, [moved])


def test_what_is_lost_never_turns_green() -> None:
    one, two = plan(FIVE, hours=3), plan(FIVE + timedelta(hours=3))
    hours: dict[int | None, HourProof] = {}
    progress = settle(Progress(archive="orders"), hours, one, losing(one, HOUR + 1, HOUR + 2))
    # The chunk behind the loss has records of the last two hours: all three may lack something.
    assert [hours[HOUR + n].status for n in range(3)] == ["incomplete"] * 3
    assert progress.lost == 8
    assert progress.partitions[0].lost == ((0, 8),)
    progress = settle(progress, hours, two, manifest(two, HOUR))
    assert (hours[HOUR].status, hours[HOUR].late_rows, hours[HOUR + 3].status) == ("incomplete", 0, "complete")


def test_a_run_that_lost_everything_leaves_all_hours_until_now_incomplete() -> None:
    one = plan(FIVE, hours=2)
    hours: dict[int | None, HourProof] = {}
    settle(Progress(archive="orders"), hours, one, losing(one))
    assert [hours[HOUR + n].status for n in range(2)] == ["incomplete", "incomplete"]


def test_no_backfill_completes_an_hour_that_lost_something() -> None:
    one = plan(origin="backfill")
    hours: dict[int | None, HourProof] = {}
    progress = settle(Progress(archive="orders"), hours, one, losing(one, HOUR))
    assert hours[HOUR].status == "incomplete"
    two = plan(FIVE - timedelta(minutes=1), origin="backfill")
    two = two.model_copy(update={"interval": one.interval})
    settle(progress, hours, two, manifest(two, HOUR))
    assert hours[HOUR].status == "incomplete"


def test_a_rebuild_takes_the_place_of_what_it_supersedes() -> None:
    one, two = plan(), plan(FIVE + timedelta(hours=1))
    hours: dict[int | None, HourProof] = {}
    first = manifest(one, HOUR, HOUR + 1)
    progress = settle(Progress(archive="orders"), hours, one, first)
    progress = settle(progress, hours, two, manifest(two, HOUR))
    again = Plan.model_validate(
        one.model_dump()
        | {
            "revision": 1,
            "supersedes": one.run,
            "origin": "rebuild",
            "partitions": [one.partitions[0].model_copy(update={"closes": False})],
        }
    )
    written = manifest(again, HOUR)
    after = settle(progress, hours, again, written, first)
    assert [(c.run, c.late) for c in hours[HOUR].runs] == [(again.run, False), (two.run, True)]
    assert (hours[HOUR].status, hours[HOUR].rows) == ("complete", 2)
    assert hours[HOUR + 1].runs == ()
    assert (after.partitions, after.closed_until) == (progress.partitions, progress.closed_until)
    assert settle(after, hours, again, written, first) == after


def test_a_run_of_a_log_that_was_given_up_does_not_bring_it_back() -> None:
    old = plan()
    new = plan(FIVE + timedelta(hours=1), end=4)
    new = new.model_copy(
        update={"partitions": (new.partitions[0].model_copy(update={"generation": 1, "topic_id": "new"}),)}
    )
    progress = Progress(archive="orders").after(old).after(new)
    assert (progress.partitions[0].generation, progress.partitions[0].next) == (1, 4)
    assert progress.after(old).partitions == progress.partitions
