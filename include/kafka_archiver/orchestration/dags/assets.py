"""Asset events: tell other DAGs that an hour is complete."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from kafka_archiver.config import Archive
from kafka_archiver.documents import isoformat
from kafka_archiver.keys import hour_document, ledger_prefix

if TYPE_CHECKING:
    # Airflow parses this all day; it would load Kafka's and S3's clients.
    from kafka_archiver.steps.close_hours import Changed

# By how much Airflow's clock may be behind the one that a commit has.
_SKEW = timedelta(hours=1)
# A run closes a hundred hours after an outage; more than so many events since are not looked through.
_EVENTS = 10_000


def hours_name(archive: Archive) -> str:
    """What other DAGs subscribe to."""
    return f"archive_{archive.archive}_hours"


def hours_alias(archive: Archive) -> AssetAlias:
    """The outlet of `close_hours`. An alias, since an asset itself gets one event a task, also when no hour closed."""
    return AssetAlias(name=hours_name(archive), group="kafka-archiver")


def announce(archive: Archive, changed: "Sequence[Changed]", context: Mapping[str, Any]) -> int:
    """One event an hour that a run closed or changed, with what a reader of the hour needs to know as its extra.

    Told once: what Airflow has an event of already is not told again, however often the task is cleared.

    :param context: Airflow's, of the task `close_hours`.
    :returns: how many events.
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
    """The events that Airflow has since a moment."""
    found = inlet_events[hours_alias(archive)].after((since - _SKEW).isoformat()).limit(_EVENTS)
    return {str(event.extra.get("event")) for event in found}


def _extra(archive: Archive, found: "Changed") -> dict[str, Any]:
    proof = found.proof
    hour = None if proof.hour_start is None else isoformat(proof.hour_start)
    return {
        # The same for every attempt to tell of it, and another one for an archive that has begun anew.
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
