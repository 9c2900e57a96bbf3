"""Whether Airflow itself works: what no DAG can tell, because none would run."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from airflow.jobs.job import Job, most_recent_job
from airflow.models import DagModel, DagRun
from airflow.utils.session import create_session
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from kafka_archiver.advice import WATCHDOG
from kafka_archiver.documents import Value, isoformat
from kafka_archiver.steps.health import HealthCheck
from kafka_archiver.steps.health.judge import spelt

# The watchdog runs every five minutes; after so long no worker runs its task.
SILENT = timedelta(minutes=20)
_SERVICES = {"scheduler": ("SchedulerJob", "scheduler"), "dag_processor": ("DagProcessorJob", "dag-processor")}


class Services(Value):
    """The services of Airflow. `alive`: by name. `watched_at`: the end of the watchdog's last run; None: never."""

    alive: dict[str, bool]
    watched_at: datetime | None
    checks: tuple[HealthCheck, ...]


def services(now: datetime | None = None) -> Services:
    """Ask Airflow's database. Its silence is a check that fails."""
    now = now or datetime.now(UTC)
    try:
        with create_session() as session:
            jobs = {name: most_recent_job(job, session=session) for name, (job, _) in _SERVICES.items()}
            alive = {name: job is not None and job.is_alive() for name, job in jobs.items()}
            checks = [_service(name, jobs[name], alive[name], now) for name in _SERVICES]
            ended = session.scalar(_last_end())
            checks += _watchdog(session, ended, all(alive.values()), now)
    except SQLAlchemyError as error:
        said = " ".join(str(getattr(error, "orig", None) or error).split())
        check = HealthCheck(
            name="database", verdict="failing", found=f"Airflow's metadata database does not answer: {said}"
        )
        return Services(alive={}, watched_at=None, checks=(check,))
    return Services(alive=alive, watched_at=ended, checks=tuple(checks))


def _service(name: str, job: Job | None, is_alive: bool, now: datetime) -> HealthCheck:
    if is_alive:
        return HealthCheck(name=name, verdict="ok", found="it is alive")
    beat = job.latest_heartbeat if job else None
    since = f"its last sign of life was at {isoformat(beat)}, {spelt(now - beat)} ago" if beat else "it never was alive"
    effect = "no task starts" if name == "scheduler" else "no change of a file has an effect"
    return HealthCheck(name=name, verdict="failing", found=f"{since}: {effect}", do=(f"airflow {_SERVICES[name][1]}",))


def _last_end() -> "select[tuple[datetime]]":  # type: ignore[valid-type]
    return select(func.max(DagRun.end_date)).where(DagRun.dag_id == WATCHDOG, DagRun.state == "success")


def _watchdog(session: Session, ended: datetime | None, is_able: bool, now: datetime) -> Iterator[HealthCheck]:
    model = session.get(DagModel, WATCHDOG)
    unpause = f"airflow dags unpause {WATCHDOG}"
    if model is None or model.is_stale:
        yield _warning(f"Airflow has no DAG {WATCHDOG}: put dags/watchdog.py beside dags/archive.py")
    elif model.is_paused:
        yield _warning(f"DAG {WATCHDOG} is paused: nobody is told of paused DAGs and wrong files", unpause)
    elif ended is None:
        yield HealthCheck(name="watchdog", verdict="ok", found="it has not run yet")
    elif now - ended > SILENT and is_able:
        yield HealthCheck(
            name="watchdog",
            verdict="failing",
            found=f"DAG {WATCHDOG} last succeeded at {isoformat(ended)}, {spelt(now - ended)} ago: do workers run?",
            do=(f"airflow dags list-runs {WATCHDOG}",),
        )
    else:
        yield HealthCheck(name="watchdog", verdict="ok", found=f"it looked at {isoformat(ended)}")


def _warning(found: str, *do: str) -> HealthCheck:
    return HealthCheck(name="watchdog", verdict="warning", found=found, do=do)
