"""Findings about objects: every object of a manifest exists, and no other. Pure."""

from collections.abc import Iterable

from kafka_archiver.audit.report import error, warning
from kafka_archiver.messages.actions import Advice, advise
from kafka_archiver.messages.advice import clean, repair, show
from kafka_archiver.model.adopted import Adoption
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.layouts.registry import place_in
from kafka_archiver.model.object_keys import LEDGER
from kafka_archiver.model.plan import Plan
from kafka_archiver.values.ranges import TopicPartition

UNEXPLAINED, REWRITTEN = "unexplained", "object-rewritten"


def again(archive: str) -> Advice:
    """The advice for a missing or changed object."""
    return advise(
        "Restore it, or ", repair(archive), " writes it again if Kafka has the records, else records it as lost"
    )


def as_stored(size: int | None, etag: str | None) -> str:
    """An object in words, by the store or by a manifest."""
    return "nothing" if size is None else f"{size} bytes with ETag {etag}"


def missing(archive: str, key: str, promised: str, run: str | None) -> Finding:
    """An object does not exist."""
    return error("object-missing", key, "nothing", f"{promised} (run {run})", again(archive), run)


def changed(archive: str, key: str, actual: str, promised: str, run: str | None) -> Finding:
    """An object has another size."""
    return error("object-changed", key, actual, f"{promised} (run {run})", again(archive), run)


def rewritten(archive: str, key: str, actual: str, promised: str, run: str | None) -> Finding:
    """An object of the right size was written again."""
    return error(
        REWRITTEN,
        key,
        actual,
        f"{promised} (run {run})",
        advise("The object was written again; `--deep` checks its bytes. If they differ: ", again(archive)),
        run,
    )


def of_adopted(finding: Finding) -> Finding:
    """Return the finding about an object that another tool wrote: no run has it."""
    return finding.model_copy(
        update={
            "expected": f"{finding.expected.partition(' (run ')[0]}, as it was adopted",
            "advice": "Restore it from a version or copy of the bucket: another tool wrote it, and no run can",
            "actions": (),
            "run": None,
        }
    )


def unproven(adoption: Adoption) -> Finding:
    """Yield a finding of what was adopted: it is not proved to be all. No damage, but every audit shows it."""
    loose = f"; the offsets of {adoption.loose:,} rows are unknown" * bool(adoption.loose)
    return warning(
        "unproven",
        adoption.adopted_from,
        f"{adoption.objects:,} objects with {adoption.rows:,} rows that {adoption.tool} wrote; nobody knows what Kafka "
        f"had at {adoption.unproven:,} offsets between them{loose}",
        "objects that the archiver wrote and proved",
        "Nothing needs to be done: their bytes are audited, and what they lack cannot be known",
    )


def twice(archive: str, key: str, run: str, other: str) -> Finding:
    """An object is in two manifests."""
    return error(
        "promised-twice",
        key,
        f"the object in the manifests of runs {other} and {run}",
        "every object in one manifest",
        advise("The archiver did not write one of the two: look at ", show(archive, run), f" and {other}"),
    )


def left(archive: str, key: str, run: str) -> Finding:
    """An object was replaced by a rebuild, but not removed."""
    return error(
        "superseded-left",
        key,
        f"an object that run {run} has replaced",
        "nothing: the rebuild removes what it replaces once its hours are proved",
        advise(clean(archive), " removes it"),
    )


def unexplained(archive: str, key: str, actual: str) -> Finding:
    """An object is in no ledger."""
    return error(
        UNEXPLAINED,
        key,
        f"an object of {actual} that no manifest names and no unfinished run may have written",
        "only objects that the ledger of an archive explains",
        advise(
            clean(archive),
            " removes what killed jobs left. Else find out who wrote it: readers that list the folder read it too",
        ),
    )


def may_have_written(plan: Plan, key: str) -> bool:
    """Return True if the key of an object belongs to one of the plan's chunks."""
    place = place_in(plan.settings, key)
    if place is None or place.revision != plan.revision:
        return False
    chunk = plan.chunk_of(TopicPartition(place.topic, place.partition), place.start)
    return chunk is not None and (chunk.start, chunk.generation) == (place.start, place.generation)


def inner_stores(keys: Iterable[str]) -> tuple[str, ...]:
    """The prefixes of other archives whose store.url is below this one. Their ledgers show them."""
    return tuple({key[: key.index(f"/{LEDGER}/") + 1] for key in keys if f"/{LEDGER}/" in key})
