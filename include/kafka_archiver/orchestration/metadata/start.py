"""Start a run of an archive's DAG from a command, and wait for its end."""

from collections.abc import Callable
from typing import Any

from airflow.api.common.trigger_dag import trigger_dag
from airflow.models import DagModel
from airflow.utils.platform import getuser
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy.orm import Session

from kafka_archiver.messages.actions import advise, command
from kafka_archiver.messages.advice import unpause
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.metadata.database import whole_transactions
from kafka_archiver.orchestration.metadata.follow import follow


def require_active(name: str) -> None:
    """Check that a run of the DAG would start.

    :raises ConfigError: Airflow has no such DAG, or it is paused.
    """
    with create_session() as session:
        if active_dag(name, session).is_paused:
            raise ConfigError(
                f"DAG {name} is paused, so its run would stay queued; nothing was changed.",
                *advise("Unpause it first, which starts its scheduled runs too: ", unpause(name)),
            )


def active_dag(name: str, session: Session) -> DagModel:
    """Return a DAG of Airflow, paused or not.

    :raises ConfigError: Airflow has no such DAG.
    """
    model = session.get(DagModel, name)
    if model is None or model.is_stale:
        raise ConfigError(
            f"Airflow has no DAG {name!r}.",
            *advise("See ", command("airflow dags list"), " and ", command("airflow dags list-import-errors"), "."),
        )
    return model


def run_to_success(name: str, conf: dict[str, Any], say: Callable[[str], None]) -> None:
    """Start a run and follow it, as `run_to_its_end`.

    :raises ConfigError: the run has not succeeded.
    """
    if (state := run_to_its_end(name, conf, say)) != "success":
        raise ConfigError(f"The run of {name} has ended: {state}. The log of the task that failed has the cause.")


def run_to_its_end(name: str, conf: dict[str, Any], say: Callable[[str], None]) -> str:
    """Start a run and report how each task and the run end. Returns the run's state.

    :raises SystemExit: Ctrl-C was pressed; the run goes on.
    """
    with whole_transactions():
        run = trigger_dag(
            dag_id=name, triggered_by=DagRunTriggeredByType.CLI, triggering_user_name=getuser(), conf=conf
        )
    run_id = str(run.run_id) if run else ""
    say(f"Started run {run_id} of {name}.")
    try:
        state = follow(name, run_id, say)
    except KeyboardInterrupt:
        say(f"\nNo longer waiting; run {run_id} of {name} goes on.")
        raise SystemExit(130) from None
    say(f"Run {run_id} of {name} has ended: {state}.")
    return state
