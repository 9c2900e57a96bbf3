"""The intervals of a backfill: which would run, run again or stay."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import Any

from airflow.models import DagModel, DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.utils.session import create_session
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.dag_run.backfill_request import BackfillRequest


@dataclass(frozen=True, slots=True)
class Row:
    """One interval. `start` and `end` are equal where the DAG's timetable has no data intervals."""

    start: datetime
    end: datetime
    partition_key: str | None
    state: str | None
    chosen: bool

    @property
    def action(self) -> str:
        """The fate of the interval: run, run again or leave."""
        if not self.chosen:
            return "leave"
        return "run again" if self.state else "run"


@dataclass(frozen=True, slots=True)
class Outlook:
    """All intervals of a request in the order in which they would run, and the state of the DAG."""

    rows: tuple[Row, ...]
    paused: bool
    stale: bool
    max_active_runs: int

    @property
    def chosen(self) -> list[Row]:
        """The intervals that would run."""
        return [row for row in self.rows if row.chosen]

    @property
    def left(self) -> Counter[str]:
        """The states of the existing runs that would stay as they are."""
        return Counter(row.state for row in self.rows if row.state and not row.chosen)


def find_outlook(request: BackfillRequest, airflow: ModuleType) -> Outlook:
    """Ask Airflow for the outlook. Raises ConfigError without such a DAG, and Airflow's own error when it refuses."""
    with create_session() as session:
        model = session.get(DagModel, request.dag_id)
        dag = SerializedDagModel.get_dag(request.dag_id, session=session)
        if model is None or dag is None:
            raise ConfigError(
                f"Airflow has no DAG {request.dag_id!r}: see `airflow dags list` and `airflow dags list-import-errors`."
            )
        chosen = airflow._do_dry_run(
            dag_id=request.dag_id,
            from_date=request.start,
            to_date=request.end,
            reverse=request.backwards,
            reprocess_behavior=airflow.ReprocessBehavior(request.reprocess),
            dag_run_conf=request.conf,
            session=session,
        )
        times = {_time(info) for info in chosen}
        infos = airflow._get_info_list(dag=dag, from_date=request.start, to_date=request.end, reverse=request.backwards)
        states = _states(request, session)
        if not infos:
            raise ConfigError(
                f"No interval of {request.dag_id} that has ended starts at {request.start.isoformat()}, "
                f"at {request.end.isoformat()} or between them: nothing to run."
            )
        rows = tuple(_row(info, states.get(_time(info)), _time(info) in times) for info in infos)
        # Tasks that run one at a time would take parallel runs in any order.
        one_by_one = all(task.max_active_tis_per_dag == 1 for task in dag.tasks)
        active = 1 if one_by_one else model.max_active_runs or 1
        return Outlook(rows, bool(model.is_paused), bool(model.is_stale), active)


def _time(info: Any) -> datetime:
    """Return the date that identifies a run: partitioned DAGs have no logical dates."""
    time: datetime = info.logical_date or info.partition_date
    return time


def _states(request: BackfillRequest, session: Session) -> dict[datetime, str]:
    within = or_(
        DagRun.logical_date.between(request.start, request.end),
        DagRun.partition_date.between(request.start, request.end),
    )
    runs = session.scalars(select(DagRun).where(DagRun.dag_id == request.dag_id, within).order_by(DagRun.id))
    return {_time(run): str(run.state) for run in runs}


def _row(info: Any, state: str | None, chosen: bool) -> Row:
    interval = info.data_interval
    start, end = (interval.start, interval.end) if interval else (_time(info), _time(info))
    return Row(start, end, info.partition_key, state, chosen)
