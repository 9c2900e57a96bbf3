"""The command `airflow dags backfill`. Loaded by every `airflow` call, so it imports nothing heavy at its top."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ActionCommand, CLICommand, lazy_load_command
from airflow.utils.cli import suppress_logs_and_warning
from airflow.utils.platform import getuser
from airflow.utils.providers_configuration_loader import providers_configuration_loaded

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.terminal.dialog import ask_consent
from kafka_archiver.orchestration.terminal.options import OUTPUT, moment, option, positive
from kafka_archiver.orchestration.terminal.output import Table, in_audit_log, report_errors, show
from kafka_archiver.orchestration.terminal.stdout import for_data_alone, say

if TYPE_CHECKING:
    from kafka_archiver.orchestration.backfill.outlook import Outlook
    from kafka_archiver.orchestration.dag_run.backfill_request import BackfillRequest

DESCRIPTION = """\
Run a DAG for the data intervals of a range of dates, and wait until all of these runs have finished.

The intervals are those that start at --start-date, at --end-date or between them. Both ends are included, as in
Airflow 2: with an hourly schedule, -s 2026-11-21T05:00 -e 2026-11-21T05:00 is exactly the run for 05:00 to 06:00, and
-s 2026-11-21 -e 2026-11-22 is 25 runs, the last of them for 00:00 to 01:00 of the 22nd. (DAGs whose timetable has no
data intervals: the logical date counts; partitioned DAGs: the partition date.) Intervals that have not ended yet are
left out.

Existing runs stay as they are, unless --rerun-failed-tasks or --reset-dagruns is given. Runs that are queued or running
are never touched.

Airflow's scheduler executes the runs, with the DAG's own executor and pools. The command prints a line when a run ends.
The exit code is 0 when all runs have succeeded. It is 1 when a run has failed, when a run that failed earlier was not
run again, or when nothing could be started. Ctrl-C ends the waiting, not the runs."""

# Airflow 2's options that Airflow 3's scheduler does not support, and what to do instead.
REMOVED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--continue-on-failures",), "a failed run never stops the others now: leave it out"),
    (("--delay-on-limit",), "runs wait in the scheduler's queue now: leave it out"),
    (("--disable-retry",), "set `retries` in the DAG"),
    (("-x", "--donot-pickle"), "nothing is pickled now: leave it out"),
    (("-i", "--ignore-dependencies"), "use `airflow tasks test` for one task"),
    (("-I", "--ignore-first-depends-on-past"), "use --reset-dagruns, which starts with the first date"),
    (("-l", "--local"), "the scheduler's executor runs the tasks: leave it out"),
    (("-m", "--mark-success"), "mark the runs as success in the UI"),
    (("--pool",), "set `pool` in the DAG"),
    (("-S", "--subdir"), "the DAG is taken from the metadata database: leave it out"),
    (("-t", "--task-regex"), "clear single tasks with `airflow tasks clear -t`"),
    (("--treat-dag-as-regex", "--treat-dag-id-as-regex"), "call the command once for each DAG"),
)

EPILOG = "Options of Airflow 2 that do not exist any more:\n" + "\n".join(
    f"  {', '.join(f)}: {why}" for f, why in REMOVED
)


class _Removed(argparse.Action):
    """An option that ends the command and says what to do instead."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002
        values: str | Sequence[Any] | None,  # noqa: ARG002
        option_string: str | None = None,
    ) -> None:
        reason = next(why for flags, why in REMOVED if option_string in flags)
        parser.exit(2, f"{parser.prog}: {option_string} does not exist in Airflow 3: {reason}.\n")


