"""Asset events that tell other DAGs that an hour, or a day, is complete."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from kafka_archiver.config import Archive
from kafka_archiver.model.object_keys import hour_document, ledger_prefix, progress_document
from kafka_archiver.model.proof import HourProof
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.intervals import hour_start

if TYPE_CHECKING:
    # Not at runtime: the import loads Kafka's and S3's clients, and Airflow parses this module all day.
    from kafka_archiver.work.close_hours import ChangedHour, ClosedHours, ClosedStretch

# How far Airflow's clock may be behind the clock of a commit.
_SKEW = timedelta(hours=1)
# Events to look through. A run after an outage closes a hundred hours.
_EVENTS = 10_000


def hours_name(archive: Archive) -> str:
    """Return the name that other DAGs subscribe to."""
    return f"archive_{archive.archive}_hours"


def hours_alias(archive: Archive) -> AssetAlias:
    """Return the outlet of `close_hours`. An alias: an asset gets an event from each task, even if no hour closed."""
    return AssetAlias(name=hours_name(archive), group="kafka-archiver")


def days_alias(archive: Archive) -> AssetAlias:
    """Return the other outlet of `close_hours`, for whole days."""
    return AssetAlias(name=f"archive_{archive.archive}_days", group="kafka-archiver")


def days_asset(archive: Archive) -> Asset:
    """Return the asset of the days. Other DAGs may also be scheduled on it: `Asset("archive://orders/days")`."""
    return Asset(uri=f"archive://{archive.archive}/days")


def hours_asset(archive: Archive) -> Asset:
    """Return the asset whose partitions are the hours, for DAGs with a run for each hour: PartitionedAssetTimetable."""
    return Asset(uri=f"archive://{archive.archive}/hours")


def announce(archive: Archive, closed: "ClosedHours", context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Emit one event for each hour that a run closed or changed, and one for all hours of its stretches.

    The extra says what a reader of the hour needs.

    An event that Airflow has already is not emitted again, however often the task is cleared.

    :param context: Airflow's context of the task `close_hours`.
    :returns: the extras of the events.
    """
    times = [*(hour.since for hour in closed.changed), *(stretch.since for stretch in closed.stretches)]
    if not times:
        return []
    asset = Asset(name=hours_name(archive), uri=f"{archive.store.url.rstrip('/')}/{_hours(archive)}")
    sent = _sent_events(hours_alias(archive), min(times), context["inlet_events"])
    extras = [_extra(archive, hour) for hour in closed.changed]
    extras += [_stretch_extra(archive, stretch) for stretch in closed.stretches]
    events = [extra for extra in extras if extra["event"] not in sent]
    for extra in events:
        context["outlet_events"][hours_alias(archive)].add(asset, extra=extra)
    return events


def announce_partitions(
    archive: Archive, closed: "ClosedHours", events: Sequence[Mapping[str, Any]], context: Mapping[str, Any]
) -> None:
    """Emit an event for each of these hours, with the hour as its partition key: `2026-11-21T05:00:00`, UTC.

    Airflow's mappers of times read such keys as they are. Partitions of one task share their extra. Of a stretch only
    hours of days with other hours have one, so that the 24 hours of such a day come together.

    :param events: the extras of hours and stretches that Airflow does not know of yet.
    """
    unknown = {extra["run"] for extra in events if not extra["hour"]}
    moments = {str(extra["hour"]) for extra in events if extra["hour"]}
    moments |= {isoformat(hour_start(hour)) for hour in _beside_others(closed, unknown)}
    keys = sorted(moment.removesuffix("Z") for moment in moments)
    asset, task = hours_asset(archive), context["ti"].task
    if keys:
        accessor = context["outlet_events"][asset]
        accessor.extra = {"archive": archive.archive, "proofs": f"{archive.store.url.rstrip('/')}/{_hours(archive)}"}
        accessor.add_partitions(keys)
    else:
        # Else Airflow makes an event without a partition, on which a DAG of partitions cannot run.
        task.outlets = [outlet for outlet in task.outlets if outlet != asset]


