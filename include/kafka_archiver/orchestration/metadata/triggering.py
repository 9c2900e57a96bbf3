"""Start DAG runs and backfills from the API server, for a user whose permission was checked. Does not wait."""

import json
from datetime import datetime
from typing import Any

from airflow.api.common.trigger_dag import trigger_dag
from airflow.models.log import Log
from airflow.sdk.exceptions import AirflowException
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy.exc import SQLAlchemyError

from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.orchestration.dag_run.backfill_request import BackfillRequest
from kafka_archiver.orchestration.metadata.backfills import airflow_backfill, create_backfill
from kafka_archiver.orchestration.metadata.database import reason_of_silence, whole_transactions
from kafka_archiver.orchestration.metadata.start import active_dag, require_active


def start_run(dag: str, conf: dict[str, Any], user: str) -> str:
    """Start a run of a DAG. Returns its id.

    :raises ConfigError: Airflow has no such DAG, it is paused, or Airflow refuses the conf.
    """
    require_active(dag)
    try:
        with whole_transactions():
            run = trigger_dag(
                dag_id=dag, triggered_by=DagRunTriggeredByType.UI, triggering_user_name=user, conf=conf or None
            )
    except (AirflowException, ValueError) as error:
        raise ConfigError(f"Airflow refuses the run: {error}") from error
    except SQLAlchemyError as error:
        raise _unanswered(error) from error
    return str(run.run_id) if run else ""


def start_backfill(dag: str, first: datetime, last: datetime, reprocess: str, user: str) -> str:
    """Start a backfill of the intervals that start from `first` to `last`. Returns its name.

    :param reprocess: which existing runs to run again: none, failed or completed.
    :raises ConfigError: Airflow refuses it: nothing to run, another one at work, or the DAG is paused.
    """
    require_active(dag)
    request = BackfillRequest(dag, first, last, reprocess, backwards=False, conf=None, max_active_runs=1)
    airflow = airflow_backfill(request)
    try:
        backfill = create_backfill(request, airflow, 1, user)
    except airflow.AlreadyRunningBackfill as error:
        raise ConfigError(
            f"Another backfill of {dag} is not finished, and Airflow runs one backfill of a DAG at a time"
        ) from error
    except (AirflowException, ValueError) as error:
        raise ConfigError(f"Airflow refuses the backfill: {error}") from error
    except SQLAlchemyError as error:
        raise _unanswered(error) from error
    return f"backfill {backfill.id}"


def unpause(dag: str) -> None:
    """Unpause a DAG, as Airflow's UI does.

    :raises ConfigError: Airflow has no such DAG.
    """
    try:
        with whole_transactions(), create_session() as session:
            if (model := active_dag(dag, session)).is_paused:
                model.is_paused = False
    except SQLAlchemyError as error:
        raise _unanswered(error) from error


def _unanswered(error: SQLAlchemyError) -> TransientError:
    return TransientError(
        f"Airflow's metadata database does not answer: {reason_of_silence(error)}. See whether a run has started, then "
        "try again"
    )


def note(event: str, dag: str, user: str, **more: Any) -> None:
    """Write a line of Airflow's audit log."""
    with create_session() as session:
        session.add(
            Log(event=event, owner=user, owner_display_name=user, dag_id=dag, extra=json.dumps(more, default=str))
        )
