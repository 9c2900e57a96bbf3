"""`airflow archive replay-dead-letters`: archive dead letters once the cause is mended, by a run of the DAG."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.completion import ANSWER, ARCHIVE, YES, run_names
from kafka_archiver.orchestration.terminal.dialog import ask_consent
from kafka_archiver.orchestration.terminal.options import OUTPUT, moment, option
from kafka_archiver.orchestration.terminal.output import Answer, Table, in_audit_log, print_answer
from kafka_archiver.values.documents import isoformat

if TYPE_CHECKING:
    from kafka_archiver.context.archive_context import Context
    from kafka_archiver.work.dead_letters import HourRange, RunWithLetters

REPLAY_DEAD_LETTERS = ActionCommand(
    name="replay-dead-letters",
    help="Archive dead letters, once their cause is mended",
    description=f"""\
Archive the records below _dead_letter/ (policy bad_record: dead_letter) where they belong, with the archive's present
settings: after another store.content or store.format, another source.value.decode, or a higher source.max_value_bytes.
Kafka is not asked: a dead letter has everything that Kafka had. Starts a run of the DAG archive_NAME, waits until it
ends and reports each task. The run's other objects stay as they are; the dead letters stay until the new objects are
final. A record that still fails goes by policies.bad_record: it is a dead letter again, or is left out, or the run
fails and changes nothing.

json and yaml: {{archive, replayed (whether anything was done), runs: a list of {{run, letters (before), archived,
filtered, rejected (dead letters now), reasons (why, with --dry-run), revision (the run that counts now)}}}}.
{ANSWER}""",
    func=lazy_load_command(f"{__name__}.replay"),
    args=(
        ARCHIVE,
        option(
            "run",
            nargs="*",
            metavar="RUN",
            completer=run_names,
            help="Runs, as `airflow archive runs` names them, or the starts of their intervals",
        ),
        option(
            "--hours",
            nargs=2,
            type=moment,
            metavar=("FIRST", "LAST"),
            help="Every run with dead letters in these hours, both included",
        ),
        option("--all", action="store_true", help="Every run with dead letters"),
        option("-n", "--dry-run", action="store_true", help="Only read them, and say what would become of them"),
        YES,
        OUTPUT,
    ),
)

# The columns of the table, by the fields of the document.
COLUMNS = {
    "run": "run",
    "letters": "dead letters before",
    "archived": "archived",
    "filtered": "filtered",
    "rejected": "dead letters after",
    "revision": "revision",
}


@print_answer
@in_audit_log
def replay(args: Namespace) -> Answer:
    """Find the dead letters, and say what would become of them, or replay them and say what has."""
    from kafka_archiver.orchestration.cli.names import find_archive
    from kafka_archiver.orchestration.connections import open_archive
    from kafka_archiver.orchestration.metadata.start import require_active, run_to_success
    from kafka_archiver.work.dead_letters import runs_with_letters

    archive = find_archive(args.archive)
    context, name = open_archive(archive), dag_id(archive.archive)
    selection, conf = _selection(context, args)
    runs = runs_with_letters(context, selection)
    if not runs or args.dry_run:
        return _answer(archive.archive, False, [_expected(context, run) for run in runs])
    require_active(name)
    letters = f"{count(sum(run.rows for run in runs), 'dead letter')} of {count(len(runs), 'run')}"
    if not args.yes and not ask_consent(f"Replay {letters} of archive {archive.archive} with its present settings?"):
        return _answer(archive.archive, False, [_expected(context, run) for run in runs])
    print(f"Replaying {letters}.")
    run_to_success(name, {"dead_letters": conf}, print)
    return _answer(archive.archive, True, [_done(context, run) for run in runs])


def _selection(context: Context, args: Namespace) -> tuple[list[str] | HourRange | None, dict[str, Any]]:
    """Return the runs or hours to replay (None: all), and the DAG run's parameter for them."""
    from kafka_archiver.context.history import find_plan
    from kafka_archiver.orchestration.cli.names import run_name_of
    from kafka_archiver.work.dead_letters import HourRange

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


def _expected(context: Context, run: RunWithLetters) -> dict[str, Any]:
    from kafka_archiver.work.dead_letters import forecast_replay

    expected = forecast_replay(context, run)
    return {**expected._asdict(), "reasons": list(expected.reasons), "revision": None}


def _done(context: Context, run: RunWithLetters) -> dict[str, Any]:
    """Return what has become of a run's dead letters, by the manifest that counts after the replay."""
    last = context.ledger.last_committed(run.plan.interval.id) or run.plan.run
    before, after = (context.ledger.manifest(name) for name in (run.plan.run, last))
    change = {fate: after.account[fate] - before.account[fate] for fate in after.account} if before and after else {}
    return {
        "run": run.plan.run,
        "letters": run.rows,
        "archived": change.get("archived"),
        "filtered": change.get("filtered"),
        "rejected": after.account["dead_lettered"] if after else None,
        "reasons": [],
        "revision": last,
    }


def _answer(archive: str, done: bool, rows: list[dict[str, Any]]) -> Answer:
    outcome = "done" if done else "nothing was changed" if rows else "there are none"
    below = list(_reasons(rows))
    table = Table(
        [*COLUMNS.values()], [[row[name] for name in COLUMNS] for row in rows], f"Dead letters of {archive}: {outcome}"
    )
    tables = [table, *([Table(("still dead letters",), [(line,) for line in below])] if below else [])]
    return Answer({"archive": archive, "replayed": done, "runs": rows}, tables)


def _reasons(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield from dict.fromkeys(reason for row in rows for reason in row["reasons"])
