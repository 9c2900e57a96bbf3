"""Airflow's metadata database in this process, and a scheduler that the test controls."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kafka_archiver.orchestration.alerts.cause import CAUSE

CONNECTION = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"


@contextmanager
def metadata_database(folder: Path) -> Iterator[None]:
    """A new SQLite database in `folder`; at the end this process uses its previous database again."""
    from airflow import settings
    from airflow.utils.db import initdb

    before = os.environ.get(CONNECTION)
    os.environ[CONNECTION] = f"sqlite:///{folder}/airflow.db"
    _connect(settings)
    try:
        initdb()
        yield
    finally:
        os.environ.pop(CONNECTION)
        if before is not None:
            os.environ[CONNECTION] = before
        _connect(settings)


def _connect(settings: Any) -> None:
    settings.dispose_orm()
    settings.configure_vars()
    settings.configure_orm()


@contextmanager
def database_with(folder: Path, dags: str) -> Iterator[None]:
    """A new database in `folder` that has the DAGs of this source."""
    (folder / "dags").mkdir()
    (folder / "dags" / "dags.py").write_text(dags)
    with metadata_database(folder):
        register_dags(folder / "dags")
        yield


def register_dags(folder: Path) -> None:
    """Put the DAGs of a folder into the database, as the DAG processor does, and unpause them."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models import DagModel
    from airflow.utils.session import create_session
    from sqlalchemy import update

    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(dag_folder=folder)
    assert not bag.import_errors, bag.import_errors
    sync_bag_to_db(bag, "dags-folder", None)
    with create_session() as session:
        session.execute(update(DagModel).values(is_paused=False))


class Scheduler:
    """Ends the runs of backfills in order, one per tick, in a state that the test chooses."""

    def __init__(self) -> None:
        self.ends: dict[datetime, str] = {}
        # The causes that the tasks of failed runs leave.
        self.causes: dict[datetime, str] = {}
        self.ticks = 0

    def tick(self, _: float) -> None:
        """End the next run. Tests use this in the place of sleep."""
        from airflow.models import DagRun
        from airflow.models.backfill import BackfillDagRun
        from airflow.utils.session import create_session
        from sqlalchemy import select

        self.ticks += 1
        assert self.ticks < 1000, "the backfill does not end"
        with create_session() as session:
            following = session.scalars(
                select(DagRun)
                .join(BackfillDagRun, BackfillDagRun.dag_run_id == DagRun.id)
                .where(DagRun.state == "queued")
                .order_by(BackfillDagRun.backfill_id, BackfillDagRun.sort_ordinal)
            ).first()
            if following:
                moment = datetime.now(UTC)
                following.start_date, following.end_date = moment - timedelta(seconds=7), moment
                following.state = self.ends.get(following.logical_date, "success")
                if cause := self.causes.get(following.logical_date):
                    fail_tasks(following, cause, session)


def fail_tasks(run: Any, cause: str, session: Any) -> None:
    """Set the state of a run whose tasks have all failed with this cause."""
    from airflow.models.xcom import XComModel

    for ti in run.get_task_instances(session=session):
        ti.state, ti.end_date = "failed", datetime.now(UTC)
        session.flush()
        XComModel.set(
            key=CAUSE, value={"permanent": True, "cause": cause}, dag_id=run.dag_id, task_id=ti.task_id,
            run_id=run.run_id, serialize=False, session=session,
        )  # fmt: skip
