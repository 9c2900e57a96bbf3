"""The object that an entry of a manifest promises, as the encoder of its plan wrote it."""

from collections.abc import Mapping

from kafka_archiver.model.keys import is_dead_letter, schemas_in
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.formats import dead_letter
from kafka_archiver.records.formats.base import RECORD, SCHEMAS, Target, is_typed
from kafka_archiver.records.pipeline.variants import columns_by_suffix


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
