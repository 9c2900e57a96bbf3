"""Airflow's metadata database: states of runs and tasks, retries while it restarts, transactions on SQLite."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from airflow import settings
from airflow.models.xcom import XComModel
from sqlalchemy import Connection, event, select
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

# UNFINISHED: of DAG runs. ENDED: of tasks.
UNFINISHED = ("queued", "running")
ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")
# While following runs: a restarted database is back by then.
FOLLOWING_SECONDS = 600
_WAIT_MS = 60_000
# In a server, one thread at a time: a transaction cannot begin twice.
_lock = Lock()
Result = TypeVar("Result")


def retry_while_down(ask: Callable[[], Result], seconds: float) -> Result:
    """Return the result of `ask`, which must be repeatable. Retry for so long while the database cannot answer."""
    retrying = Retrying(
        retry=retry_if_exception_type(OperationalError),
        stop=stop_after_delay(seconds),
        wait=wait_random_exponential(multiplier=0.2, max=10),
        reraise=True,
    )
    return retrying(ask)


def reason_of_silence(error: SQLAlchemyError) -> str:
    """Return why the database does not answer, in one line."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def xcoms(
    session: Session, dag: str, runs: Collection[str], *keys: str, task: str | None = None
) -> dict[tuple[str, str, str], Any]:
    """Return the XComs of DAG runs, by run, task and key. One query, none without a run."""
    if not runs:
        return {}
    left = select(XComModel).where(XComModel.dag_id == dag, XComModel.run_id.in_(runs), XComModel.key.in_(keys))
    chosen = left if task is None else left.where(XComModel.task_id == task)
    return {(x.run_id, x.task_id, x.key): XComModel.deserialize_value(x) for x in session.scalars(chosen)}


@contextmanager
def whole_transactions() -> Iterator[None]:
    """On SQLite, run what is inside in real transactions that wait for the write lock. No effect on other databases.

    Without it, Python's sqlite3 commits each of Airflow's savepoints separately, so the scheduler sees half a backfill.
    A transaction that reads before it writes also fails at once ("database is locked"). Airflow then deletes the runs
    that it has created, which crashes a scheduler that already works on one of them (seen). SQLAlchemy's documentation
    gives this remedy.
    """
    engine = settings.engine
    if engine is None or engine.dialect.name != "sqlite":
        yield
        return

    def begin(connection: Connection) -> None:
        connection.connection.dbapi_connection.isolation_level = None  # type: ignore[union-attr]
        connection.exec_driver_sql(f"PRAGMA busy_timeout={_WAIT_MS}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with _lock:
        event.listen(engine, "begin", begin)
        try:
            yield
        finally:
            event.remove(engine, "begin", begin)
            # The connections no longer have Airflow's settings.
            engine.dispose()
