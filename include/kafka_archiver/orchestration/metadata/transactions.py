"""Creating all runs of a backfill at once, on SQLite too."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow import settings
from sqlalchemy import Connection, event

_WAIT_MS = 60_000


@contextmanager
def whole_transactions() -> Iterator[None]:
    """On SQLite, make what is done here real transactions that wait for their turn to write.

    Python's sqlite3 commits each savepoint of Airflow's by itself, so that the scheduler sees a backfill half done,
    and gives up at once ("database is locked") where it had read before it writes. Airflow then deletes the runs it has
    created, and a scheduler that has taken one of them up dies of it (seen). This is the remedy that SQLAlchemy's own
    documentation gives. Other databases have transactions by themselves.
    """
    engine = settings.engine
    if engine is None or engine.dialect.name != "sqlite":
        yield
        return

    def begin(connection: Connection) -> None:
        connection.connection.dbapi_connection.isolation_level = None  # type: ignore[union-attr]
        connection.exec_driver_sql(f"PRAGMA busy_timeout={_WAIT_MS}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(engine, "begin", begin)
    try:
        yield
    finally:
        event.remove(engine, "begin", begin)
        # Its connections are no longer as Airflow set them up.
        engine.dispose()
