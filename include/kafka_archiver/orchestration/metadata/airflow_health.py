"""Airflow itself: its health, which no DAG can tell because none would run."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from airflow.configuration import conf
from airflow.jobs.job import Job, most_recent_job
from airflow.models import DagModel, DagRun
from airflow.utils.session import create_session
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from kafka_archiver.messages.actions import command
from kafka_archiver.messages.advice import WATCHDOG, unpause
from kafka_archiver.messages.wording import span
from kafka_archiver.model.findings import Finding, ok, problem, warning
from kafka_archiver.orchestration.metadata.database import reason_of_silence
from kafka_archiver.values.documents import Value, isoformat

# The watchdog runs every five minutes; after so long no worker runs its task.
SILENT = timedelta(minutes=20)
_SERVICES = {"scheduler": ("SchedulerJob", "scheduler"), "dag_processor": ("DagProcessorJob", "dag-processor")}


class Services(Value):
    """The services of Airflow. `alive`: by name. `watched_at`: the end of the watchdog's last run; None: never."""

    alive: dict[str, bool]
    watched_at: datetime | None
    checks: tuple[Finding, ...]


def services(asked_at: datetime | None = None) -> Services:
    """Ask Airflow's database. Its silence is a check that fails."""
    asked_at = asked_at or datetime.now(UTC)
    try:
        with create_session() as session:
            jobs = {name: most_recent_job(job, session=session) for name, (job, _) in _SERVICES.items()}
            alive = {name: job is not None and job.is_alive() for name, job in jobs.items()}
            checks = [_service(name, jobs[name], alive[name], asked_at) for name in _SERVICES]
            ended = session.scalar(_last_end())
            checks += _watchdog(session, ended, all(alive.values()), asked_at)
    except SQLAlchemyError as error:
        check = problem("database", f"Airflow's metadata database does not answer: {reason_of_silence(error)}")
        return Services(alive={}, watched_at=None, checks=(check,))
    return Services(alive=alive, watched_at=ended, checks=tuple(checks))


def _service(name: str, job: Job | None, is_alive: bool, asked_at: datetime) -> Finding:
    if is_alive:
        return ok(name, "it is alive")
    beat = job.latest_heartbeat if job else None
    since = (
        f"its last sign of life was at {isoformat(beat)}, {span(asked_at - beat)} ago" if beat else "it never was alive"
    )
    effect = "no task starts" if name == "scheduler" else "no change of a file has an effect"
    return problem(name, f"{since}: {effect}", command(f"airflow {_SERVICES[name][1]}"))


def _last_end() -> "select[tuple[datetime]]":  # type: ignore[valid-type]
    return select(func.max(DagRun.end_date)).where(DagRun.dag_id == WATCHDOG, DagRun.state == "success")


def _watchdog(session: Session, ended: datetime | None, is_able: bool, asked_at: datetime) -> Iterator[Finding]:
    model = session.get(DagModel, WATCHDOG)
    if model is None or model.is_stale:
        yield warning("watchdog", f"Airflow has no DAG {WATCHDOG}: add it to your DAG file, see docs/install/index.md")
    elif model.is_paused:
        text = f"DAG {WATCHDOG} is paused: no alert reports paused DAGs and wrong files"
        yield warning("watchdog", text, unpause(WATCHDOG))
    elif ended is None:
        first = session.scalar(select(func.min(DagRun.run_after)).where(DagRun.dag_id == WATCHDOG))
        due = first or model.next_dagrun_create_after
        if due and asked_at - due > SILENT and is_able:
            text = f"DAG {WATCHDOG} has never succeeded, and its first run was due at {isoformat(due)}: do workers run?"
            yield problem("watchdog", text, command(f"airflow dags list-runs {WATCHDOG}"))
        else:
            yield ok("watchdog", "it has not run yet")
    elif asked_at - ended > SILENT and is_able:
        text = f"DAG {WATCHDOG} last succeeded at {isoformat(ended)}, {span(asked_at - ended)} ago: do workers run?"
        yield problem("watchdog", text, command(f"airflow dags list-runs {WATCHDOG}"))
    else:
        yield ok("watchdog", f"it looked at {isoformat(ended)}")


def needs_no_login() -> bool:
    """Tell if everybody is an administrator: only Airflow's simple auth manager has this."""
    simple = conf.get("core", "auth_manager", fallback="").endswith(".SimpleAuthManager")
    return simple and conf.getboolean("core", "simple_auth_manager_all_admins", fallback=False)
