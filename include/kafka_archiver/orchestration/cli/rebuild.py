"""`airflow archive rebuild`: read archived offsets from Kafka again. Counts first, then starts a DAG run."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command
from airflow.utils.cli import suppress_logs_and_warning
from airflow.utils.providers_configuration_loader import providers_configuration_loaded

from kafka_archiver.messages.actions import advise, command
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.completion import ARCHIVE, YES, run_names
from kafka_archiver.orchestration.terminal.dialog import ask_consent, has_terminal
from kafka_archiver.orchestration.terminal.options import moment, option
from kafka_archiver.orchestration.terminal.output import in_audit_log, report_errors
from kafka_archiver.orchestration.terminal.stdout import say
from kafka_archiver.values.documents import isoformat

if TYPE_CHECKING:
    from kafka_archiver.context.archive_context import Context
    from kafka_archiver.model.plan import Plan
    from kafka_archiver.work.rebuild import RebuildExtent

REBUILD = ActionCommand(
    name="rebuild",
    help="Read an hour or a run from Kafka again, and replace its objects",
    description="""\
Read archived offsets from Kafka again, with the archive's present settings, and replace their objects: of all runs
that have records of an hour, or of one run. Says first what it would replace; --dry-run only says it. Asks on a
terminal; in a script, a large rebuild needs --yes. Starts a run of the DAG archive_NAME, waits until it ends and
reports each task. The stored objects stay until the new ones are final. Offsets that Kafka no longer has are refused,
and, without --fewer, a rebuild that would archive fewer records than there are.

The exit code is 0 when the run has succeeded, else 1 with the reason. Ctrl-C ends the waiting, not the run.""",
    func=lazy_load_command(f"{__name__}.rebuild"),
    args=(
        ARCHIVE,
        option("--hour", type=moment, metavar="TIME", help="The start of an hour, as in 2026-11-21T05:00:00Z"),
        option(
            "--run",
            metavar="RUN",
            completer=run_names,
            help="A run, as `airflow archive runs` names it, or the start of its interval",
        ),
        option("--keep", action="store_true", help="Keep the replaced objects in the store"),
        option("--fewer", action="store_true", help="Replace them also if fewer records are archived then"),
        option("-n", "--dry-run", action="store_true", help="Only say what would be replaced"),
        YES,
        option("-v", "--verbose", action="store_true", help="Make logging output more verbose"),
    ),
)

# More needs consent also in scripts: an hour may be in runs with records of many hours.
MANY_OFFSETS, MANY_HOURS = 1_000_000, 48
# Runs that are named in the question.
SHOWN = 5


@report_errors
@in_audit_log
@suppress_logs_and_warning
@providers_configuration_loaded
def rebuild(args: Namespace) -> None:
    """Check that the rebuild is possible, say what it replaces, ask, start it and follow it."""
    from kafka_archiver.orchestration.cli.names import find_archive
    from kafka_archiver.orchestration.connections import open_archive
    from kafka_archiver.orchestration.metadata.start import require_active, run_to_its_end
    from kafka_archiver.work.rebuild import rebuild_extent

    if (args.hour is None) == (args.run is None):
        raise ConfigError("Give either --hour or --run.")
    archive = find_archive(args.archive)
    name = dag_id(archive.archive)
    context = open_archive(archive)
    plans, selection = _selection(context, args)
    extent = rebuild_extent(context, plans)
    named = [f"run {plan.run}" for plan in plans[:SHOWN]]
    more = f" and {len(plans) - SHOWN:,} more" if len(plans) > SHOWN else ""
    offsets = f"{count(extent.offsets, 'offset')} of {', '.join(named)}{more}"
    say(str(extent))
    if args.dry_run:
        return
    require_active(name)
    if not args.yes:
        _require_consent(archive.archive, extent, selection)
        if not ask_consent(f"Read {offsets} of archive {archive.archive} again and replace the objects?"):
            say("Nothing was changed.")
            raise SystemExit(1)
    say(f"Rebuilding {offsets}.")
    chosen = {key: True for key in ("keep", "fewer") if getattr(args, key)}
    if run_to_its_end(name, {"rebuild": {**selection, **chosen}}, say) != "success":
        raise SystemExit(1)


def _require_consent(name: str, extent: RebuildExtent, selection: dict[str, Any]) -> None:
    """See that somebody can agree to a large rebuild: by `--yes`, or at the terminal.

    :raises ConfigError: neither is there.
    """
    if has_terminal() or (extent.offsets <= MANY_OFFSETS and extent.hours <= MANY_HOURS):
        return
    what = " ".join(f"--{key} {value}" for key, value in selection.items())
    agree = command(f"airflow archive rebuild {name} {what} --yes")
    limit = f"Rebuilds of at most {MANY_OFFSETS:,} offsets and {MANY_HOURS} hours need no consent in scripts."
    raise ConfigError(
        f"The rebuild would replace {extent}, and there is no terminal to ask on. Nothing was changed.",
        *advise(agree, f" agrees to it. ({limit})"),
    )


def _selection(context: Context, args: Namespace) -> tuple[list[Plan], dict[str, Any]]:
    """Return the plans to replace, and the DAG run's parameter."""
    from kafka_archiver.context.history import find_plan
    from kafka_archiver.orchestration.cli.names import run_name_of
    from kafka_archiver.work.rebuild import replaceable_plan, runs_of_hour

    if args.hour is not None:
        # Airflow's times are a subclass of datetime whose arithmetic differs.
        hour = datetime.fromtimestamp(args.hour.timestamp(), UTC).replace(minute=0, second=0, microsecond=0)
        return [replaceable_plan(context, run) for run in runs_of_hour(context, hour)], {"hour": isoformat(hour)}
    run = find_plan(context.ledger, run_name_of(args.run)).run
    return [replaceable_plan(context, run)], {"run": run}
