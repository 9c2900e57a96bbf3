"""The offsets of an object's rows, for objects that do not have them: values alone do not say."""

import numpy as np

from kafka_archiver.model.manifest import ChunkAccount, Manifest, ObjectEntry
from kafka_archiver.values.columns import Int64s
from kafka_archiver.values.gaps import unpack


def account_of(manifest: Manifest, entry: ObjectEntry) -> ChunkAccount | None:
    """Return the account of an object's chunk."""
    place = (entry.topic, entry.partition, entry.chunk_start)
    return next((a for a in manifest.chunks if (a.topic, a.partition, a.start) == place), None)


def offsets_of(manifest: Manifest, entry: ObjectEntry) -> Int64s | None:
    """Return the offset of each row, if no other records lie between them; else None."""
    if entry.records is not None:
        return None
    present = np.ones(entry.last_offset + 1 - entry.first_offset, bool)
    if account := account_of(manifest, entry):
        for start, end in unpack(account.start, account.end, account.absent_ranges).tolist():
            present[max(0, start - entry.first_offset) : max(0, end - entry.first_offset)] = False
    offsets: Int64s = np.flatnonzero(present) + entry.first_offset
    return offsets if len(offsets) == entry.rows else None
