"""Asset events of closed hours. That Airflow makes one of each is in tests/integration/test_scheduler.py."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow.sdk.execution_time.task_runner import _serialize_outlet_events

from kafka_archiver.config import Archive
from kafka_archiver.model.proof import Contribution, HourProof, ProofObject
from kafka_archiver.orchestration.dags.assets import (
    announce,
    announce_days,
    announce_partitions,
    days_alias,
    hours_alias,
    hours_asset,
)
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.intervals import to_hour
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.close_hours import ChangedHour, ClosedHours, ClosedStretch
from tests.dags.conftest import MakeArchive

pytestmark = pytest.mark.dags
COMMITTED = datetime(2026, 11, 21, 6, 5, tzinfo=UTC)
WHEN = isoformat(COMMITTED)


class Told:
    """The events that Airflow has of an alias, oldest first; narrowed as its accessor does."""

    def __init__(self, *events: tuple[datetime, str]) -> None:
        self.events = events

    def after(self, moment: str) -> "Told":
        return Told(*(e for e in self.events if e[0] >= datetime.fromisoformat(moment)))

    def limit(self, count: int) -> "Told":
        return Told(*self.events[:count])

    def __iter__(self) -> Iterator[Any]:
        return (SimpleNamespace(extra={"event": event}) for _, event in self.events)


def changed(hour: int, rows: int, late_rows: int = 0, run: str = "r") -> ChangedHour:
    objects = tuple(ProofObject(key=f"k{n}", rows=rows, bytes=1, checksum="c") for n in range(3))
    proof = HourProof(
        archive="orders",
        hour_start=datetime(2026, 11, 21, hour, tzinfo=UTC),
        number=1,
        status="complete",
        changed_by="r",
        rows=rows,
        bytes=3,
        objects=len(objects),
        late_rows=late_rows,
        runs=(Contribution(number=1, run="r", late=False, rows=rows, objects=objects),),
    )
    return ChangedHour(run, COMMITTED, proof)


def events(
    archive: Archive, changes: list[ChangedHour], announced: Told | None = None, stretches: Sequence[ClosedStretch] = ()
) -> list[dict[str, Any]]:
    outlets: Any = OutletEventAccessors()
    inlets = {hours_alias(archive): announced or Told()}
    extras = announce(archive, ClosedHours(changes, stretches), {"inlet_events": inlets, "outlet_events": outlets})
    serialized: list[Any] = list(_serialize_outlet_events(outlets))
    assert [event["extra"] for event in serialized] == extras
    return serialized


def test_each_hour_is_an_event_of_its_own(archive: MakeArchive) -> None:
    extras = events(archive(), [changed(4, 10), changed(5, 20, late_rows=2)])
    assert [e["extra"] for e in extras] == [
        {
            "event": f"2026-11-21T0{hour}:00:00Z r {WHEN}",
            "run": "r",
            "archive": "orders",
            "hour": f"2026-11-21T0{hour}:00:00Z",
            "status": "complete",
            "rows": rows,
            "late_rows": late,
            "objects": 3,
            "proof": f"_ledger/orders/hours/2026-11-21/0{hour}.json",
        }
        for hour, rows, late in ((4, 10, 0), (5, 20, 2))
    ]
    for event in extras:
        assert event["source_alias_name"] == "archive_orders_hours"
        assert event["dest_asset_key"] == {
            "name": "archive_orders_hours",
            "uri": "s3://bucket/lake/_ledger/orders/hours",
        }


def test_what_was_told_is_not_told_again_and_what_a_crash_swallowed_is(archive: MakeArchive) -> None:
    announced = Told((COMMITTED + timedelta(minutes=1), f"2026-11-21T04:00:00Z r {WHEN}"))
    [event] = events(archive(), [changed(4, 10), changed(5, 20)], announced)
    assert event["extra"]["event"] == f"2026-11-21T05:00:00Z r {WHEN}"


def test_an_hour_that_another_run_changes_is_told_again(archive: MakeArchive) -> None:
    announced = Told((COMMITTED, f"2026-11-21T04:00:00Z r {WHEN}"))
    [event] = events(archive(), [changed(4, 12, late_rows=2, run="s")], announced)
    assert (event["extra"]["event"], event["extra"]["late_rows"]) == (
        f"2026-11-21T04:00:00Z s {WHEN}",
        2,
    )


def test_an_archive_that_began_anew_is_told_of_anew(archive: MakeArchive) -> None:
    """Its store was emptied; Airflow has the events of the one before, with the same hours and runs."""
    earlier = isoformat(COMMITTED - timedelta(minutes=6))
    announced = Told((COMMITTED - timedelta(minutes=5), f"2026-11-21T04:00:00Z r {earlier}"))
    assert len(events(archive(), [changed(4, 10)], announced)) == 1


def test_airflow_s_clock_may_be_behind_the_one_that_committed(archive: MakeArchive) -> None:
    announced = Told((COMMITTED - timedelta(minutes=9), f"2026-11-21T04:00:00Z r {WHEN}"))
    assert events(archive(), [changed(4, 10)], announced) == []


def test_no_hour_is_no_event_and_no_question(archive: MakeArchive) -> None:
    outlets: Any = OutletEventAccessors()
    assert announce(archive(), ClosedHours(), {"outlet_events": outlets}) == []
    assert list(_serialize_outlet_events(outlets)) == []
    assert hours_alias(archive()).name == "archive_orders_hours"


def test_each_hour_is_a_partition_and_no_hour_is_no_event(archive: MakeArchive) -> None:
    partitioned, outlets = archive(), OutletEventAccessors()
    declared = [hours_alias(partitioned), hours_asset(partitioned)]
    context: dict[str, Any] = {"outlet_events": outlets, "ti": SimpleNamespace(task=SimpleNamespace(outlets=declared))}
    announce_partitions(
        partitioned,
        ClosedHours(),
        [{"hour": f"2026-11-21T0{hour}:00:00Z"} for hour in (5, 4, 5)] + [{"hour": None, "run": "r"}],
        context,
    )
    serialized: list[Any] = list(_serialize_outlet_events(outlets))
    assert sorted(event["partition_key"] for event in serialized) == ["2026-11-21T04:00:00", "2026-11-21T05:00:00"]
    assert {event["dest_asset_key"]["uri"] for event in serialized} == {"archive://orders/hours"}
    assert serialized[0]["extra"] == {"archive": "orders", "proofs": "s3://bucket/lake/_ledger/orders/hours"}
    assert context["ti"].task.outlets == declared
    announce_partitions(partitioned, ClosedHours(), [], context)
    assert context["ti"].task.outlets == [hours_alias(partitioned)]
    assert len(declared) == 2, "the DAG's own list is not changed"


def day_events(
    archive: Archive,
    changes: list[ChangedHour],
    proofs: Any,
    announced: Told | None = None,
    stretches: Sequence[ClosedStretch] = (),
) -> list[dict[str, Any]]:
    outlets: Any = OutletEventAccessors()
    inlets = {days_alias(archive): announced or Told()}
    closed = ClosedHours(changes, stretches)
    count = announce_days(archive, closed, proofs, {"inlet_events": inlets, "outlet_events": outlets})
    serialized: list[Any] = list(_serialize_outlet_events(outlets))
    assert count == len(serialized)
    return serialized


def proofs_of(*hours: int) -> Any:
    """Reads the complete proofs of these hours of the day, each of ten rows, and counts."""
    proofs = {change.proof.hour: change.proof for change in (changed(hour, 10) for hour in hours)}
    asked: list[int] = []

    def proof(hour: int) -> HourProof | None:
        asked.append(hour)
        return proofs.get(hour)

    proof.asked = asked  # type: ignore[attr-defined]
    return proof


def test_a_day_is_an_event_once_its_24_hours_are_complete(archive: MakeArchive) -> None:
    [event] = day_events(archive(), [changed(22, 10), changed(23, 10)], proofs_of(*range(24)))
    assert event["dest_asset_key"] == {"name": "archive://orders/days", "uri": "archive://orders/days"}
    assert event["source_alias_name"] == "archive_orders_days"
    assert event["extra"] == {
        "event": f"2026-11-21 r {WHEN}", "run": "r", "archive": "orders", "day": "2026-11-21", "status": "complete",
        "rows": 240, "late_rows": 0, "objects": 72,
    }  # fmt: skip


def test_a_day_that_is_not_over_costs_one_question_and_one_with_a_gap_is_none(archive: MakeArchive) -> None:
    today = proofs_of(*range(6))
    assert day_events(archive(), [changed(4, 10), changed(5, 10)], today) == []
    assert len(today.asked) == 1
    assert day_events(archive(), [changed(23, 10)], proofs_of(*range(5), *range(6, 24))) == []


def test_a_day_is_told_once_a_run(archive: MakeArchive) -> None:
    announced = Told((COMMITTED, f"2026-11-21 r {WHEN}"))
    assert day_events(archive(), [changed(23, 10)], proofs_of(*range(24)), announced) == []
    assert len(day_events(archive(), [changed(4, 10, run="s")], proofs_of(*range(24)), announced)) == 1


DAY = to_hour(datetime(2026, 11, 21, tzinfo=UTC))


def stretch(*ranges: tuple[int, int]) -> ClosedStretch:
    """Hours of the day and those around it."""
    return ClosedStretch("r", COMMITTED, tuple(Range(DAY + start, DAY + end) for start, end in ranges))


def test_years_without_a_record_are_one_event_that_names_no_single_hour(archive: MakeArchive) -> None:
    hours = stretch((-26_000, -100), (-99, 4))
    [extra] = [event["extra"] for event in events(archive(), [], stretches=[hours])]
    assert extra == {
        "event": f"2023-12-03T16:00:00Z/2026-11-21T04:00:00Z r {WHEN}", "run": "r", "archive": "orders", "hour": None,
        "from": "2023-12-03T16:00:00Z", "until": "2026-11-21T04:00:00Z", "hours": 26_003, "status": "complete",
        "rows": 0, "late_rows": 0, "objects": 0, "proof": "_ledger/orders/progress.json",
    }  # fmt: skip
    assert events(archive(), [], Told((COMMITTED, extra["event"])), [hours]) == []


def test_the_days_at_the_ends_of_a_stretch_are_events_if_they_are_whole_and_those_inside_are_not(
    archive: MakeArchive,
) -> None:
    asked = proofs_of(*range(24))
    assert [e["extra"]["day"] for e in day_events(archive(), [], asked, stretches=[stretch((-100, 24))])] == [
        "2026-11-21"
    ]
    assert day_events(archive(), [], proofs_of(*range(23)), stretches=[stretch((-100, 24))]) == []
    assert day_events(archive(), [], proofs_of(*range(24)), stretches=[stretch((-100, 48))]) == []


def test_hours_of_a_stretch_are_partitions_only_on_days_that_have_other_hours(archive: MakeArchive) -> None:
    """So a DAG of days, which waits for 24 partitions, misses no day with records; years in between cost nothing."""
    partitioned, outlets = archive(), OutletEventAccessors()
    context: dict[str, Any] = {"outlet_events": outlets, "ti": SimpleNamespace(task=SimpleNamespace(outlets=[]))}
    closed = ClosedHours([changed(4, 10)], [stretch((-26_000, 4), (5, 24 + 3))])
    announce_partitions(partitioned, closed, [{"hour": "2026-11-21T04:00:00Z"}, {"hour": None, "run": "r"}], context)
    keys = [event["partition_key"] for event in _serialize_outlet_events(outlets)]  # type: ignore[typeddict-item]
    by_day = Counter(key[:10] for key in keys)
    assert by_day == {"2023-12-03": 8, "2026-11-21": 24, "2026-11-22": 3}
    outlets = OutletEventAccessors()
    announce_partitions(partitioned, closed, [{"hour": "2026-11-21T04:00:00Z"}], {**context, "outlet_events": outlets})
    assert len(list(_serialize_outlet_events(outlets))) == 1, "the stretch was told before"
