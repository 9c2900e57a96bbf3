"""Airflow's refusals to create a backfill, with advice in the options of our command."""

from types import ModuleType

from airflow.utils.session import create_session
from sqlalchemy import select

from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.orchestration.backfill.request import Request
from kafka_archiver.orchestration.metadata.rest_api import api_url

_HINTS = {
    "InvalidReprocessBehavior": " (with --reset-dagruns or --rerun-failed-tasks)",
    "InvalidBackfillConf": " (in --conf)",
}


def explain_refusal(request: Request, error: Exception, airflow: ModuleType) -> PermanentError:
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
        f"or with PUT {api_url()}/api/v2/backfills/{backfill_id}/cancel."
    )
