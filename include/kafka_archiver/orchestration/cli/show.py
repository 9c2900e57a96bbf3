"""`airflow archive show`: one run with its plan, its account and its objects."""

from argparse import Namespace
from collections.abc import Iterator

from kafka_archiver.documents import isoformat
from kafka_archiver.manifest import FATES, Commit, Manifest, totals
from kafka_archiver.orchestration.cli.find import find_archive, open_archive
from kafka_archiver.orchestration.cli.states import run_name_of
from kafka_archiver.orchestration.terminal.output import Answer, Cell, Table, answering
from kafka_archiver.plan import Plan
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.steps.history import find_plan, state_of


@answering
def show_run(args: Namespace) -> Answer:
    """What the ledger has of the run."""
    context = open_archive(find_archive(args.archive))
    ledger = context.ledger
    plan = find_plan(ledger, run_name_of(args.run))
    manifest, commit, progress = ledger.manifest(plan.run), ledger.commit(plan.run), ledger.progress()
    state = state_of(plan, manifest, commit, progress.settled if progress else 0)
    document = {
        "archive": ledger.archive,
        "run": plan.run,
        "state": state,
        "store": context.store.url,
        "plan": plan.model_dump(),
        "manifest": manifest and manifest.model_dump(),
        "commit": commit and commit.model_dump(),
    }
    return Answer(document, [_plan(plan, state, commit), *(_written(manifest) if manifest else ())])


def _plan(plan: Plan, state: str, commit: Commit | None) -> Table:
    title = (
        f"{plan.archive}: run {plan.run}, {plan.origin}, interval {plan.interval}\n"
        f"{state}; planned at {isoformat(plan.planned_at)}"
    )
    if commit:
        title += f", {commit.outcome.replace('_', ' ')} at {isoformat(commit.committed_at)}"
        title += f" by {commit.by}" if commit.by else ""
    rows = [
        (p.topic, p.partition, ", ".join(map(str, p.offset_ranges)) or None, p.count, p.start, p.end)
        for p in plan.partitions
    ]
    return Table(("topic", "partition", "ranges", "offsets", "group before", "group after"), rows, title)


def _written(manifest: Manifest) -> Iterator[Table]:
    names = sorted({TopicPartition(c.topic, c.partition) for c in manifest.chunks})
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        sums = totals(c for c in manifest.chunks if (c.topic, c.partition) == name)
        rows.append((name.topic, name.partition, *(sums[fate] for fate in FATES), sum(sums.values())))
    everything = [manifest.account[fate] for fate in FATES]
    rows.append(("all", None, *everything, sum(everything)))
    fates = [fate.replace("_", "-") for fate in FATES]
    yield Table(("topic", "partition", *fates, "offsets"), rows, "Account")
    yield Table(
        ("object", "rows", "bytes", "first offset", "last offset", "checksum"),
        [(o.key, o.rows, o.bytes, o.first_offset, o.last_offset, o.checksum) for o in manifest.objects],
        f"Objects: {len(manifest.objects):,} with {manifest.rows:,} rows",
    )
