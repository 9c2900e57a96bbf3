"""Every object that is promised, and no other. Pure."""

from collections.abc import Iterable

from kafka_archiver.advice import repair
from kafka_archiver.audit.report import Finding, error
from kafka_archiver.keys import LEDGER, split_object_key
from kafka_archiver.plan import Plan
from kafka_archiver.ranges import TopicPartition

UNEXPLAINED = "unexplained"


def again(archive: str) -> str:
    """What to do about an object that is not as promised."""
    return f"Restore it, or {repair(archive)} writes it again if Kafka has the records, else has it on record as lost"


def as_stored(size: int | None, etag: str | None) -> str:
    """What the store says of an object, or a manifest."""
    return "nothing" if size is None else f"{size} bytes with ETag {etag}"


def missing(archive: str, key: str, promised: str, run: str | None) -> Finding:
    """An object that is not there."""
    return error("object-missing", key, "nothing", f"{promised} (run {run})", again(archive), run)


def changed(archive: str, key: str, found: str, promised: str, run: str | None) -> Finding:
    """An object of another size."""
    return error("object-changed", key, found, f"{promised} (run {run})", again(archive), run)


def rewritten(archive: str, key: str, found: str, promised: str, run: str | None) -> Finding:
    """An object of the same size that was written again."""
    return error(
        "object-rewritten",
        key,
        found,
        f"{promised} (run {run})",
        f"Somebody wrote it again; `--deep` tells whether with the same bytes. If not: {again(archive)}",
        run,
    )


def twice(archive: str, key: str, run: str, other: str) -> Finding:
    """An object that two manifests promise."""
    return error(
        "promised-twice",
        key,
        f"the object in the manifests of runs {other} and {run}",
        "every object in one manifest",
        f"One of the two was not written by the archiver: look at `airflow archive show {archive} {run}` and {other}",
    )


def left(archive: str, key: str, run: str) -> Finding:
    """An object that a rebuild should have removed."""
    return error(
        "superseded-left",
        key,
        f"an object that run {run} has replaced",
        "nothing: the rebuild removes what it replaces once its hours are proved",
        f"`airflow archive clean {archive}` removes it",
    )


def unexplained(archive: str, key: str, found: str) -> Finding:
    """An object that no ledger knows."""
    return error(
        UNEXPLAINED,
        key,
        f"an object of {found} that no manifest names and no unfinished run may have written",
        "only what the ledger of an archive explains",
        f"`airflow archive clean {archive}` removes what killed jobs left. Else look who put it there: "
        "readers that list the folder read it too",
    )


def may_have_written(plan: Plan, key: str) -> bool:
    """Whether an object has the name of one of the plan's chunks."""
    place = split_object_key(key)
    if place is None or place.revision != plan.revision:
        return False
    chunk = plan.chunk_of(TopicPartition(place.topic, place.partition), place.start)
    return chunk is not None and (chunk.start, chunk.generation) == (place.start, place.generation)


def inner_stores(keys: Iterable[str]) -> tuple[str, ...]:
    """Where archives are whose store.url is below this one's: they are known by their ledgers."""
    return tuple({key[: key.index(f"/{LEDGER}/") + 1] for key in keys if f"/{LEDGER}/" in key})
