"""The schemas that no registry gives: those of the YAML, and those that are inferred from some records of a plan."""

import json
from collections.abc import Iterable, Iterator

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.plan import PartitionPlan, TopicSchemas
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.settings import Settings
from kafka_archiver.planning.schema_versions import unframed_writer
from kafka_archiver.values.ranges import Range

# Partitions of a topic, and offsets at the start of each one's planned range.
PARTITIONS, OFFSETS = 10, 200
_PATIENCE_SECONDS = 5.0


def sample_values(
    context: Context, settings: Settings, partitions: Iterable[PartitionPlan], column: str
) -> Iterator[bytes]:
    """Yield keys or values that are not null, of the first offsets of some partitions of one topic.

    :raises TransientError: the brokers do not answer.
    """
    # Imported late, because it loads Kafka's client, and Airflow parses modules that import this one all day.
    from kafka_archiver.kafka.reader import read_chunk

    whole = settings.model_copy(update={"content": "record"})
    for partition in [p for p in partitions if p.ranges][:PARTITIONS]:
        start, end = partition.ranges[0]
        chunk = partition.chunk(Range(start, min(end, start + OFFSETS)))
        for batch in read_chunk(context.cluster.properties, context.archive.group, chunk, whole, _PATIENCE_SECONDS):
            yield from (value for value in batch.column(column).to_pylist() if value is not None)


def infer_schema(values: Iterable[bytes]) -> Schema:
    """Return the schema of JSON documents."""
    from kafka_archiver.records.decode.json_text import infer

    return infer.infer(values)


def complete_schema(configured: Schema) -> Schema:
    """Return the schema that the YAML gives, of a list of columns too.

    :raises ConfigError: it is a list of other things.
    """
    from kafka_archiver.records.decode.json_text.columns import from_columns

    columns = json.loads(configured.text) if configured.kind == "JSON" else None
    return from_columns(columns) if isinstance(columns, list) else configured


def require_readable(archive: Archive, settings: Settings) -> None:
    """Check the schemas that the YAML gives: that the decoders can read them, the format store their columns, and that
    they have the fields by which records are filed.

    :param settings: complete, as a plan has them.
    :raises ConfigError: they cannot.
    """
    from kafka_archiver.records.pipeline.decode import decodings, fields_of, require_known, storable

    own: list[TopicSchemas] = []
    texts: dict[str, Schema] = {}
    names = settings.model_dump(include={"key_decode", "value_decode"})
    for column, decoding in archive.source.with_schemas.items():
        if decoding.declared_schema:
            try:
                schema = complete_schema(decoding.declared_schema)
            except ConfigError as error:
                raise ConfigError(f"source.{column}.schema: {error}") from None
            texts[schema.fingerprint] = schema
            message = decoding.message or ""
            own.append(
                TopicSchemas(topic="", column=column, framed=False, writers=unframed_writer(schema), message=message)
            )
        else:
            # Planning reads the schema from the registry, or infers it.
            names[f"{column}_decode"] = "bytes"
    known = settings.model_copy(update=names)
    decoded = decodings(known, "", own, texts)
    columns = {schemas.column for schemas in own}
    require_known(settings, fields_of([item for item in decoded if item.column in columns]))
    if (own or settings.transform) and known == settings:
        storable(settings, "", decoded)
