"""`airflow archive fill`: archive what earlier runs have left out, by runs of the DAG."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.completion import ANSWER, ARCHIVE, YES
from kafka_archiver.orchestration.terminal.dialog import ask_consent
from kafka_archiver.orchestration.terminal.options import OUTPUT, moment, option
from kafka_archiver.orchestration.terminal.output import Answer, Table, in_audit_log, print_answer
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.ranges import TopicPartition

if TYPE_CHECKING:
    from kafka_archiver.config import Archive

FILL = ActionCommand(
    name="fill",
    help="Archive what earlier runs have left out",
    description=f"""\
Archive what Kafka still has of the offsets before the first scheduled run that no run has: what `source.start` or
backfills have left out, also behind records with wrong clocks. Counts them first; --dry-run only counts. Starts runs of
the DAG archive_NAME, each of at most `source.max_records_per_run` records, waits until they end and reports each task.
Hours that lacked nothing else are complete then.

json and yaml: {{archive, filled (true or false), partitions: a list of {{partition, offsets, left}}}}.
{ANSWER}""",
    func=lazy_load_command(f"{__name__}.fill"),
    args=(
        ARCHIVE,
        option("--from", dest="since", type=moment, metavar="HOUR", help="Only what may be of this hour or later"),
        option("-n", "--dry-run", action="store_true", help="Only count"),
        YES,
        OUTPUT,
    ),
)


@print_answer
@in_audit_log
def fill(args: Namespace) -> Answer:
    """Count what is left out, and archive it with as many runs as it takes."""
    from kafka_archiver.orchestration.cli.names import find_archive
    from kafka_archiver.orchestration.connections import open_archive
    from kafka_archiver.orchestration.metadata.start import require_active, run_to_success
    from kafka_archiver.work.plan import count_left_out

    archive = find_archive(args.archive)
    # Airflow's times are a subclass of datetime whose arithmetic differs.
    since = datetime.fromtimestamp(args.since.timestamp(), UTC) if args.since else None
    left = count_left_out(open_archive(archive), since)
    if not left or args.dry_run:
        return _answer(archive, False, left, {})
    name, limit = dag_id(archive.archive), archive.source.max_records_per_run
    require_active(name)
    offsets = sum(left.values())
    runs = count(-(-offsets // limit), "run")
    what = f"{count(offsets, 'offset')} that archive {archive.archive} lacks, in {runs}"
    if not args.yes and not ask_consent(f"Archive {what}?"):
        return _answer(archive, False, left, {})
    before, after = offsets + 1, left
    while (remaining := sum(after.values())) and remaining < before:
        print(f"{count(remaining, 'offset')} to go.")
        run_to_success(name, {"fill": _asked(since)}, print)
        before, after = remaining, count_left_out(open_archive(archive), since)
    return _answer(archive, True, left, after)


def _asked(since: datetime | None) -> dict[str, Any]:
    return {"all": True} if since is None else {"from": isoformat(since)}


def _answer(archive: Archive, done: bool, left: dict[TopicPartition, int], after: dict[TopicPartition, int]) -> Answer:
    rows: list[dict[str, Any]] = [
        {"partition": str(name), "offsets": left[name], "left": after.get(name, 0) if done else left[name]}
        for name in sorted(left)
    ]
    outcome = "done" if done else "nothing was changed" if rows else "nothing is left out that Kafka still has"
    table = Table(("partition", "offsets", "left"), [list(row.values()) for row in rows],
                  f"Offsets that archive {archive.archive} lacks: {outcome}")  # fmt: skip
    return Answer({"archive": archive.archive, "filled": done, "partitions": rows}, [table])
