"""After a run has written objects again: look again at those of them that the last audit calls wrong."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial

from kafka_archiver.audit.inspection.deep import Reading
from kafka_archiver.audit.report import OBJECT_DAMAGE, Mended, Report, in_words, verdict
from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import DocumentError, IntegrityError, TransientError
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.model.object_keys import audit_document, interval_of
from kafka_archiver.model.plan import Plan
from kafka_archiver.store import Store
from kafka_archiver.store.object_check import is_there
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.threads import each

log = logging.getLogger(__name__)
# How often the report is read again when another process was faster.
TRIES = 20


def recheck_objects(context: Context, runs: Collection[str]) -> tuple[Report, int] | None:
    """Take the findings about objects that are whole now out of the report of the last audit.

    Whole: read completely with the audit's own readers, or replaced by a committed revision, and gone. All other
    findings stay.

    :param runs: settled runs. Objects of all revisions of their intervals are looked at.
    :returns: the report as it is now, and how many objects it no longer has; None if it has nothing to look at.
    :raises TransientError: others were faster at every try.
    """
    key, intervals = audit_document(context.archive.archive), {interval_of(run) for run in runs}
    for _ in range(TRIES):
        if (before := context.store.version(key)) is None:
            return None
        try:
            report = Report.from_json(before.data, key)
        except DocumentError:
            # Only another audit can replace it.
            return None
        wrong = [f for f in report.damage if f.kind in OBJECT_DAMAGE and interval_of(f.run) in intervals]
        if not wrong:
            return None
        whole = _whole_objects(context, wrong)
        log.info(
            "%d of %d objects that the audit at %s calls wrong are whole again: %s",
            len(whole),
            len({f.subject for f in wrong}),
            isoformat(report.audited_at),
            ", ".join(sorted(whole)[:20]) or "none",
        )
        if not whole:
            return report, 0
        after = _without_whole(report, wrong, whole, context)
        if context.store.replace(key, after.to_json(), before.etag):
            return after, len(whole)
    raise TransientError(f"others have written {key} {TRIES} times; try again")


def _without_whole(report: Report, wrong: Collection[Finding], whole: Collection[str], context: Context) -> Report:
    out = {(f.kind, f.subject) for f in wrong if f.subject in whole}
    left = tuple(f for f in report.findings if (f.kind, f.subject) not in out)
    number = len(whole) + (report.mended.objects if report.mended else 0)
    mended = Mended(at=context.clock(), objects=number)
    return report.model_copy(update={"findings": left, "verdict": verdict(left), "mended": mended})


def _whole_objects(context: Context, wrong: Collection[Finding]) -> set[str]:
    """Return the keys of the objects that are whole, or need not be there any more."""
    keys: dict[str, set[str]] = defaultdict(set)
    for finding in wrong:
        keys[interval_of(finding.run)].add(finding.subject)
    numbers: list[int] = []
    present, gone = set[str](), set[str]()
    for plan, manifest in _effective_documents(context, keys):
        here = sorted(keys[plan.interval.id])
        entries = {o.key: o for o in manifest.stored if o.key in here}
        answers = each(partial(_is_right, context.store, entries), here)
        right = {key for key, is_right in zip(here, answers, strict=True) if is_right}
        numbers.append(plan.number)
        present |= right & entries.keys()
        gone |= right - entries.keys()
    return gone | _read_objects(context, numbers, present)


def _is_right(store: Store, entries: Mapping[str, ObjectEntry], key: str) -> bool:
    """Return True if a promised object has its size and checksum, or one that is not promised any more is gone."""
    entry = entries.get(key)
    return is_there(store, entry) if entry else store.head(key) is None


def _effective_documents(context: Context, intervals: Mapping[str, object]) -> Iterator[tuple[Plan, Manifest]]:
    """Yield the revision of each interval that counts, if it is final and its documents are sound."""
    ledger = context.ledger
    for interval in intervals:
        with suppress(DocumentError, IntegrityError):
            plan = ledger.current(interval)
            commit = ledger.commit(plan.run) if plan else None
            if (
                plan
                and commit
                and commit.outcome == "committed"
                and (manifest := ledger.sound_manifest(plan.run, commit))
            ):
                yield plan, manifest


def _read_objects(context: Context, numbers: Collection[int], keys: set[str]) -> set[str]:
    """Read these objects, and return those whose content is right."""
    reading = Reading(context.store, context.ledger, len(keys), log.info)
    for finding in reading.read(sorted(numbers), set(), keys):
        log.log(logging.ERROR if finding.severity == "problem" else logging.WARNING, "%s", in_words(finding))
    return reading.same
