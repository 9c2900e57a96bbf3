"""The actions of people on an archive, from Airflow's audit log."""

import json
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from airflow.models.log import Log
from airflow.utils.session import create_session
from sqlalchemy import or_, select
from sqlalchemy.exc import SQLAlchemyError

# What the page writes, and what Airflow itself writes of triggers, pauses and cleared tasks.
_OURS = "archiver_"
_AIRFLOWS = ("trigger_dag_run", "patch_dag", "post_clear_task_instances", "clear_dag_run", "create_backfill")


class AuditEntry(NamedTuple):
    """One line of the audit log. `detail`: its values as text; empty if there are none."""

    at: datetime | None
    who: str
    action: str
    detail: str


def last_actions(dags: Collection[str], most: int) -> list[AuditEntry]:
    """Return the last actions on these DAGs, the newest first; none if the database does not answer."""
    named = or_(Log.event.startswith(_OURS, autoescape=True), Log.event.in_(_AIRFLOWS))
    chosen = select(Log).where(Log.dag_id.in_(dags), named).order_by(Log.id.desc()).limit(most)
    try:
        with create_session() as session:
            return [_entry(row) for row in session.scalars(chosen)]
    except SQLAlchemyError:
        return []


def _entry(row: Log) -> AuditEntry:
    action = row.event.removeprefix(_OURS).replace("_", " ")
    return AuditEntry(row.dttm, row.owner_display_name or row.owner or "", action, _detail(row.extra))


def _detail(extra: str | None) -> str:
    try:
        values = json.loads(extra or "{}")
    except ValueError:
        return ""
    shown = values if isinstance(values, dict) else {}
    parts = [f"{name}: {value}" for name, value in shown.items() if value and name != "method"]
    return ", ".join(parts)[:300]
