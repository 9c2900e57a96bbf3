"""`airflow archive replay-dead-letters`: archive dead letters once the cause is mended, by a run of the DAG."""

from argparse import Namespace
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.history import find_plan
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.find import find_archive
from kafka_archiver.orchestration.cli.run_name import run_name_of
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.metadata.start import require_active, run_to_its_end
from kafka_archiver.orchestration.terminal.consent import agreed
from kafka_archiver.orchestration.terminal.output import Answer, Table, answering
from kafka_archiver.values.documents import isoformat
from kafka_archiver.work.dead_letters import HourRange, RunWithLetters, forecast_replay, runs_with_letters

COLUMNS = ("run", "letters", "archived", "filtered", "rejected", "revision")


@answering
def replay(args: Namespace) -> Answer:
    """Find the dead letters, and say what would become of them, or replay them and say what has."""
    archive = find_archive(args.archive)
    context, name = open_archive(archive), dag_id(archive.archive)
    wanted, conf = _wanted(context, args)
    found = runs_with_letters(context, wanted)
    if not found or args.dry_run:
        return _answer(archive.archive, False, [_expected(context, one) for one in found])
    require_active(name)
    letters = f"{count(sum(one.rows for one in found), 'dead letter')} of {count(len(found), 'run')}"
    if not args.yes and not agreed(f"Replay {letters} of archive {archive.archive} with its present settings?"):
        return _answer(archive.archive, False, [_expected(context, one) for one in found])
    print(f"Replaying {letters}.")
    if (state := run_to_its_end(name, {"dead_letters": conf}, print)) != "success":
        raise ConfigError(f"The run of {name} has ended: {state}. The log of the task that failed has the cause.")
    return _answer(archive.archive, True, [_done(context, one) for one in found])


def _wanted(context: Context, args: Namespace) -> tuple[list[str] | HourRange | None, dict[str, Any]]:
    """What to replay, and the DAG run's parameter for it."""
    if bool(args.run) + bool(args.hours) + args.all != 1:
        raise ConfigError("Give either runs, or --hours, or --all.")
    if args.run:
        runs = [find_plan(context.ledger, run_name_of(run)).run for run in args.run]
        return runs, {"runs": runs}
    if args.all:
        return None, {"all": True}
    # Airflow's times are a subclass of datetime whose arithmetic differs.
    hours = HourRange(*(datetime.fromtimestamp(moment.timestamp(), UTC) for moment in args.hours))
    return hours, {"hours": [isoformat(moment) for moment in hours]}


def _expected(context: Context, one: RunWithLetters) -> dict[str, Any]:
    found = forecast_replay(context, one)
    return {**found._asdict(), "reasons": list(found.reasons), "revision": None}


def _done(context: Context, one: RunWithLetters) -> dict[str, Any]:
    """What has become of a run's dead letters, by the manifest that counts now."""
    last = context.ledger.last_committed(one.plan.interval.id) or one.plan.run
    before, after = (context.ledger.manifest(run) for run in (one.plan.run, last))
    now = {fate: after.account[fate] - before.account[fate] for fate in after.account} if before and after else {}
    return {
        "run": one.plan.run,
        "letters": one.rows,
        "archived": now.get("archived"),
        "filtered": now.get("filtered"),
        "rejected": after.account["dead_lettered"] if after else None,
        "reasons": [],
        "revision": last,
    }


def _answer(archive: str, done: bool, rows: list[dict[str, Any]]) -> Answer:
    outcome = "done" if done else "nothing was changed" if rows else "there are none"
    below = list(_reasons(rows))
    table = Table(COLUMNS, [[row[name] for name in COLUMNS] for row in rows], f"Dead letters of {archive}: {outcome}")
    tables = [table, *([Table(("still rejected",), [(line,) for line in below])] if below else [])]
    return Answer({"archive": archive, "replayed": done, "runs": rows}, tables)


def _reasons(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield from dict.fromkeys(reason for row in rows for reason in row["reasons"])