def announce_days(
    archive: Archive, closed: "ClosedHours", proof: Callable[[int], HourProof | None], context: Mapping[str, Any]
) -> int:
    """Emit one event for each day of 24 complete hours (UTC) that a run closed or changed.

    A day inside a stretch has none: the stretch's event is about its hours, too.

    :param proof: reads the proof of an hour. Of a day that is not over, it is asked for one hour.
    :returns: the number of events.
    """
    days = [(run, since, proofs) for day, (run, since) in _days(closed).items() if (proofs := _whole(day, proof))]
    if not days:
        return 0
    sent = _sent_events(days_alias(archive), min(since for _, since, _ in days), context["inlet_events"])
    events = [extra for day in days if (extra := _day_extra(archive, *day))["event"] not in sent]
    for extra in events:
        context["outlet_events"][days_alias(archive)].add(days_asset(archive), extra=extra)
    return len(events)


def _days(closed: "ClosedHours") -> dict[int, tuple[str, datetime]]:
    """Return the days, since 1970, that are not inside a stretch, each with the last run that closed hours of it."""
    days = {day: (stretch.run, stretch.since) for stretch in closed.stretches for day in _ends(stretch)}
    return days | {day: (hour.run, hour.since) for hour in closed.changed if (day := _day(hour)) is not None}


def _beside_others(closed: "ClosedHours", runs: Collection[str]) -> set[int]:
    """Return the hours of these runs' stretches that are of a day with other hours."""
    days = _days(closed)
    ranges = (hours for stretch in closed.stretches if stretch.run in runs for hours in stretch.ranges)
    return {hour for hours in ranges for hour in range(*hours) if hour // 24 in days}


def _day(changed: "ChangedHour") -> int | None:
    """Return the days since 1970 until the hour."""
    return None if changed.proof.hour is None else changed.proof.hour // 24


def _ends(stretch: "ClosedStretch") -> set[int]:
    """Return the days, since 1970, in which its hours begin and end: others of these may have been complete before."""
    return {stretch.ranges[0].start // 24, (stretch.ranges[-1].end - 1) // 24}


def _whole(day: int, proof: Callable[[int], HourProof | None]) -> list[HourProof]:
    """Return the proofs of the day's hours if all are complete; else none. The last hour first: it closes last."""
    proofs: list[HourProof] = []
    for hour in reversed(range(24 * day, 24 * day + 24)):
        hour_proof = proof(hour)
        if hour_proof is None or hour_proof.status != "complete":
            return []
        proofs.append(hour_proof)
    return proofs


def _day_extra(archive: Archive, run: str, since: datetime, proofs: Sequence[HourProof]) -> dict[str, Any]:
    day = f"{proofs[-1].hour_start:%Y-%m-%d}"
    return {
        "event": f"{day} {run} {isoformat(since)}",
        "run": run,
        "archive": archive.archive,
        "day": day,
        "status": "complete",
        "rows": sum(proof.rows for proof in proofs),
        "late_rows": sum(proof.late_rows for proof in proofs),
        "objects": sum(proof.objects for proof in proofs),
    }


def _hours(archive: Archive) -> str:
    return f"{ledger_prefix(archive.archive)}hours"


def _sent_events(alias: AssetAlias, since: datetime, inlet_events: Any) -> set[str]:
    """Return the ids of the events that Airflow has recorded since a moment."""
    events = inlet_events[alias].after((since - _SKEW).isoformat()).limit(_EVENTS)
    return {str(event.extra.get("event")) for event in events}


def _extra(archive: Archive, changed: "ChangedHour") -> dict[str, Any]:
    proof = changed.proof
    hour = None if proof.hour_start is None else isoformat(proof.hour_start)
    return {
        # The same in every attempt; different for an archive that was begun anew.
        "event": f"{hour} {changed.run} {isoformat(changed.since)}",
        "run": changed.run,
        "archive": archive.archive,
        "hour": hour,
        "status": proof.status,
        "rows": proof.rows,
        "late_rows": proof.late_rows,
        "objects": proof.objects,
        "proof": hour_document(archive.archive, proof.hour),
    }


def _stretch_extra(archive: Archive, stretch: "ClosedStretch") -> dict[str, Any]:
    since, until = (isoformat(hour_start(hour)) for hour in (stretch.ranges[0].start, stretch.ranges[-1].end))
    return {
        "event": f"{since}/{until} {stretch.run} {isoformat(stretch.since)}",
        "run": stretch.run,
        "archive": archive.archive,
        "hour": None,
        # The hours in between that have a record have events of their own, and are not among these.
        "from": since,
        "until": until,
        "hours": stretch.size,
        "status": "complete",
        "rows": 0,
        "late_rows": 0,
        "objects": 0,
        "proof": progress_document(archive.archive),
    }
