"""Proofs: what the ended runs say about hours. Pure, and derived from the runs and the progress.

The verdict of a proof: `model/complete_hours`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Literal

from kafka_archiver.model.complete_hours import Judgement, Verdict
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.reasons import reason_of_a_gone_proof
from kafka_archiver.model.stretches import stretch_of
from kafka_archiver.values.documents import ArchiveDocument, UtcTime, Value, unwritten
from kafka_archiver.values.intervals import hour_start, hours_between, to_hour
from kafka_archiver.values.ranges import Range, subtract

# Objects in a page; a proof with twice as many moves its oldest contributions to a page.
PAGE = 1000


class ProofObject(Value):
    """One object of an hour."""

    key: str
    rows: int
    bytes: int
    checksum: str


class Contribution(Value):
    """The contribution of one run to an hour. `late`: the hour was complete already."""

    number: int
    run: str
    late: bool
    rows: int
    objects: tuple[ProofObject, ...]

    @property
    def bytes(self) -> int:
        """The size of its objects."""
        return sum(o.bytes for o in self.objects)


class HourProof(ArchiveDocument):
    """The verdict on one hour. `hour_start` is null for the records without a usable time.

    `complete_as_of`: the objects have every record that was committed in Kafka at that time and belongs to this hour,
    or the account says that it was filtered, dead-lettered, or compacted away before it was read. `assumes`: a further
    assumption of this verdict, if there is one. `reason`: what an incomplete hour lacks. `lost_rows`: the rows of
    objects that cannot be recovered. `number`: the last run of the line that changed the proof.
    `runs`: what each run added, in the order of the line. For an hour with many objects the first ones are in pages;
    `pages` has the number of each page's last run, `replaced` the runs in pages that a rebuild has replaced.
    `former_gone`: the proof before this one was gone, so what earlier runs added is missing.
    """

    document: Literal["kafka-archiver/hour"] = "kafka-archiver/hour"
    hour_start: UtcTime | None
    number: int
    status: Verdict
    reason: str | None = None
    complete_as_of: UtcTime | None = None
    assumes: str | None = None
    closed_by: str | None = None
    changed_by: str
    rows: int = 0
    bytes: int = 0
    objects: int = 0
    late_rows: int = 0
    lost_rows: int = 0
    # Not written if False. Before what may be long, as `ProofHead` reads a beginning.
    former_gone: bool = unwritten(False)
    pages: tuple[int, ...] = ()
    replaced: tuple[str, ...] = ()
    runs: tuple[Contribution, ...] = ()

    @property
    def hour(self) -> int | None:
        """The hour, in whole hours since 1970."""
        return None if self.hour_start is None else to_hour(self.hour_start)

    def page_of(self, number: int) -> int | None:
        """The page with the contribution of a run of the line; None: it is not in a page."""
        page = bisect_left(self.pages, number)
        return page if page < len(self.pages) else None


class HourPage(ArchiveDocument):
    """The contributions of some runs to an hour. Written once."""

    document: Literal["kafka-archiver/hour-page"] = "kafka-archiver/hour-page"
    hour_start: UtcTime | None
    page: int
    runs: tuple[Contribution, ...]


def hours_with_proofs(progress: Progress) -> tuple[Range, ...]:
    """Return the hours that must have a proof of their own: they were judged, with or without records, and no stretch
    has them. Other hours may have one.
    """
    if progress.begun is None or progress.closed_until is None:
        return ()
    judged = hours_between(progress.begun, progress.closed_until)
    stretches = [Range(stretch.hours.start, stretch.hours.stop) for stretch in progress.stretches]
    return subtract(Range(judged.start, judged.stop), stretches) if judged else ()


def proof_in_a_stretch(progress: Progress | None, hour: int | None) -> HourProof | None:
    """Return what the progress says of an hour without a proof of its own; None if no stretch covers the hour."""
    stretch = stretch_of(progress.stretches, hour) if progress else None
    if progress is None or hour is None or stretch is None:
        return None
    return HourProof(
        archive=progress.archive,
        hour_start=hour_start(hour),
        number=stretch.number,
        status=stretch.status,
        reason=stretch.reason,
        complete_as_of=stretch.complete_as_of,
        assumes=stretch.assumes,
        closed_by=stretch.run if stretch.status == "complete" else None,
        changed_by=stretch.run,
    )


def prove(
    hour: int | None,
    before: HourProof | None,
    plan: Plan,
    manifest: Manifest | None,
    judgement: Judgement,
    replaced: Contribution | None = None,
    complete_before: bool = False,
    lost: int = 0,
    former_gone: bool = False,
) -> HourProof:
    """The hour's proof after this run; a run that the proof has already changes nothing.

    :param manifest: the run's manifest; None when it was not committed.
    :param replaced: what the superseded run had added.
    :param complete_before: the hour was complete before this run, with or without a proof.
    :param lost: how many more rows are lost with this run; negative if the run has lost rows again.
    :param former_gone: the hour had a proof, and it is gone.
    """
    if before and before.number >= plan.number:
        return before
    previous = before or HourProof(
        archive=plan.archive,
        hour_start=None if hour is None else hour_start(hour),
        number=plan.number,
        status="open",
        changed_by=plan.run,
        former_gone=former_gone,
    )
    runs = tuple(c for c in previous.runs if replaced is None or c.number != replaced.number)
    in_a_page = replaced is not None and len(runs) == len(previous.runs)
    late = replaced.late if replaced else previous.status == "complete" or (before is None and complete_before)
    added = _contribution(hour, plan, manifest, late)
    gone = previous.lost_rows + lost
    status, closes = previous.status, False
    if gone or previous.former_gone:
        status = "incomplete"
    elif previous.lost_rows or (judgement.status != "open" and previous.status != "complete"):
        status, closes = judgement.status, judgement.status == "complete"
    reason = f"objects with {gone:,} rows are gone for good" if gone else judgement.reason
    if previous.former_gone:
        reason = reason_of_a_gone_proof(plan.archive)
    fields = {
        "status": status,
        "reason": reason if status == "incomplete" else None,
        "complete_as_of": judgement.as_of if closes else previous.complete_as_of if status == "complete" else None,
        "assumes": judgement.assumes if closes else previous.assumes if status == "complete" else None,
        "closed_by": plan.run if closes else previous.closed_by,
        "rows": previous.rows + _sum("rows", added) - _sum("rows", replaced),
        "bytes": previous.bytes + _sum("bytes", added) - _sum("bytes", replaced),
        "objects": previous.objects + _objects(added) - _objects(replaced),
        "late_rows": previous.late_rows + _late(added) - _late(replaced),
        "lost_rows": gone,
        "replaced": (*previous.replaced, replaced.run) if replaced and in_a_page else previous.replaced,
        "runs": (*runs, added) if added else runs,
    }
    if before and all(getattr(before, name) == value for name, value in fields.items()):
        return before
    return previous.model_copy(update={**fields, "number": plan.number, "changed_by": plan.run})


def _contribution(hour: int | None, plan: Plan, manifest: Manifest | None, late: bool) -> Contribution | None:
    objects = tuple(
        ProofObject(key=o.key, rows=o.rows_in(hour), bytes=o.bytes, checksum=o.checksum)
        for o in (manifest.objects if manifest else ())
        if hour in o.hours
    )
    if not objects:
        return None
    return Contribution(number=plan.number, run=plan.run, late=late, rows=sum(o.rows for o in objects), objects=objects)


def _sum(name: str, contribution: Contribution | None) -> int:
    return getattr(contribution, name) if contribution else 0


def _objects(contribution: Contribution | None) -> int:
    return len(contribution.objects) if contribution else 0


def _late(contribution: Contribution | None) -> int:
    return contribution.rows if contribution and contribution.late else 0


def paged(proof: HourProof) -> tuple[HourProof, HourPage | None]:
    """If the proof has too many objects: the proof without its first contributions, and the page that has them."""
    if sum(len(c.objects) for c in proof.runs) <= 2 * PAGE or len(proof.runs) < 2:
        return proof, None
    first = _filling(proof.runs)
    page = HourPage(archive=proof.archive, hour_start=proof.hour_start, page=len(proof.pages), runs=first)
    remaining = proof.runs[len(first) :]
    return proof.model_copy(update={"pages": (*proof.pages, first[-1].number), "runs": remaining}), page


def _filling(runs: Sequence[Contribution]) -> tuple[Contribution, ...]:
    """Return as many contributions as fill a page, but not the last one."""
    objects = 0
    for number, run in enumerate(runs[:-1], start=1):
        objects += len(run.objects)
        if objects >= PAGE:
            return tuple(runs[:number])
    return tuple(runs[:-1])


def counting(proof: HourProof, pages: Iterable[HourPage]) -> tuple[Contribution, ...]:
    """The contributions that count, in the order of the line.

    :param pages: of the proof, in their order.
    """
    paged_runs = (c for page in pages for c in page.runs if c.run not in proof.replaced)
    return (*paged_runs, *proof.runs)
