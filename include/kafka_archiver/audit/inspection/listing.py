"""Compare the store's listing of an archive's topics with the ledger."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from kafka_archiver.audit.inspection.promise_table import Difference, PromiseTable
from kafka_archiver.audit.inspection.reading import DocumentReader, Tell
from kafka_archiver.audit.object_findings import (
    UNEXPLAINED,
    as_stored,
    changed,
    inner_stores,
    left,
    may_have_written,
    missing,
    of_adopted,
    rewritten,
    unexplained,
)
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.wording import count
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.layouts.registry import form_of
from kafka_archiver.model.leftovers import place_of
from kafka_archiver.model.object_keys import DEAD_LETTER, LEDGER, decode, split_line_document
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.store import Stat, Store
from kafka_archiver.store.object_check import compare

# Keys in memory at a time; a listing may have ten years of keys.
PAGE = 10_000
# Objects with another ETag to read, if the store has no checksum of them. After a copy of the whole store all objects
# may have another ETag; `--deep` reads all.
REREAD = 1000


def check_listing(
    store: Store,
    archive: str,
    topics: Collection[str],
    layouts: Sequence[Settings],
    table: PromiseTable,
    unfinished: list[Plan],
    pool: ThreadPoolExecutor,
    tell: Tell,
    adopted: str | None = None,
) -> list[Finding]:
    """Compare. Differences are checked again: objects written or removed during the audit are not findings.

    :param layouts: the settings of plans, each layout once.
    :param adopted: the folder of another tool whose objects the archive has adopted, all or some.
    """
    if adopted is not None:
        _take(table, (stat for stat in store.list(adopted) if table.is_adopted(stat.key)), layouts)
    for prefix, shared in _prefixes(topics, layouts):
        listed = store.list(prefix)
        if shared:
            listed = (s for s in listed if (place := place_of(s.key, *layouts)) and place.topic in topics)
        _take(table, listed, layouts)
    differences = list(table.differences())
    strangers = (d for d in _strangers(archive, table, unfinished) if adopted is None or not d.is_below(adopted))
    deviations = [*(_difference(archive, d) for d in differences), *strangers]
    strange = {d.finding.subject for d in deviations if d.finding.kind == UNEXPLAINED}
    foreign = _of_others(store, archive, strange, pool, tell) if strange else set()
    deviations = [d for d in deviations if d.finding.subject not in foreign]

    # A replay writes the same bytes again, but the ETag may change.
    again = {d.key: d for d in differences if d.found_size == d.size}
    read = set(sorted(again)[:REREAD])

    def stands(deviation: Deviation) -> bool:
        key = deviation.finding.subject
        stat, promised = store.head(key), again.get(key)
        if stat and promised and (stat.checksum is not None or key in read) and _is_same(store, promised):
            return False
        return deviation.is_removed_later or as_stored(stat and stat.size, stat and stat.etag) == deviation.listed

    return [d.finding for d, is_so in zip(deviations, pool.map(stands, deviations), strict=True) if is_so]


class Deviation(NamedTuple):
    """A finding about an object, and how the object was listed. `is_removed_later`: a rebuild removes it."""

    finding: Finding
    listed: str
    is_removed_later: bool = False

    def is_below(self, folder: str) -> bool:
        """Return True if the object is below a folder."""
        return self.finding.subject.startswith(folder)


def _is_same(store: Store, promised: Difference) -> bool:
    return compare(store, promised.key, promised.size or 0, promised.checksum or "").same


def _prefixes(topics: Iterable[str], layouts: Iterable[Settings]) -> list[tuple[str, bool]]:
    """The prefixes to list; whether other objects than those of the topics are there as well."""
    forms = [form_of(settings) for settings in (Settings(), *layouts)]
    prefixes = {(form.prefix(topic), form.is_shared) for form in forms for topic in topics}
    return [*sorted(prefixes), (f"{DEAD_LETTER}/", False)]


def _take(table: PromiseTable, stats: Iterator[Stat], layouts: Sequence[Settings]) -> None:
    """Add all listed objects, except those of stores further down, which do not belong to this one."""
    page: list[Stat] = []
    ledgers: set[str] = set()
    for stat in stats:
        if f"/{LEDGER}/" in stat.key:
            ledgers.update(inner_stores([stat.key]))
        else:
            page.append(stat)
        if len(page) >= PAGE:
            table.add_listed(page)
            page = []
    table.add_listed(page)
    for inner in ledgers:
        table.forget(inner, layouts)


def _difference(archive: str, difference: Difference) -> Deviation:
    deviation = _of_a_run(archive, difference)
    return deviation if difference.run else deviation._replace(finding=of_adopted(deviation.finding))


def _of_a_run(archive: str, difference: Difference) -> Deviation:
    promised = as_stored(difference.size, difference.etag)
    actual = as_stored(difference.found_size, difference.found_etag)
    if difference.found_size is None:
        return Deviation(missing(archive, difference.key, promised, difference.run), actual)
    if difference.found_size != difference.size:
        return Deviation(changed(archive, difference.key, actual, promised, difference.run), actual)
    return Deviation(rewritten(archive, difference.key, actual, promised, difference.run), actual)


def _strangers(archive: str, table: PromiseTable, unfinished: list[Plan]) -> Iterator[Deviation]:
    for stat, replaced_by in table.strangers():
        actual = as_stored(stat.found_size, stat.found_etag)
        if replaced_by:
            yield Deviation(left(archive, stat.key, replaced_by), actual, is_removed_later=True)
        elif not any(may_have_written(plan, stat.key) for plan in unfinished):
            yield Deviation(unexplained(archive, stat.key, actual), actual)


def _of_others(store: Store, archive: str, keys: set[str], pool: ThreadPoolExecutor, tell: Tell) -> set[str]:
    """Return those of these keys that other archives in the same store may have written."""
    plans: dict[str, set[int]] = {}
    for stat in store.list(f"{LEDGER}/"):
        other = decode(stat.key.split("/")[1])
        number = split_line_document(other, stat.key)
        if other != archive and number is not None:
            plans.setdefault(other, set()).add(number)
    if plans:
        tell(f"{archive}: asking the ledgers of {', '.join(sorted(plans))} about {count(len(keys), 'object')}")

    def explain(place: tuple[str, int]) -> set[str]:
        # Unreadable documents of another archive are findings of that archive's audit.
        plan = DocumentReader(Ledger(store, place[0]), pool).planned(place[1])
        return {key for key in keys if plan and may_have_written(plan, key)}

    return set().union(*pool.map(explain, [(other, n) for other, numbers in plans.items() for n in sorted(numbers)]))
