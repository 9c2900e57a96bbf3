"""What the store lists below an archive's topics, against what the ledger explains."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from kafka_archiver.audit.objects import UNEXPLAINED, Explained, Stored, check_objects, may_have_written, of_this_store
from kafka_archiver.audit.report import Finding, count
from kafka_archiver.keys import DEAD_LETTER, LEDGER, decode, split_run_document, topic_prefix
from kafka_archiver.ledger import Ledger
from kafka_archiver.steps.auditing.reading import Reader, Tell
from kafka_archiver.store import Store


def check_listing(
    store: Store, archive: str, topics: Iterable[str], explained: Explained, pool: ThreadPoolExecutor, tell: Tell
) -> list[Finding]:
    """Compare. What was written or removed meanwhile is asked for again, and is no finding."""

    def listing(prefix: str) -> dict[str, Stored]:
        return {s.key: Stored(s.size, s.etag) for s in store.list(prefix)}

    prefixes = [*sorted(map(topic_prefix, topics)), f"{DEAD_LETTER}/"]
    listed = {key: stored for found in pool.map(listing, prefixes) for key, stored in found.items()}
    listed = {key: listed[key] for key in of_this_store(listed)}
    found = list(check_objects(listed, explained))
    strange = {f.where for f in found if f.kind == UNEXPLAINED}
    others = _of_others(store, archive, strange, pool, tell) if strange else set()
    found = [f for f in found if f.where not in others]

    def stands(finding: Finding) -> bool:
        stat = store.head(finding.where)
        promised = explained.promised.get(finding.where)
        return (None if stat is None else Stored(stat.size, stat.etag)) != (promised[0] if promised else None)

    return [f for f, is_so in zip(found, pool.map(stands, found), strict=True) if is_so]


def _of_others(store: Store, archive: str, keys: set[str], pool: ThreadPoolExecutor, tell: Tell) -> set[str]:
    """Which of these keys other archives that share the store may have written."""
    plans: dict[str, set[str]] = {}
    for stat in store.list(f"{LEDGER}/"):
        other = decode(stat.key.split("/")[1])
        place = split_run_document(other, stat.key)
        if other != archive and place and place[1] == "plan":
            plans.setdefault(other, set()).add(place[0])
    if plans:
        tell(f"{archive}: asking the ledgers of {', '.join(sorted(plans))} about {count(len(keys), 'object')}")

    def explain(run_of: tuple[str, str]) -> set[str]:
        # That a document of another archive cannot be read is for its own audit to say.
        plan = Reader(Ledger(store, run_of[0]), pool).plan(run_of[1])
        return {key for key in keys if plan and may_have_written(plan, key)}

    return set().union(*pool.map(explain, [(other, run) for other, runs in plans.items() for run in sorted(runs)]))
