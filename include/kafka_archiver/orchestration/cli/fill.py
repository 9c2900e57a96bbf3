"""`airflow archive fill`: archive what earlier runs have left out, by runs of the DAG."""

from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from kafka_archiver.config import Archive
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.find import find_archive
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.metadata.start import require_active, run_to_its_end
from kafka_archiver.orchestration.terminal.consent import agreed
from kafka_archiver.orchestration.terminal.output import Answer, Table, answering
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.plan import count_left_out


@answering
def fill(args: Namespace) -> Answer:
    """Count what is left out, and archive it with as many runs as it takes."""
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
    if not args.yes and not agreed(f"Archive {what}?"):
        return _answer(archive, False, left, {})
    before, after = offsets + 1, left
    while (now := sum(after.values())) and now < before:
        print(f"{count(now, 'offset')} to go.")
        if (state := run_to_its_end(name, {"fill": _asked(since)}, print)) != "success":
            raise ConfigError(f"The run of {name} has ended: {state}. The log of the task that failed has the cause.")
        before, after = now, count_left_out(open_archive(archive), since)
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
                  f"What archive {archive.archive} lacks: {outcome}")  # fmt: skip
    return Answer({"archive": archive.archive, "filled": done, "partitions": rows}, [table])
