"""The functions of `airflow.models.backfill` that `airflow backfill create` itself calls, and their refusals.

They are private to Airflow. Every use goes through this module, which notices a version that has changed them before
anything is created.
"""

from inspect import signature
from types import ModuleType
from typing import Any

from airflow.api_fastapi.common.dagbag import resolve_run_on_latest_version
from airflow.utils.session import create_session
from sqlalchemy import select

from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.orchestration.dag_run.addresses import base_url
from kafka_archiver.orchestration.dag_run.backfill_request import BackfillRequest
from kafka_archiver.orchestration.metadata.database import whole_transactions

_PARAMETERS = {
    "_get_info_list": ("dag", "from_date", "to_date", "reverse"),
    "_do_dry_run": ("dag_id", "from_date", "to_date", "reverse", "reprocess_behavior", "dag_run_conf", "session"),
    "_create_backfill": (
        "dag_id", "from_date", "to_date", "max_active_runs", "reverse", "dag_run_conf", "triggering_user_name",
        "reprocess_behavior", "run_on_latest_version",
    ),
}  # fmt: skip
_CLASSES = ("AlreadyRunningBackfill", "Backfill", "BackfillDagRun", "NoBackfillRunsToCreate", "ReprocessBehavior")


def airflow_backfill(request: BackfillRequest) -> ModuleType:
    """Return the module, after checking the names and parameters that we use.

    :raises PermanentError: this Airflow has changed them; the message has the supported command for the request.
    """
    try:
        from airflow.models import backfill

        for name in _CLASSES:
            getattr(backfill, name)
        for name, parameters in _PARAMETERS.items():
            signature(getattr(backfill, name)).bind(**dict.fromkeys(parameters))
    except (ImportError, AttributeError, TypeError) as error:
        from airflow import __version__

        raise PermanentError(
            f"`airflow dags backfill` does not support Airflow {__version__} ({error}). Use: {request.equivalent}"
        ) from error
    return backfill


def create_backfill(request: BackfillRequest, airflow: ModuleType, active: int, user: str) -> Any:
    """Create the runs, as an Airflow user. Returns Airflow's backfill.

    :param active: the most of the runs that may be active at once.
    """
    with create_session() as session:
        latest = resolve_run_on_latest_version(None, request.dag_id, session, fallback=True)
    with whole_transactions():
        return airflow._create_backfill(
            dag_id=request.dag_id,
            from_date=request.start,
            to_date=request.end,
            max_active_runs=active,
            reverse=request.backwards,
            dag_run_conf=request.conf,
            triggering_user_name=user,
            reprocess_behavior=airflow.ReprocessBehavior(request.reprocess),
            run_on_latest_version=latest,
        )


_HINTS = {
    "InvalidReprocessBehavior": " (with --reset-dagruns or --rerun-failed-tasks)",
    "InvalidBackfillConf": " (in --conf)",
}


def explain_refusal(request: BackfillRequest, error: Exception, airflow: ModuleType) -> PermanentError:
    """Return the error to raise in place of Airflow's."""
    if not isinstance(error, airflow.AlreadyRunningBackfill):
        return ConfigError(f"{error}{_HINTS.get(type(error).__name__, '')}")
    with create_session() as session:
        active = airflow.Backfill.dag_id == request.dag_id, airflow.Backfill.completed_at.is_(None)
        ids = session.scalars(select(airflow.Backfill.id).where(*active)).all()
    return PermanentError(
        f"Another backfill of {request.dag_id} is not finished, and Airflow runs one backfill of a DAG at a time. "
        f"Wait until it has finished. {' '.join(map(how_to_cancel, ids))}"
    )


def how_to_cancel(backfill_id: int) -> str:
    """Say where to cancel a backfill; Airflow has no command for it."""
    return (
        f"Cancel backfill {backfill_id} in Airflow's UI (Backfills of the DAG) "
        f"or with PUT {base_url()}/api/v2/backfills/{backfill_id}/cancel."
    )
