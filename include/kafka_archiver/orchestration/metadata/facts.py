"""An archive's DAG and its runs, from Airflow's metadata database."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime

from airflow.jobs.job import most_recent_job
from airflow.models import DagModel
from airflow.models import DagRun as Row
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XCOM_RETURN_KEY, XComModel
from airflow.utils.session import create_session
from sqlalchemy import String, cast, func, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, selectinload

from kafka_archiver.config import Archive
from kafka_archiver.messages.actions import from_dicts
from kafka_archiver.messages.advice import audit_dag_id, dag_id
from kafka_archiver.orchestration.dag_run.addresses import base_url
from kafka_archiver.orchestration.dag_run.params import takes_new
from kafka_archiver.orchestration.dag_run.schedule import last_interval
from kafka_archiver.orchestration.dag_run.xcoms import ARCHIVE, CPU, FIGURES, PLAN, PROGRESS
from kafka_archiver.orchestration.metadata.airflow_health import needs_no_login
from kafka_archiver.orchestration.metadata.database import ENDED, UNFINISHED, reason_of_silence, xcoms
from kafka_archiver.orchestration.metadata.start import causes
from kafka_archiver.state.status.facts import (
    TASKS,
    DagRun,
    Effort,
    Facts,
    JobProgress,
    TaskFailure,
    Written,
    task_order,
)
from kafka_archiver.work.planned_work import PlannedWork

# Runs to read of each kind. Backfills are separate: a long backfill must not hide the schedule's runs.
LAST = 30


def facts_of(archive: Archive, asked_at: datetime) -> Facts:
    """Return what Airflow knows of the archive's DAG. `silent` has the reason if the database does not answer."""
    name = dag_id(archive.archive)
    try:
        with create_session() as session:
            return _facts(archive, name, asked_at, session)
    except SQLAlchemyError as error:
        return Facts(dag_id=name, silent=f"Airflow's metadata database does not answer: {reason_of_silence(error)}")


def _facts(archive: Archive, name: str, asked_at: datetime, session: Session) -> Facts:
    model, audits = session.get(DagModel, name), session.get(DagModel, audit_dag_id(archive.archive))
    scheduler = most_recent_job("SchedulerJob", session=session)
    last = last_interval(archive, asked_at) if archive.schedule else None
    rows = list(_rows(name, session))
    return Facts(
        dag_id=name,
        known=model is not None and not model.is_stale,
        paused=bool(model and model.is_paused),
        audit_paused=bool(audits and audits.is_paused),
        scheduler=scheduler is not None and scheduler.is_alive(),
        api=base_url(),
        needs_no_login=needs_no_login(),
        due=last.start if last else None,
        interval=last.end - last.start if last else None,
        next_due=model.next_dagrun_create_after if model else None,
        runs=_with_efforts([_run(row, session) for row in rows], name, session),
    )


def _with_efforts(runs: list[DagRun], name: str, session: Session) -> tuple[DagRun, ...]:
    """Add what the runs took, and the ledger's runs that they have finished: two queries for all."""
    ended = [run.run_id for run in runs if run.ended]
    retried = (TaskInstance.dag_id == name, TaskInstance.run_id.in_(ended), TaskInstance.try_number > 1)
    counted = select(TaskInstance.run_id, func.sum(TaskInstance.try_number - 1)).where(*retried)
    again = {run: int(count) for run, count in session.execute(counted.group_by(TaskInstance.run_id))}
    noted = xcoms(session, name, ended, CPU, FIGURES)

    progress = progress_of(name, [run.run_id for run in runs if run.state == "running"], session)

    def add_effort(run: DagRun) -> DagRun:
        spent, figures = noted.get((run.run_id, ARCHIVE, CPU)), noted.get((run.run_id, TASKS[-1], FIGURES))
        effort = Effort(retries=again.get(run.run_id, 0), cpu_seconds=spent if isinstance(spent, int | float) else None)
        if not isinstance(figures, dict):
            return run.model_copy(update={"effort": effort})
        finished = tuple(str(name) for name in figures.get("runs", ()) if name not in figures.get("final", ()))
        wrote = Written(runs=len(finished), records=figures.get("records", 0), bytes=figures.get("bytes", 0))
        return run.model_copy(update={"effort": effort, "finished": finished, "wrote": wrote})

    return tuple(
        add_effort(run) if run.ended else run.model_copy(update={"progress": progress.get(run.run_id)}) for run in runs
    )


