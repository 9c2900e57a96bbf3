"""The account of a run, and the pages that Airflow shows as tabs: of a DAG its archive, of a DAG run its accounts."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response

from kafka_archiver.context.history import RunDetails
from kafka_archiver.messages.advice import audit_dag_id, dag_id, restore_dag_id
from kafka_archiver.messages.wording import count, offset_span
from kafka_archiver.model.chunk_accounts import FATES
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Plan
from kafka_archiver.orchestration.metadata.facts import planned_work_of
from kafka_archiver.orchestration.page.access import PageSnapshots, RunName, ShownArchive, Visitor, require_visible
from kafka_archiver.orchestration.page.details import Details, PageDetails
from kafka_archiver.orchestration.page.render import redirect, render
from kafka_archiver.values.gaps import unpack
from kafka_archiver.values.ranges import Range, TopicPartition, merge

# Runs of one DAG run, and partitions and objects of each, that are shown.
RUNS, PARTITIONS, OBJECTS = 5, 200, 100
# Ranges of lost offsets of a partition that are named.
SPANS = 10


class LostOffsets(NamedTuple):
    """The offsets of a partition that a run records as lost. `spans`: in words."""

    topic: str
    partition: int
    number: int
    spans: str


class Account(NamedTuple):
    """The account of a run: its documents, and the offsets that it records as lost, by partition.

    `offsets`: those that the plan takes, with the lost ones.
    """

    run: RunDetails
    lost: Sequence[LostOffsets]
    lost_count: int
    offsets: int

    @classmethod
    def of(cls, run: RunDetails) -> "Account":
        """Return the account of a run as its documents have it."""
        plan, manifest = run.plan, run.manifest
        lost = _lost(plan, manifest)
        lost_count = manifest.account["lost"] if manifest else sum(each.number for each in lost)
        offsets = sum(manifest.account.values()) if manifest else plan.count + lost_count
        return cls(run, lost[:PARTITIONS], lost_count, offsets)


def _lost(plan: Plan, manifest: Manifest | None) -> list[LostOffsets]:
    """Return the offsets that a run records as lost: by its account, or by its plan as long as it has none.

    The offsets of objects that a repair has lost are not known; the account has their number.
    """
    ranges: dict[TopicPartition, list[Range]] = {}
    if manifest is None:
        ranges = {partition.name: [Range(*pair) for pair in partition.lost] for partition in plan.partitions}
    for account in manifest.chunks if manifest else ():
        rows = unpack(account.start, account.end, account.lost_ranges).tolist()
        ranges.setdefault(account.name, []).extend(Range(*row) for row in rows)
    return [
        LostOffsets(*name, sum(each.size for each in merged), _spans(merged))
        for name, partition_ranges in sorted(ranges.items())
        if (merged := merge(partition_ranges))
    ]


def _spans(ranges: Sequence[Range]) -> str:
    more = f" and {count(len(ranges) - SPANS, 'more range')}" if len(ranges) > SPANS else ""
    return ", ".join(offset_span(*each) for each in ranges[:SPANS]) + more


def _show(request: Request, details: Details, name: str, runs: Sequence[str], title: str) -> Response:
    lookups = [details.run(name, run) for run in runs[-RUNS:][::-1]]
    return render(
        request,
        "account.html",
        name=name,
        title=title,
        accounts=[Account.of(lookup.value) for lookup in lookups if lookup.value],
        errors=[lookup.error for lookup in lookups if lookup.error],
        awaited=any(lookup.at is None for lookup in lookups),
        more=len(runs) - RUNS,
        fates=FATES,
        most_partitions=PARTITIONS,
        most_objects=OBJECTS,
    )


def _archive_of(archive_snapshots: PageSnapshots, who: Visitor, dag: str) -> str | None:
    """Return the archive of a DAG that this user may see; None: it belongs to none."""
    for name in archive_snapshots.archives().valid:
        if dag in (dag_id(name), audit_dag_id(name), restore_dag_id(name)):
            require_visible(archive_snapshots, who, name)
            return name
    return None


ArchiveOfDag: TypeAlias = Annotated[str | None, Depends(_archive_of)]
router = APIRouter()


@router.get("/archives/{name}/runs/{run}")
def run_page(request: Request, archive: ShownArchive, details: PageDetails, run: RunName) -> Response:
    """Show the account of one run of the ledger."""
    return _show(request, details, archive.archive, [run], f"Run {run}")


@router.get("/dags/{dag}")
def of_dag(request: Request, name: ArchiveOfDag) -> Response:
    """Lead to the archive of a DAG."""
    return _elsewhere(request) if name is None else redirect(request, f"/archives/{quote(name)}")


@router.get("/dags/{dag}/runs/{run_id:path}")
def of_dag_run(request: Request, name: ArchiveOfDag, details: PageDetails, dag: str, run_id: str) -> Response:
    """Show the accounts of the ledger's runs that a DAG run works on."""
    if name is None:
        return _elsewhere(request)
    if dag != dag_id(name):
        return redirect(request, f"/archives/{quote(name)}")
    return _show_dag_run(request, details, name, run_id)


@router.get("/archives/{name}/dag-runs/{run_id:path}")
def dag_run_page(request: Request, archive: ShownArchive, details: PageDetails, run_id: str) -> Response:
    """Show the accounts of the runs that a DAG run of an archive works on."""
    return _show_dag_run(request, details, archive.archive, run_id)


def _show_dag_run(request: Request, details: Details, name: str, run_id: str) -> Response:
    work = planned_work_of(dag_id(name), run_id)
    return _show(request, details, name, work.runs if work else (), f"DAG run {run_id}")


def _elsewhere(request: Request) -> Response:
    text = "This DAG belongs to no archive. The page Archives lists all archives that you may see."
    return render(request, "message.html", title="No archive", text=text, back=None, dag=None)
