"""`airflow archive rebuild`: read archived offsets from Kafka again. Counts first, then starts a DAG run."""

from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from airflow.utils.cli import action_cli, suppress_logs_and_warning
from airflow.utils.providers_configuration_loader import providers_configuration_loaded

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.history import find_plan
from kafka_archiver.messages.actions import advise, command
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.wording import count
from kafka_archiver.model.plan import Plan
from kafka_archiver.orchestration.cli.find import find_archive
from kafka_archiver.orchestration.cli.run_name import run_name_of
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.metadata.start import require_active, run_to_its_end
from kafka_archiver.orchestration.terminal.consent import agreed, can_ask
from kafka_archiver.orchestration.terminal.failures import plainly
from kafka_archiver.values.documents import isoformat
from kafka_archiver.work.rebuild import RebuildExtent, rebuild_extent, replaceable_plan, runs_of_hour

# More needs consent also in scripts: an hour may be in runs with records of many hours.
MANY_OFFSETS, MANY_HOURS = 1_000_000, 48
# Runs that are named in the question.
SHOWN = 5


@plainly
@action_cli  # type: ignore[untyped-decorator]
@suppress_logs_and_warning
@providers_configuration_loaded
def rebuild(args: Namespace) -> None:
    """Check that the rebuild is possible, say what it replaces, ask, start it and follow it."""
    if (args.hour is None) == (args.run is None):
        raise ConfigError("Give either --hour or --run.")
    archive = find_archive(args.archive)
    name = dag_id(archive.archive)
    context = open_archive(archive)
    plans, wanted = _wanted(context, args)
    found = rebuild_extent(context, plans)
    named = [f"run {plan.run}" for plan in plans[:SHOWN]]
    more = f" and {len(plans) - SHOWN:,} more" if len(plans) > SHOWN else ""
    offsets = f"{count(found.offsets, 'offset')} of {', '.join(named)}{more}"
    _say(str(found))
    if args.dry_run:
        return
    require_active(name)
    if not args.yes:
        _require_consent(archive.archive, found, wanted)
        if not agreed(f"Read {offsets} of archive {archive.archive} again and replace the objects?"):
            _say("Nothing was changed.")
            raise SystemExit(1)
    _say(f"Rebuilding {offsets}.")
    chosen = {key: True for key in ("keep", "fewer") if getattr(args, key)}
    if run_to_its_end(name, {"rebuild": {**wanted, **chosen}}, _say) != "success":
        raise SystemExit(1)


def _require_consent(name: str, found: RebuildExtent, wanted: dict[str, Any]) -> None:
    """See that somebody can agree to a large rebuild: by `--yes`, or at the terminal.

    :raises ConfigError: neither is there.
    """
    if can_ask() or (found.offsets <= MANY_OFFSETS and found.hours <= MANY_HOURS):
        return
    what = " ".join(f"--{key} {value}" for key, value in wanted.items())
    agree = command(f"airflow archive rebuild {name} {what} --yes")
    limit = f"Rebuilds of at most {MANY_OFFSETS:,} offsets and {MANY_HOURS} hours need no consent in scripts."
    raise ConfigError(
        f"The rebuild would replace {found}, and there is no terminal to ask on. Nothing was changed.",
        *advise(agree, f" agrees to it. ({limit})"),
    )


def _wanted(context: Context, args: Namespace) -> tuple[list[Plan], dict[str, Any]]:
    """The plans to replace, and the DAG run's parameter."""
    if args.hour is not None:
        # Airflow's times are a subclass of datetime whose arithmetic differs.
        hour = datetime.fromtimestamp(args.hour.timestamp(), UTC).replace(minute=0, second=0, microsecond=0)
        return [replaceable_plan(context, run) for run in runs_of_hour(context, hour)], {"hour": isoformat(hour)}
    run = find_plan(context.ledger, run_name_of(args.run)).run
    return [replaceable_plan(context, run)], {"run": run}


def _say(line: str) -> None:
    print(line, flush=True)
