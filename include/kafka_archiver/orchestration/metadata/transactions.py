"""Create all runs of a backfill in one transaction, on SQLite too."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from airflow import settings
from sqlalchemy import Connection, event

_WAIT_MS = 60_000
# In a server, one thread at a time: a transaction cannot begin twice.
_lock = Lock()


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
