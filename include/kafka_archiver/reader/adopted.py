"""The records of adopted objects: in the order of their offsets, as far as these are known."""

from collections.abc import Iterator

import pyarrow as pa

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import print_object
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.adopted import AdoptedObject, AdoptedPartition, Adoption
from kafka_archiver.reader.selection import Selection
from kafka_archiver.records.formats.base import RECORD
from kafka_archiver.records.reading.files import fetch_from
from kafka_archiver.records.reading.merge import OFFSET, merged
from kafka_archiver.records.reading.object_copies import Copies
from kafka_archiver.records.reading.opener import missing, open_adopted
from kafka_archiver.values.columns import column
from kafka_archiver.values.ranges import Range, TopicPartition

# Topic, partition and offset of values and of columns that do not have them.
_PLACE = [RECORD.field("topic"), RECORD.field("partition"), RECORD.field("offset").with_nullable(True)]


def adopted_records(ledger: Ledger, adoption: Adoption, selection: Selection) -> Iterator[pa.RecordBatch]:
    """Yield the selected records, partition by partition: those with known offsets in their order, each offset once.

    Rows of objects whose offsets are unknown come where the object's name stands, with `offset` null.

    :raises ConfigError: the selection would have to guess which rows of an object it means.
    :raises IntegrityError: an object is missing or damaged.
    """
    for partition in adoption.partitions:
        if not selection.takes(partition.topic, partition.partition, 0):
            continue
        last = -1
        for group in _groups(_objects(ledger, partition, selection.offsets)):
            is_known = group[0].offsets == "each"
            for batch in _of_group(ledger, group, selection.offsets, last):
                # What overlaps behind other objects comes once, too.
                last = int(column(batch, OFFSET.name)[-1]) if is_known else last
                yield _shown(batch, group[0])


def adopted_record(
    ledger: Ledger, adoption: Adoption, name: TopicPartition, offset: int, count: int
) -> Iterator[pa.RecordBatch]:
    """Yield the record at an offset, or `count` records from it on: fewer where an offset is unknown.

    :raises ConfigError: no row is known to be at the offset; the message says what is known of it.
    :raises IntegrityError: an object is missing or damaged.
    """
    partition = adoption.partition(*name)
    if partition is None:
        raise ConfigError(f"archive {ledger.archive} has no partition {name}")
    following, shown = offset, 0
    for group in _groups(_known(ledger, partition, offset)):
        # Between two objects may be rows of others whose offsets are unknown.
        if group[0].sure.start > following and (not shown or partition.loose):
            break
        if max(item.sure.end for item in group) <= following:
            # Its rows were given already, of an object before it.
            continue
        for batch in _known_rows(ledger, group, Range(following, 2**63 - 1)):
            if not shown and column(batch, OFFSET.name)[0] != offset:
                break
            rows = batch.slice(0, count - shown)
            shown, following = shown + rows.num_rows, int(column(rows, OFFSET.name)[-1]) + 1
            yield _shown(rows, group[0])
            if shown == count:
                return
        if not shown:
            break
    if not shown:
        raise _none_at(ledger, adoption, partition, offset)


def placed_rows(
    ledger: Ledger, partition: AdoptedPartition, offsets: Range
) -> Iterator[tuple[list[AdoptedObject], Iterator[pa.RecordBatch]]]:
    """Yield the rows with known offsets, by offset, each offset once: the objects that may have them, which overlap,
    and batches with `OFFSET`. Nothing of the objects is read before the batches are; take them all.

    :raises IntegrityError: an object is missing or damaged.
    """
    last = -1

    def rows(group: list[AdoptedObject]) -> Iterator[pa.RecordBatch]:
        nonlocal last
        for batch in _of_group(ledger, group, offsets, last):
            last = int(column(batch, OFFSET.name)[-1])
            yield batch

    for group in _groups(item for item in _objects(ledger, partition, offsets) if item.offsets == "each"):
        yield group, rows(group)


def adopted_object(ledger: Ledger, key: str) -> AdoptedObject | None:
    """Return an adopted object by its key; reads the pages until one has it."""
    adoption = ledger.adoption()
    if adoption is None or not key.startswith(adoption.folder):
        return None
    pages = ledger.adopted_pages(adoption)
    return next((item for page in pages for item in page.objects if item.key == key), None)


def object_rows(ledger: Ledger, item: AdoptedObject) -> Iterator[pa.RecordBatch]:
    """Yield all rows of an object.

    :raises IntegrityError: it is missing or damaged; nothing was yielded.
    """
    with Copies() as copies:
        for batch in _filled(_rows(ledger, item, copies)):
            yield _shown(batch, item)


def _objects(ledger: Ledger, partition: AdoptedPartition, offsets: Range) -> Iterator[AdoptedObject]:
    """Yield the objects that may have rows of these offsets, in the order of their pages."""
    for ref in partition.pages:
        if ref.loose or (ref.first < offsets.end and offsets.start <= ref.last):
            for item in ledger.adopted_page(partition, ref).objects:
                if item.span.start < offsets.end and offsets.start < item.span.end:
                    yield item


def _known(ledger: Ledger, partition: AdoptedPartition, offset: int) -> Iterator[AdoptedObject]:
    """Yield the objects of which some row is known to be at the offset or behind it."""
    for ref in partition.pages:
        if offset <= ref.last:
            for item in ledger.adopted_page(partition, ref).objects:
                if (item.offsets == "each" or item.names_a_row) and offset < item.sure.end:
                    yield item


