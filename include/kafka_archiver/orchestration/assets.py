"""Asset events: tell other DAGs that an hour is complete."""

from collections.abc import Iterable
from typing import Any

from airflow.sdk import Asset, AssetAlias

from kafka_archiver.config import Archive
from kafka_archiver.documents import isoformat
from kafka_archiver.keys import hour_document, ledger_prefix
from kafka_archiver.proof import HourProof


def hours_name(archive: Archive) -> str:
    """What other DAGs subscribe to."""
    return f"archive_{archive.archive}_hours"


def hours_alias(archive: Archive) -> AssetAlias:
    """The outlet of `close_hours`. An alias, since an asset itself gets one event a task, also when no hour closed."""
    return AssetAlias(name=hours_name(archive), group="kafka-archiver")


def announce(archive: Archive, proofs: Iterable[HourProof], outlet_events: Any) -> None:
    """One event an hour, with what a reader of the hour needs to know as its extra."""
    asset = Asset(
        name=hours_name(archive), uri=f"{archive.store.url.rstrip('/')}/{ledger_prefix(archive.archive)}hours"
    )
    for proof in proofs:
        outlet_events[hours_alias(archive)].add(asset, extra=_extra(archive, proof))


def _extra(archive: Archive, proof: HourProof) -> dict[str, Any]:
    return {
        "archive": archive.archive,
        "hour": None if proof.hour_start is None else isoformat(proof.hour_start),
        "status": proof.status,
        "rows": proof.rows,
        "late_rows": proof.late_rows,
        "objects": sum(len(run.objects) for run in proof.runs),
        "proof": hour_document(archive.archive, proof.hour),
    }
