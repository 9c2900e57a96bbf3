"""Airflow's deadline of a DAG run: an hour that is not closed in time, although its run may not even have failed."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import AsyncCallback, DeadlineAlert, DeadlineReference  # type: ignore[attr-defined] # not in its stub

from kafka_archiver.config import Archive
from kafka_archiver.config.archives import read_archives
from kafka_archiver.config.times import longest_interval
from kafka_archiver.orchestration.alerts.callbacks import AlertCallbacks
from kafka_archiver.orchestration.connections import open_ledger
from kafka_archiver.orchestration.dag_run.addresses import base_url
from kafka_archiver.orchestration.folder import config_folder

# Hours close hourly, so a last closed hour of that age is no sign of anything.
_HOUR = timedelta(hours=1)
# The triggerer calls back for several runs at once, and the first has to note what it told.
_ONE_AT_A_TIME = threading.Lock()


def deadline(archive: Archive) -> DeadlineAlert | None:
    """Return the deadline of each run; None if the archive has none.

    A run is queued at the end of its interval, when the last closed hour has the age of an interval.

    :raises ValueError: `alerts.max_age` is shorter than an interval, so each run would be late.
    """
    limit = archive.alerts.max_age
    if limit is None or archive.schedule is None:
        return None
    usual = max(longest_interval(archive.schedule), _HOUR)
    if limit <= usual:
        raise ValueError(
            f"`alerts.max_age`: expected more than the schedule's longest interval, {usual}; found {limit}"
        )
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=limit - usual,
        callback=AsyncCallback(missed, {"archive": archive.archive}),
    )


async def missed(archive: str, context: dict[str, Any]) -> None:
    """Alert if hours are late: the callback in Airflow's triggerer. A backfill may be slow without making any late.

    :param context: the DAG run as in the REST API.
    """
    await asyncio.to_thread(_missed, archive, context)


def _missed(name: str, context: dict[str, Any]) -> None:
    archive, run = read_archives(config_folder()).valid.get(name), context.get("dag_run", {})
    if archive is None or run.get("run_type") == "backfill":
        return
    with _ONE_AT_A_TIME:
        _look(archive, run)


def _look(archive: Archive, run: dict[str, Any]) -> None:
    progress = open_ledger(archive).progress()
    start = run.get("data_interval_start")
    until = progress.closed_until if progress else None
    AlertCallbacks(archive).late(
        until, datetime.now(UTC), _address(run), datetime.fromisoformat(start) if start else None
    )


def _address(run: dict[str, Any]) -> str:
    return f"{base_url()}/dags/{run.get('dag_id', '')}/runs/{run.get('dag_run_id', '')}"
