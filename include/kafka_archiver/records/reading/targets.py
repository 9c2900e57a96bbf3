"""The object that an entry of a manifest promises, as the encoder of its plan wrote it."""

from collections.abc import Mapping

import numpy as np

from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.model.object_keys import is_dead_letter, schemas_in
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.formats import dead_letter
from kafka_archiver.records.formats.base import RECORD, SCHEMAS, Target, is_typed
from kafka_archiver.records.pipeline.variants import columns_by_suffix
from kafka_archiver.values.columns import Int64s
from kafka_archiver.values.gaps import unpack


def target_of(entry: ObjectEntry, plan: Plan, schemas: Mapping[str, Schema]) -> Target:
    """Return an object's key, settings and columns.

    :param plan: the one that wrote the object.
    :param schemas: the texts of the plan's schemas by fingerprint.
    :raises ConfigError: this release cannot read a schema.
    """
    if is_dead_letter(entry.key):
        settings, schema = dead_letter.SETTINGS, RECORD
    else:
        settings = plan.settings
        columns = dict(columns_by_suffix(settings, entry.topic, plan.schemas, schemas))
        own = columns.get(schemas_in(entry.key), columns[""])
        schema = own if is_typed(own) else SCHEMAS[settings.content]
    return Target(topic=entry.topic, partition=entry.partition, key=entry.key, settings=settings, schema=schema)


def account_of(manifest: Manifest, entry: ObjectEntry) -> ChunkAccount | None:
    """Return the account of an object's chunk."""
    return next((account for account in manifest.chunks if account.place == entry.place), None)


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
