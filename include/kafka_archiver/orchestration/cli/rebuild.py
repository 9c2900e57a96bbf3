"""`airflow archive rebuild`: read what is archived again from Kafka. Starts a DAG run, and waits for its end."""

from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from airflow.api.common.trigger_dag import trigger_dag
from airflow.models import DagModel
from airflow.utils.cli import action_cli, suppress_logs_and_warning
from airflow.utils.platform import getuser
from airflow.utils.providers_configuration_loader import providers_configuration_loaded
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType

from kafka_archiver.documents import isoformat
from kafka_archiver.errors import ConfigError
from kafka_archiver.orchestration.backfill.follow import follow
from kafka_archiver.orchestration.backfill.sqlite import whole_transactions
from kafka_archiver.orchestration.cli.consent import agreed
from kafka_archiver.orchestration.cli.failures import plainly
from kafka_archiver.orchestration.cli.find import find_archive, open_archive
from kafka_archiver.orchestration.cli.states import find_run, states
from kafka_archiver.orchestration.dags import dag_id
from kafka_archiver.plan import Plan
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.rebuild import replaceable, runs_of_hour


@plainly
@action_cli  # type: ignore[untyped-decorator]
@suppress_logs_and_warning
@providers_configuration_loaded
def rebuild(args: Namespace) -> None:
    """Check that it can be done, start it and follow it."""
    if (args.hour is None) == (args.run is None):
        raise ConfigError("Rebuild what? Give --hour or --run, one of them.")
    archive = find_archive(args.archive)
    name = dag_id(archive)
    context = open_archive(archive)
    plans, wanted = _wanted(context, args)
    _require_active(name)
    offsets = f"{sum(plan.count for plan in plans):,} offsets of {', '.join(f'run {plan.run}' for plan in plans)}"
    if not args.yes and not agreed(f"Read {offsets} of archive {archive.archive} again and replace the objects?"):
        _say("Nothing was changed.")
        raise SystemExit(1)
    _say(f"Rebuilding {offsets}.")
    run_id = _trigger(name, {"rebuild": {**wanted, **({"keep": True} if args.keep else {})}})
    _say(f"Started run {run_id} of {name}.")
    try:
        state = follow(name, run_id, _say)
    except KeyboardInterrupt:
        _say(f"\nNo longer waiting; run {run_id} of {name} goes on.")
        raise SystemExit(130) from None
    _say(f"Run {run_id} of {name} has ended: {state}.")
    if state != "success":
        raise SystemExit(1)


def _wanted(context: Context, args: Namespace) -> tuple[list[Plan], dict[str, Any]]:
    """What would be replaced, and how the DAG run is told."""
    if args.hour is not None:
        # Airflow's times are a subclass with an arithmetic of its own.
        hour = datetime.fromtimestamp(args.hour.timestamp(), UTC).replace(minute=0, second=0, microsecond=0)
        return [replaceable(context, run) for run in runs_of_hour(context, hour)], {"hour": isoformat(hour)}
    run = find_run(args.run, states(context.ledger), context.archive.archive)
    return [replaceable(context, run)], {"run": run}


def _require_active(name: str) -> None:
    with create_session() as session:
        model = session.get(DagModel, name)
        if model is None or model.is_stale:
            raise ConfigError(
                f"Airflow has no DAG {name!r}: see `airflow dags list` and `airflow dags list-import-errors`."
            )
        if model.is_paused:
            raise ConfigError(
                f"DAG {name} is paused, so its run would stay queued; nothing was changed. Unpause it first, "
                f"which starts its scheduled runs too: airflow dags unpause {name}"
            )


def _trigger(name: str, conf: dict[str, Any]) -> str:
    with whole_transactions():
        run = trigger_dag(
            dag_id=name, triggered_by=DagRunTriggeredByType.CLI, triggering_user_name=getuser(), conf=conf
        )
    return str(run.run_id) if run else ""


def _say(line: str) -> None:
    print(line, flush=True)
