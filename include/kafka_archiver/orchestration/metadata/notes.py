"""The note of an archive's DAG run: Airflow's scheduler calls this when the run ends.

The scheduler's loop waits for it. So it makes three small queries, no other request, and its errors only go to the log.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from kafka_archiver.orchestration.dag_run.figures import Figures
from kafka_archiver.orchestration.dag_run.note import (
    NOT_RUN_AGAIN,
    FailedRun,
    audited,
    failed,
    settled,
    settles,
    succeeded,
)
from kafka_archiver.orchestration.dag_run.xcoms import AUDITED, FIGURES

if TYPE_CHECKING:
    from airflow.models import DagRun
    from sqlalchemy.orm import Session

log = logging.getLogger(__name__)
# Failed runs that one successful run may settle.
_LAST = 50


@hookimpl
def on_dag_run_success(dag_run: "DagRun") -> None:
    """Note the figures, and in failed runs that this run has settled them."""
    _safely(_succeeded, dag_run)


@hookimpl
def on_dag_run_failed(dag_run: "DagRun") -> None:
    """Note the cause."""
    _safely(_failed, dag_run)


def _safely(write: Any, dag_run: "DagRun") -> None:
    try:
        if dag_run.dag_id.startswith(("archive_", "audit_")):
            from sqlalchemy.orm import object_session

            session = object_session(dag_run)
            if session is not None:
                write(dag_run, session)
    except Exception:
        log.warning("DAG run %s of %s gets no note", dag_run.run_id, dag_run.dag_id, exc_info=True)


def _succeeded(dag_run: "DagRun", session: "Session") -> None:
    from kafka_archiver.orchestration.metadata.database import xcoms

    results = xcoms(session, dag_run.dag_id, [dag_run.run_id], FIGURES, AUDITED)
    if audit := results.get((dag_run.run_id, "audit", AUDITED)):
        _write(dag_run, audited(audit))
        for run in _failed_before(dag_run, session):
            _write(run, settled(run.note, dag_run.run_id))
    figures = results.get((dag_run.run_id, "close_hours", FIGURES))
    if figures is None:
        return
    _write(dag_run, succeeded(Figures.model_validate(figures)))
    earlier = list(_failed_before(dag_run, session))
    works = xcoms(session, dag_run.dag_id, [run.run_id for run in earlier], "return_value")
    for run in earlier:
        failure = _value(run, works.get((run.run_id, "plan", "return_value")))
        if settles(figures, _forward(dag_run), failure):
            _write(run, settled(run.note, dag_run.run_id))


def _failed(dag_run: "DagRun", session: "Session") -> None:
    from kafka_archiver.orchestration.alerts.cause import CAUSE, NO_EXCEPTION
    from kafka_archiver.orchestration.metadata.database import xcoms
    from kafka_archiver.state.status.facts import task_order

    tasks = [ti for ti in dag_run.get_task_instances(session=session) if ti.state == "failed"]
    if not tasks:
        _write(dag_run, NOT_RUN_AGAIN)
        return
    task = min((ti.task_id for ti in tasks), key=task_order)
    cause = xcoms(session, dag_run.dag_id, [dag_run.run_id], CAUSE).get((dag_run.run_id, task, CAUSE), {})
    _write(dag_run, failed(task, cause.get("cause") or NO_EXCEPTION))


def _failed_before(dag_run: "DagRun", session: "Session") -> Iterable["DagRun"]:
    from airflow.models import DagRun
    from sqlalchemy import select

    mine = select(DagRun).where(DagRun.dag_id == dag_run.dag_id, DagRun.state == "failed", DagRun.id != dag_run.id)
    return session.scalars(mine.order_by(DagRun.id.desc()).limit(_LAST))


def _value(run: "DagRun", work: Any) -> FailedRun:
    works = tuple(work["runs"]) if isinstance(work, dict) else ()
    return FailedRun(_forward(run), run.data_interval_end or run.run_after, works)


def _forward(run: "DagRun") -> bool:
    from kafka_archiver.orchestration.dag_run.params import takes_new

    return run.run_type != "backfill" and takes_new(run.conf)


def _write(run: "DagRun", text: str) -> None:
    """Set the note. A note that a person wrote stays."""
    note = run.dag_run_note
    if note is None or note.user_id is None:
        run.note = text
