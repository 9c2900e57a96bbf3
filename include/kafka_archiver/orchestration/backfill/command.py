"""The command `airflow dags backfill`. Imported only when it runs."""

import sys
from argparse import Namespace
from collections import Counter
from types import ModuleType

from airflow.api_fastapi.common.dagbag import resolve_run_on_latest_version
from airflow.sdk.exceptions import AirflowException
from airflow.utils.cli import action_cli, suppress_logs_and_warning
from airflow.utils.platform import getuser
from airflow.utils.providers_configuration_loader import providers_configuration_loaded
from airflow.utils.session import create_session

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.backfill.internals import airflow_backfill
from kafka_archiver.orchestration.backfill.outlook import Outlook, find_outlook
from kafka_archiver.orchestration.backfill.refusal import explain_refusal, how_to_cancel
from kafka_archiver.orchestration.backfill.request import Request
from kafka_archiver.orchestration.backfill.wait import settle, wait
from kafka_archiver.orchestration.metadata.patience import retry_while_down
from kafka_archiver.orchestration.metadata.transactions import whole_transactions
from kafka_archiver.orchestration.terminal.consent import ask_consent
from kafka_archiver.orchestration.terminal.failures import report_errors
from kafka_archiver.orchestration.terminal.output import Table, show

_DATABASE_SECONDS = 60


@report_errors
@action_cli  # type: ignore[untyped-decorator]
@suppress_logs_and_warning
@providers_configuration_loaded
def backfill(args: Namespace) -> None:
    """Create the runs and follow them; with --dry-run, list them."""
    request = Request.of(args)
    airflow = airflow_backfill(request)
    try:
        outlook = retry_while_down(lambda: find_outlook(request, airflow), _DATABASE_SECONDS)
        if args.dry_run:
            _list(args.output, outlook)
        elif not outlook.chosen:
            _say(f"Nothing to run. {_left(outlook)}")
            raise SystemExit(1 if outlook.left["failed"] else 0)
        else:
            _require_active(request, outlook)
            _require_consent(request, outlook, args.yes)
            _run(request, outlook, airflow)
    except (AirflowException, airflow.NoBackfillRunsToCreate) as error:
        raise explain_refusal(request, error, airflow) from error


def _say(line: str) -> None:
    print(line, flush=True)


def _list(output: str, outlook: Outlook) -> None:
    names = ["interval_start", "interval_end", "partition_key", "existing_run", "action"]
    document = [
        dict(zip(names, (r.start, r.end, r.partition_key, r.state, r.action), strict=True)) for r in outlook.rows
    ]
    if not any(r.partition_key for r in outlook.rows):
        names.remove("partition_key")
    table = Table([name.replace("_", " ") for name in names], [[row[name] for name in names] for row in document])
    show(output, document, [table])
    print(f"Dry run, nothing was changed. {len(outlook.chosen)} to run. {_left(outlook)}", file=sys.stderr)


def _left(outlook: Outlook) -> str:
    """Describe the existing runs that stay as they are."""
    if not outlook.left:
        return ""
    hint = " --rerun-failed-tasks runs the failed ones again." if outlook.left["failed"] else ""
    return f"Existing runs that stay as they are: {_counts(outlook.left)}.{hint}"


def _counts(states: Counter[str]) -> str:
    return ", ".join(f"{number} {state}" for state, number in sorted(states.items()))


def _require_active(request: Request, outlook: Outlook) -> None:
    if outlook.stale:
        raise ConfigError(f"DAG {request.dag_id} is no longer in the DAG files; its runs would stay queued.")
    if outlook.paused:
        raise ConfigError(
            f"DAG {request.dag_id} is paused, so its runs would stay queued; nothing was changed. Unpause it first, "
            f"which starts its scheduled runs too: airflow dags unpause {request.dag_id}"
        )


def _require_consent(request: Request, outlook: Outlook, yes: bool) -> None:
    """Ask for consent before finished runs run again."""
    again = sum(row.state is not None for row in outlook.chosen)
    if yes or request.reprocess != "completed" or not again:
        return
    if not ask_consent(f"{_runs(again)} of {request.dag_id} will run again. Go on?"):
        _say("Nothing was changed.")
        raise SystemExit(1)


def _runs(number: int) -> str:
    return f"{number} run" if number == 1 else f"{number} runs"


def _run(request: Request, outlook: Outlook, airflow: ModuleType) -> None:
    retry_while_down(lambda: settle(request.dag_id), _DATABASE_SECONDS)
    active = request.max_active_runs or outlook.max_active_runs
    with create_session() as session:
        latest = resolve_run_on_latest_version(None, request.dag_id, session, fallback=True)
    with whole_transactions():
        created = airflow._create_backfill(
            dag_id=request.dag_id,
            from_date=request.start,
            to_date=request.end,
            max_active_runs=active,
            reverse=request.backwards,
            dag_run_conf=request.conf,
            triggering_user_name=getuser(),
            reprocess_behavior=airflow.ReprocessBehavior(request.reprocess),
            run_on_latest_version=latest,
        )
    _say(f"Backfill {created.id} of {request.dag_id}: {_runs(len(outlook.chosen))}, at most {active} at a time.")
    try:
        counts = wait(created.id, _say)
    except KeyboardInterrupt:
        _say(f"\nNo longer waiting; the runs go on. {how_to_cancel(created.id)}")
        raise SystemExit(130) from None
    retry_while_down(lambda: settle(request.dag_id), _DATABASE_SECONDS)
    _say(f"Backfill {created.id} of {request.dag_id} has ended: {_counts(counts)}. {_left(outlook)}".rstrip())
    if counts["failed"] or outlook.left["failed"]:
        raise SystemExit(1)
