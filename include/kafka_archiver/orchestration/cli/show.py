"""`airflow archive show`: one run with its plan, its account and its objects."""

from argparse import Namespace
from collections.abc import Iterator, Sequence

from kafka_archiver.context.history import RunDetails, run_details
from kafka_archiver.model.manifest import FATES, Manifest, ObjectEntry
from kafka_archiver.orchestration.cli.find import find_archive
from kafka_archiver.orchestration.cli.run_name import run_name_of
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.terminal.output import Answer, Cell, Table, answering
from kafka_archiver.values.documents import isoformat


@answering
def show_run(args: Namespace) -> Answer:
    """What the ledger records about the run."""
    run = run_details(open_archive(find_archive(args.archive)).ledger, run_name_of(args.run))
    return Answer(run.model_dump(), [_plan(run), *(_written(run, run.manifest) if run.manifest else ())])


def _plan(run: RunDetails) -> Table:
    plan, commit = run.plan, run.commit
    title = (
        f"{plan.archive}: run {plan.run}, {plan.origin}, interval {plan.interval}\n"
        f"{run.state}; planned at {isoformat(plan.planned_at)}"
    )
    if commit:
        title += f", {commit.outcome.replace('_', ' ')} at {isoformat(commit.committed_at)}"
        title += f" by {commit.by}" if commit.by else ""
    rows = [
        (p.topic, p.partition, ", ".join(map(str, p.offset_ranges)) or None, p.count, p.start, p.end)
        for p in plan.partitions
    ]
    return Table(("topic", "partition", "ranges", "offsets", "group before", "group after"), rows, title)


def _written(run: RunDetails, manifest: Manifest) -> Iterator[Table]:
    rows: list[tuple[Cell, ...]] = [
        (one.topic, one.partition, *(getattr(one, fate) for fate in FATES), one.offsets) for one in run.accounts
    ]
    everything = [manifest.account[fate] for fate in FATES]
    rows.append(("all", None, *everything, sum(everything)))
    fates = [fate.replace("_", "-") for fate in FATES]
    yield Table(("topic", "partition", *fates, "offsets"), rows, "Account")
    for title, objects in (("Objects", manifest.objects), ("Dead letters", manifest.dead_letters)):
        if objects or title == "Objects":
            yield _objects(title, objects)


def _objects(title: str, objects: Sequence[ObjectEntry]) -> Table:
    return Table(
        ("object", "rows", "bytes", "first offset", "last offset", "checksum"),
        [(o.key, o.rows, o.bytes, o.first_offset, o.last_offset, o.checksum) for o in objects],
        f"{title}: {len(objects):,} with {sum(o.rows for o in objects):,} rows",
    )
