"""Restore objects that another tool wrote: the rows whose offsets are known, as values.

A page of a restore's plan names them as one run, `adopted`, with the digest of the head of the adoption.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.adopted import AdoptedObject, AdoptedPartition, Adoption
from kafka_archiver.model.restore import Inexact, RestoreSelection, RestoreSource
from kafka_archiver.reader.adopted import placed_rows
from kafka_archiver.reader.selection import LAST_OFFSET
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.restore.exact import refusal, writable

# No run has this name.
ADOPTED = "adopted"


@dataclass(frozen=True, slots=True)
class AdoptedSource:
    """A partition of adopted objects, and the offsets of it that are selected."""

    partition: AdoptedPartition
    offsets: Range

    @property
    def lost(self) -> int:
        """The number of rows without a known offset, and of offsets of which nobody knows what Kafka had there."""
        return self.partition.unproven + self.partition.loose


def adopted_sources(adoption: Adoption, selection: RestoreSelection) -> Iterator[AdoptedSource]:
    """Yield the partitions that a restore takes of an adoption: none by hours, which nobody knows."""
    if selection.hours is not None or selection.generation:
        return
    start, end = selection.offsets or (0, LAST_OFFSET)
    for partition in adoption.partitions:
        offsets = Range(max(start, partition.first_offset), min(end, partition.last_offset + 1))
        if selection.takes(partition.name) and offsets.start < offsets.end:
            yield AdoptedSource(partition, offsets)


def adopted_rows(
    ledger: Ledger, source: RestoreSource, digest: str, offsets: Range, allowed: Collection[Inexact]
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Yield the records as the target gets them, by offset, and before them how many bytes of objects have to be read.

    :raises IntegrityError: the adoption is not the one of the plan, or an object is missing or damaged.
    :raises ConfigError: objects have no bytes of values, or what is not exact is not allowed.
    """
    adoption = ledger.adoption()
    if adoption is None or adoption.digest != digest:
        raise IntegrityError(
            f"archive {ledger.archive} has not adopted what the restore's plan names: restore adoption.json from a "
            "version or copy of the store"
        )
    partition = adoption.partition(source.topic, source.partition)
    if partition is None:
        return
    where = str(source.name)
    for change, count in (("values_only", partition.placed), ("lost", AdoptedSource(partition, offsets).lost)):
        if count and change not in allowed:
            raise refusal(change, count, where)  # type: ignore[arg-type]
    for items, batches in placed_rows(ledger, partition, offsets):
        for item in items:
            _require_bytes(item)
        size = sum(item.bytes for item in items)
        yield size, (writable(batch, items[0], where, allowed) for batch in batches)


def lost_of(ledger: Ledger, source: RestoreSource) -> int:
    """Return the number of rows and offsets of a partition that a restore leaves out."""
    adoption = ledger.adoption()
    partition = adoption and adoption.partition(source.topic, source.partition)
    return AdoptedSource(partition, Range(0, 0)).lost if partition else 0


def _require_bytes(item: AdoptedObject) -> None:
    if item.format == "mak" or (item.format == "lines" and not item.has_offsets):
        return
    has = "lines of an envelope" if item.format == "lines" else f"columns ({item.format})"
    raise ConfigError(
        f"{item.key} has {has}, not the bytes of values: it cannot be restored. A program can: "
        "`open_archive().read` gives its records (docs/howto/read.md)"
    )
