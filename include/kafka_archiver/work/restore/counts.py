"""Count what a restore takes of a run, from its manifest alone. Pure."""

from collections.abc import Collection, Iterator

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.model.restore import Inexact, RestoreCounts, RestoreSelection
from kafka_archiver.reader.selection import LAST_OFFSET, Selection
from kafka_archiver.values.gaps import count, unpack
from kafka_archiver.values.ranges import Range

# Topic, partition and generation.
Place = tuple[str, int, int]
_ALL = Range(0, LAST_OFFSET)


def counts_of(
    manifest: Manifest, selection: RestoreSelection, kind: Inexact | ConfigError | None, places: Collection[Place]
) -> Iterator[tuple[Place, RestoreCounts]]:
    """Yield what is taken of each chunk of a run.

    :param kind: how its objects differ from the records of Kafka, or why they cannot be restored.
    :raises ConfigError: `kind`, if objects of these places are taken.
    """
    objects: dict[tuple[Place, int], list[tuple[ObjectEntry, bool]]] = {}
    for is_letter, entries in ((False, manifest.objects), (True, manifest.dead_letters)):
        for entry in entries:
            chunk = ((entry.topic, entry.partition, entry.generation), entry.chunk_start)
            objects.setdefault(chunk, []).append((entry, is_letter))
    for account in manifest.chunks:
        place = (account.topic, account.partition, account.generation)
        bounds = selection_of(selection, place)
        if place in places and account.start < bounds.offsets.end and bounds.offsets.start < account.end:
            yield place, _of_chunk(account, objects.get((place, account.start), []), bounds, selection, kind)


def selection_of(selection: RestoreSelection, place: Place, within: Range = _ALL) -> Selection:
    """Return what is selected of a source partition, as readers know it. `within`: only these offsets."""
    start, end = selection.offsets or _ALL
    return Selection(
        topic=place[0],
        hours=None if selection.hours is None else range(*selection.hours),
        offsets=Range(max(start, within.start), min(end, within.end)),
        partitions=frozenset({place[1]}),
        generation=place[2],
    )


def _of_chunk(
    account: ChunkAccount,
    objects: list[tuple[ObjectEntry, bool]],
    bounds: Selection,
    selection: RestoreSelection,
    kind: Inexact | ConfigError | None,
) -> RestoreCounts:
    """:param objects: those of the chunk, and whether each has dead letters."""
    choice = selection.dead_letters
    taken = [
        (entry, is_letter)
        for entry, is_letter in objects
        if bounds.may_have(entry) and (choice == "with" or is_letter == (choice == "only"))
    ]
    if isinstance(kind, ConfigError) and any(not is_letter for _, is_letter in taken):
        raise kind
    archived, letters = (sum(_rows(e, bounds) for e, is_letter in taken if is_letter == wish) for wish in (False, True))
    records, is_sure = archived + letters, True
    inside = Range(max(account.start, bounds.offsets.start), min(account.end, bounds.offsets.end))
    if inside != (account.start, account.end):
        # Without filtered, lost and other records in between, every offset that is not absent is a record.
        is_sure = not (account.filtered or account.lost or kind == "rows") and bounds.hours is None and choice == "with"
        if is_sure:
            gaps = unpack(account.start, account.end, account.absent_ranges).clip(inside.start, inside.end)
            records = inside.size - count(gaps)
    return RestoreCounts(
        records=records,
        exact=is_sure and not selection.by_content,
        bytes=sum(entry.bytes for entry, _ in taken),
        dead_letters=letters,
        filtered=account.filtered,
        absent=account.absent,
        lost=account.lost,
        values_only=archived if kind == "values_only" else 0,
        rows=archived if kind == "rows" else 0,
        oldest=min((entry.min_timestamp for entry, _ in taken), default=None),
        newest=max((entry.max_timestamp for entry, _ in taken), default=None),
    )


def _rows(entry: ObjectEntry, bounds: Selection) -> int:
    if bounds.hours is None or bounds.all_hours(entry):
        return entry.rows
    # Not of each hour of the selection: that may be all since 1970.
    return sum(entry.rows_in(hour) for hour in {*entry.hours} if hour is not None and hour in bounds.hours)