def progress_of(dag: str, run_ids: Collection[str], session: Session) -> dict[str, JobProgress]:
    """Return the progress of the jobs of DAG runs at work. One query, none without a run."""
    progress = {}
    for (run_id, *_), value in xcoms(session, dag, run_ids, PROGRESS).items():
        # Something else if an XCom backend of the user keeps it elsewhere.
        with suppress(ValueError):
            progress[run_id] = JobProgress.model_validate(value)
    return progress


def _rows(name: str, session: Session) -> Iterable[Row]:
    """Return the last scheduled and manual runs, the last backfill runs and the unfinished runs, newest first."""
    mine = select(Row).where(Row.dag_id == name).order_by(Row.id.desc()).options(selectinload(Row.dag_run_note))
    rows = {
        row.id: row
        for few in (
            mine.where(Row.run_type != "backfill").limit(LAST),
            mine.where(Row.run_type == "backfill").limit(LAST),
            mine.where(Row.state.in_(UNFINISHED)).limit(LAST),
        )
        for row in session.scalars(few)
    }
    return [rows[number] for number in sorted(rows, reverse=True)]


def _run(row: Row, session: Session) -> DagRun:
    tasks = [] if row.state == "success" else _tasks(row, session)
    following = next((ti for ti in tasks if ti.state not in ENDED), None)
    failed = next((ti for ti in tasks if ti.state in ("failed", "up_for_retry")), None)
    # No task follows one that failed, but Airflow ends the run many seconds later.
    lost = failed if failed and failed.state == "failed" and row.state == "running" else None
    ended = row.end_date if row.state in ("success", "failed") else None
    work = _work(row.dag_id, row.run_id, session) if failed else None
    return DagRun(
        run_id=row.run_id,
        state="failed" if lost else row.state,
        forward=row.run_type != "backfill" and takes_new(row.conf),
        date=max(filter(None, (row.logical_date, row.run_after))),
        due=row.run_after,
        queued=row.queued_at,
        begun=row.start_date,
        ended=lost.end_date or row.run_after if lost else ended,
        task=following.task_id if following else None,
        task_state=str(following.state) if following and following.state else None,
        failure=_failure(row, failed, session) if failed else None,
        works=work.runs if work else (),
        replays=bool(work and work.replays),
        note=row.note,
    )


def _tasks(row: Row, session: Session) -> list[TaskInstance]:
    tasks = session.scalars(
        select(TaskInstance).where(TaskInstance.dag_id == row.dag_id, TaskInstance.run_id == row.run_id)
    )
    return sorted(tasks, key=lambda ti: task_order(ti.task_id))


def _failure(row: Row, failed: TaskInstance, session: Session) -> TaskFailure:
    cause = causes(row.dag_id, row.run_id, session).get(failed.task_id, {})
    return TaskFailure(
        task=failed.task_id,
        attempts=failed.try_number,
        permanent=bool(cause.get("permanent")),
        cause=cause.get("cause"),
        actions=from_dicts(cause.get("actions")),
        kinds=tuple(cause.get("kinds", ())),
    )


def planned_work_of(dag: str, run_id: str) -> PlannedWork | None:
    """Return the work of a DAG run; None until it is planned."""
    with create_session() as session:
        return _work(dag, run_id, session)


def _work(dag: str, run_id: str, session: Session) -> PlannedWork | None:
    """Return the result of `plan`; None if an XCom backend of the user keeps it elsewhere."""
    result = next(iter(xcoms(session, dag, [run_id], XCOM_RETURN_KEY, task=PLAN).values()), None)
    return PlannedWork.from_dict(result) if isinstance(result, dict) else None


# Results that are read, and DAG runs of one run that are named, the last ones: each that fails has the run again.
_READ, _SHOWN = 500, 3


def dag_runs_of(dag: str, runs: Collection[str]) -> dict[str, list[str]]:
    """Return the DAG runs that have worked on these runs of the ledger. One query.

    Not by the interval: a revision has that of the run that it supersedes, and a run by hand may have one of its own.
    """
    if not runs:
        return {}
    results = select(XComModel.run_id, XComModel.value).where(
        XComModel.dag_id == dag, XComModel.task_id == PLAN, XComModel.key == XCOM_RETURN_KEY
    )
    named = or_(*(cast(XComModel.value, String).contains(run, autoescape=True) for run in runs))
    dag_runs: dict[str, list[str]] = {}
    with create_session() as session:
        for row in session.execute(results.where(named).order_by(XComModel.dag_run_id.desc()).limit(_READ)):
            work = XComModel.deserialize_value(row)
            # Not a dict if an XCom backend of the user keeps it elsewhere.
            for run in work.get("runs", ()) if isinstance(work, dict) else ():
                if run in runs and len(known := dag_runs.setdefault(run, [])) < _SHOWN:
                    known.insert(0, row.run_id)
    return dag_runs