def _known_rows(ledger: Ledger, group: list[AdoptedObject], offsets: Range) -> Iterator[pa.RecordBatch]:
    return _of_group(ledger, group, offsets) if group[0].offsets == "each" else _named_row(ledger, group[0])


def _groups(objects: Iterator[AdoptedObject]) -> Iterator[list[AdoptedObject]]:
    """Yield objects with known offsets together if they overlap, every other one alone."""
    group: list[AdoptedObject] = []
    for item in objects:
        overlaps = (
            group
            and item.offsets == group[0].offsets == "each"
            and item.first_offset <= max(other.last_offset for other in group)
        )
        if group and not overlaps:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _of_group(ledger: Ledger, group: list[AdoptedObject], offsets: Range, last: int = -1) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these offsets, each offset once: the first object's.

    :param last: known offsets up to it have come already.
    """
    with Copies() as copies:
        if group[0].offsets != "each":
            _require_whole(ledger, group[0], offsets)
            yield from _rows(ledger, group[0], copies)
            return
        for batch in merged([_filled(_rows(ledger, item, copies)) for item in group], OFFSET.name):
            numbers = column(batch, OFFSET.name)
            keep = (numbers >= offsets.start) & (numbers < offsets.end) & (numbers > last)
            keep[1:] &= numbers[1:] != numbers[:-1]
            last = int(numbers[-1])
            rows = batch.filter(pa.array(keep))
            if rows.num_rows:
                yield rows


def _filled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def _require_whole(ledger: Ledger, item: AdoptedObject, offsets: Range) -> None:
    span = item.span
    if offsets.start <= span.start and span.end <= offsets.end:
        return
    where = {
        "within": f"somewhere between the offsets {item.first_offset} and {item.last_offset}",
        "first": f"at the offset {item.first_offset} and somewhere behind",
        "last": f"at the offset {item.last_offset} and somewhere before",
    }
    raise ConfigError(
        f"{ledger.store.url}/{item.key} was adopted, and nobody knows the offsets of its {item.rows} rows: they are "
        f"{where[item.offsets]}. Read without `offsets`, or offsets that exclude or include all of these"
    )


def _rows(ledger: Ledger, item: AdoptedObject, copies: Copies) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an object that was compared with its checksum before; with `OFFSET`, null: unknown."""
    fetch = copies.add(item, fetch_from(ledger.store, item.key, missing))
    row = 0
    for batch in open_adopted(item, fetch):
        if not item.has_offsets:
            size = batch.num_rows
            first = item.first_offset + row
            is_known = item.offsets == "each"
            known = pa.array(range(first, first + size), OFFSET.type) if is_known else pa.nulls(size, OFFSET.type)
            batch = batch.append_column(OFFSET, known)
            row += size
        yield batch


def _named_row(ledger: Ledger, item: AdoptedObject) -> Iterator[pa.RecordBatch]:
    """Yield the one row whose offset the object's name says."""
    chosen = None
    with Copies() as copies:
        for batch in _filled(_rows(ledger, item, copies)):
            chosen = batch.slice(0, 1) if item.offsets == "first" else batch.slice(batch.num_rows - 1, 1)
            if item.offsets == "first":
                break
    if chosen is not None:
        at = chosen.schema.get_field_index(OFFSET.name)
        yield chosen.set_column(at, OFFSET, pa.array([item.sure.start], OFFSET.type))


def _shown(batch: pa.RecordBatch, item: AdoptedObject) -> pa.RecordBatch:
    """Return a batch without this room's column. A batch that has not Kafka's columns gets topic, partition and offset
    before its own; one that a column of the value is named like begins with `kafka_`.
    """
    offsets, records = batch.column(OFFSET.name), batch.drop_columns([OFFSET.name])
    if {"topic", "partition", "offset"} <= set(records.schema.names) and item.format == "mak":
        return records
    taken = set(records.schema.names)
    place = [pa.repeat(pa.scalar(item.topic), len(batch)), pa.repeat(pa.scalar(item.partition, pa.int32()), len(batch))]
    arrays = [*place, offsets]
    fields = [f if f.name not in taken else f.with_name(f"kafka_{f.name}") for f in _PLACE]
    return pa.RecordBatch.from_arrays(
        [*arrays, *records.columns], schema=pa.schema([*fields, *records.schema.remove_metadata()])
    )


def _none_at(ledger: Ledger, adoption: Adoption, partition: AdoptedPartition, offset: int) -> ConfigError:
    """Return the error about an offset at which no row is known to be."""
    where = f"{TopicPartition(partition.topic, partition.partition)} offset {offset}"
    candidates = [
        item.key
        for item in _objects(ledger, partition, Range(offset, offset + 1))
        if item.offsets != "each" or item.has_offsets
    ]
    if any_loose := candidates[:3]:
        return ConfigError(
            f"{where} is unproven: if the archive has its record, it is in {' or '.join(any_loose)}"
            f"{' or another one' * (len(candidates) > 3)}, which {adoption.tool} wrote; nobody knows the "
            "offset of each row there.",
            *advise(print_object(f"{ledger.store.url}/{any_loose[0]}"), " prints all"),
        )
    return ConfigError(
        f"{where} is unproven: no object that was adopted from {adoption.tool} has it, and nobody knows whether Kafka "
        f"had a record there. Known are offsets from {partition.first_offset} to {partition.last_offset}"
    )
