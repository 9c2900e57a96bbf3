"""The command's definition for Airflow's parser. Loaded by every `airflow` call, so it imports nothing heavy."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from airflow.cli.cli_config import ActionCommand, CLICommand, lazy_load_command

from kafka_archiver.orchestration.terminal.options import OUTPUT, moment, option, positive

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
GONE: tuple[tuple[tuple[str, ...], str], ...] = (
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

EPILOG = "Options of Airflow 2 that do not exist any more:\n" + "\n".join(f"  {', '.join(f)}: {why}" for f, why in GONE)


class _Gone(argparse.Action):
    """An option that ends the command and says what to do instead."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002
        values: str | Sequence[Any] | None,  # noqa: ARG002
        option_string: str | None = None,
    ) -> None:
        reason = next(why for flags, why in GONE if option_string in flags)
        parser.exit(2, f"{parser.prog}: {option_string} does not exist in Airflow 3: {reason}.\n")


COMMAND = ActionCommand(
    name="backfill",
    help="Run a DAG for a range of dates and wait for the runs",
    description=DESCRIPTION,
    epilog=EPILOG,
    func=lazy_load_command("kafka_archiver.orchestration.backfill.command.backfill"),
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
            option(*flags, action=_Gone, nargs="?", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
            for flags, _ in GONE
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
