"""Asset events that tell other DAGs that an hour is complete."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from kafka_archiver.config import Archive
from kafka_archiver.documents import isoformat
from kafka_archiver.keys import hour_document, ledger_prefix

if TYPE_CHECKING:
    # Not at runtime: the import loads Kafka's and S3's clients, and Airflow parses this module all day.
    from kafka_archiver.steps.close_hours import Changed

# How far Airflow's clock may be behind the clock of a commit.
_SKEW = timedelta(hours=1)
# Events to look through. A run after an outage closes a hundred hours.
_EVENTS = 10_000


def hours_name(archive: Archive) -> str:
    """The name that other DAGs subscribe to."""
    return f"archive_{archive.archive}_hours"


def hours_alias(archive: Archive) -> AssetAlias:
    """The outlet of `close_hours`. An alias: a plain asset gets one event from each task, even if no hour closed."""
    return AssetAlias(name=hours_name(archive), group="kafka-archiver")


def announce(archive: Archive, changed: "Sequence[Changed]", context: Mapping[str, Any]) -> int:
    """Emit one event for each hour that a run closed or changed. Its extra says what a reader of the hour needs.

    An event that Airflow has already is not emitted again, however often the task is cleared.

    :param context: Airflow's context of the task `close_hours`.
    :returns: the number of events.
    """
    if not changed:
        return 0
    asset = Asset(
        name=hours_name(archive), uri=f"{archive.store.url.rstrip('/')}/{ledger_prefix(archive.archive)}hours"
    )
    told = _told(archive, min(found.since for found in changed), context["inlet_events"])
    events = [extra for found in changed if (extra := _extra(archive, found))["event"] not in told]
    for extra in events:
        context["outlet_events"][hours_alias(archive)].add(asset, extra=extra)
    return len(events)


def _told(archive: Archive, since: datetime, inlet_events: Any) -> set[str]:
    """The ids of the events that Airflow has recorded since a moment."""
    found = inlet_events[hours_alias(archive)].after((since - _SKEW).isoformat()).limit(_EVENTS)
    return {str(event.extra.get("event")) for event in found}


def _extra(archive: Archive, found: "Changed") -> dict[str, Any]:
    proof = found.proof
    hour = None if proof.hour_start is None else isoformat(proof.hour_start)
    return {
        # The same in every attempt; different for an archive that was begun anew.
        "event": f"{hour} {found.run} {isoformat(found.since)}",
        "run": found.run,
        "archive": archive.archive,
        "hour": hour,
        "status": proof.status,
        "rows": proof.rows,
        "late_rows": proof.late_rows,
        "objects": proof.objects,
        "proof": hour_document(archive.archive, proof.hour),
    }
