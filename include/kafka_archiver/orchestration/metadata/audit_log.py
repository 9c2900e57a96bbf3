"""The actions of people on an archive, from Airflow's audit log."""

import ast
import json
import shlex
from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from airflow.models.log import Log
from airflow.utils.session import create_session
from sqlalchemy import or_, select
from sqlalchemy.exc import SQLAlchemyError

from kafka_archiver.messages.wording import shortened

# What the page writes, and what Airflow itself writes of triggers, pauses and cleared tasks.
_OURS, _COMMAND = "archiver_", "cli_"
_AIRFLOWS = ("trigger_dag_run", "patch_dag", "post_clear_task_instances", "clear_dag_run", "create_backfill")
# Airflow's commands of a DAG that only show something.
_SHOWS = tuple(
    f"{_COMMAND}{name}"
    for name in (
        "dag_details", "dag_list_dag_runs", "dag_list_jobs", "dag_next_execution", "dag_show", "dag_state",
        "task_failed_deps", "task_list", "task_render", "task_state", "task_states_for_dag_run",
    )
)  # fmt: skip
# Characters of the values that are shown.
_LONG = 300


class AuditEntry(NamedTuple):
    """One line of the audit log. `detail`: its values, or the command, as text; empty if there are none."""

    at: datetime | None
    who: str
    action: str
    detail: str


def last_actions(dags: Collection[str], most: int) -> list[AuditEntry]:
    """Return the last actions on these DAGs, the newest first; none if the database does not answer."""
    our_events = (Log.event.startswith(prefix, autoescape=True) for prefix in (_OURS, _COMMAND))
    named = or_(*our_events, Log.event.in_(_AIRFLOWS))
    changes = Log.event.not_in(_SHOWS)
    chosen = select(Log).where(Log.dag_id.in_(dags), named, changes).order_by(Log.id.desc()).limit(most)
    try:
        with create_session() as session:
            return [_entry(row) for row in session.scalars(chosen)]
    except SQLAlchemyError:
        return []


def _entry(row: Log) -> AuditEntry:
    if row.event.startswith(_COMMAND):
        return AuditEntry(row.dttm, row.owner_display_name or row.owner or "", "command", _command(row.extra))
    action = row.event.removeprefix(_OURS).replace("_", " ")
    return AuditEntry(row.dttm, row.owner_display_name or row.owner or "", action, _detail(row.extra))


def _detail(extra: str | None) -> str:
    return shortened(_words({name: value for name, value in _values(extra).items() if name != "method"}), _LONG)


def _words(value: object) -> str:
    """Return values with their names; none that are empty."""
    if not isinstance(value, dict):
        return str(value)
    return ", ".join(f"{name}: {_words(more)}" for name, more in value.items() if more)


def _command(extra: str | None) -> str:
    """Return a command as it was typed, and on which machine."""
    values = _values(extra)
    try:
        words = list(map(str, ast.literal_eval(str(values.get("full_command")))))
    except (ValueError, SyntaxError, TypeError):
        return ""
    line = shlex.join(["airflow", *words[1:]])
    return shortened(f"{line}, on {values.get('host_name')}", _LONG)


def _values(extra: str | None) -> dict[str, Any]:
    try:
        values = json.loads(extra or "{}")
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