COMMAND = ActionCommand(
    name="backfill",
    help="Run a DAG for a range of dates and wait for the runs",
    description=DESCRIPTION,
    epilog=EPILOG,
    func=for_data_alone(lazy_load_command(f"{__name__}.backfill")),
    args=(
        option("dag_id", help="The DAG"),
        option(
            "-s",
            "--start-date",
            type=moment,
            help="First interval start to run, included: 2026-11-21, 2026-11-21T05:00 or 2026-11-21T05:00:00+01:00.\n"
            "A date alone is midnight; without a zone it is core.default_timezone (UTC if not changed).\n"
            "Default: --end-date",
        ),
        option("-e", "--end-date", type=moment, help="Last interval start to run, included. Default: --start-date"),
        option("-n", "--dry-run", action="store_true", help="Only list the intervals and what would happen to each"),
        option(
            "--rerun-failed-tasks",
            action="store_true",
            help="Also run failed runs again. (Airflow 3 clears all tasks of such a run.)",
        ),
        option(
            "--reset-dagruns",
            action="store_true",
            help="Also run finished runs again, whether they succeeded or failed.\n"
            "Asks for consent when started from a terminal without --yes",
        ),
        option("-B", "--run-backwards", action="store_true", help="Start with the latest interval"),
        option("-c", "--conf", metavar="JSON", help="A JSON object: the `conf` of the runs"),
        option(
            "--max-active-runs",
            type=positive,
            metavar="N",
            help="How many of the runs may be active at once. Default: the DAG's max_active_runs,\n"
            "which Airflow 3 itself does not apply to backfills; for an archive 1, because its runs\n"
            "work one at a time",
        ),
        option("-y", "--yes", action="store_true", help="Do not ask for consent to --reset-dagruns"),
        OUTPUT,
        option("-v", "--verbose", action="store_true", help="Make logging output more verbose"),
        *(
            option(*flags, action=_Removed, nargs="?", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
            for flags, _ in REMOVED
        ),
    ),
)


def extend_dags() -> list[CLICommand]:
    """Add the command to Airflow's `dags` group. Airflow has no supported way to extend an existing group.

    Airflow's parser calls this while it collects command groups; this function returns none.
    """
    from airflow.cli import cli_parser

    try:
        commands: list[Any] = cli_parser.airflow_commands
        index = next(i for i, c in enumerate(commands) if c.name == "dags")
        subcommands = tuple(commands[index].subcommands)
        if not any(c.name == COMMAND.name for c in subcommands):
            commands[index] = commands[index]._replace(subcommands=(*subcommands, COMMAND))
    except (AttributeError, StopIteration, TypeError):
        # Print nothing in other commands.
        if sys.argv[1:3] == ["dags", COMMAND.name]:
            print(
                "`airflow dags backfill` cannot be added to this version of Airflow: "
                "use `airflow backfill create --dag-id DAG_ID --from-date START --to-date END`.",
                file=sys.stderr,
            )
    return []


_DATABASE_SECONDS = 60


@report_errors
@in_audit_log
@suppress_logs_and_warning
@providers_configuration_loaded
def backfill(args: Namespace) -> None:
    """Create the runs and follow them; with --dry-run, list them."""
    from airflow.sdk.exceptions import AirflowException

    from kafka_archiver.orchestration.backfill.outlook import find_outlook
    from kafka_archiver.orchestration.dag_run.backfill_request import BackfillRequest
    from kafka_archiver.orchestration.metadata.backfills import airflow_backfill, explain_refusal
    from kafka_archiver.orchestration.metadata.database import retry_while_down

    request = BackfillRequest.of(args)
    airflow = airflow_backfill(request)
    try:
        outlook = retry_while_down(lambda: find_outlook(request, airflow), _DATABASE_SECONDS)
        if args.dry_run:
            _list(args.output, outlook)
        elif not outlook.chosen:
            say(f"Nothing to run. {_left(outlook)}")
            raise SystemExit(1 if outlook.left["failed"] else 0)
        else:
            _require_active(request, outlook)
            _require_consent(request, outlook, args.yes)
            _run(request, outlook, airflow)
    except (AirflowException, airflow.NoBackfillRunsToCreate) as error:
        raise explain_refusal(request, error, airflow) from error


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


def _require_active(request: BackfillRequest, outlook: Outlook) -> None:
    if outlook.stale:
        raise ConfigError(f"DAG {request.dag_id} is no longer in the DAG files; its runs would stay queued.")
    if outlook.paused:
        raise ConfigError(
            f"DAG {request.dag_id} is paused, so its runs would stay queued; nothing was changed. Unpause it first, "
            f"which starts its scheduled runs too: airflow dags unpause {request.dag_id}"
        )


def _require_consent(request: BackfillRequest, outlook: Outlook, yes: bool) -> None:
    """Ask for consent before finished runs run again."""
    again = sum(row.state is not None for row in outlook.chosen)
    if yes or request.reprocess != "completed" or not again:
        return
    if not ask_consent(f"{_runs(again)} of {request.dag_id} will run again. Go on?"):
        say("Nothing was changed.")
        raise SystemExit(1)


def _runs(number: int) -> str:
    return f"{number} run" if number == 1 else f"{number} runs"


def _run(request: BackfillRequest, outlook: Outlook, airflow: ModuleType) -> None:
    from kafka_archiver.orchestration.backfill.wait import settle, wait
    from kafka_archiver.orchestration.metadata.backfills import create_backfill, how_to_cancel
    from kafka_archiver.orchestration.metadata.database import retry_while_down

    retry_while_down(lambda: settle(request.dag_id), _DATABASE_SECONDS)
    active = request.max_active_runs or outlook.max_active_runs
    created = create_backfill(request, airflow, active, getuser())
    say(f"Backfill {created.id} of {request.dag_id}: {_runs(len(outlook.chosen))}, at most {active} at a time.")
    try:
        counts = wait(created.id, say)
    except KeyboardInterrupt:
        say(f"\nNo longer waiting; the runs go on. {how_to_cancel(created.id)}")
        raise SystemExit(130) from None
    retry_while_down(lambda: settle(request.dag_id), _DATABASE_SECONDS)
    say(f"Backfill {created.id} of {request.dag_id} has ended: {_counts(counts)}. {_left(outlook)}".rstrip())
    if counts["failed"] or outlook.left["failed"]:
        raise SystemExit(1)
