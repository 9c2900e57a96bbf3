"""The schemas of a plan: asked from the registry, or given by the YAML, and stored before the plan names them.

Their fingerprints are made by `model.schemas.Schema.fingerprint`; `schema_versions` puts them into the plan's writers.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafka_archiver.config.decoding import DecoderSection, Decoding
from kafka_archiver.context.archive_context import Context
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.plan import PartitionPlan, TopicSchemas, Writer
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.settings import Settings
from kafka_archiver.planning.given_schemas import complete_schema, infer_schema, sample_values
from kafka_archiver.planning.schema_versions import (
    merge_writers,
    no_guid,
    no_subject,
    subject_writers,
    unframed_writer,
    written_schema,
)

if TYPE_CHECKING:
    # Not at runtime: it loads the HTTP client.
    from kafka_archiver.records.decode.schema_registry import Registry


class FrozenSchemas(NamedTuple):
    """The schemas of a plan, and their texts by fingerprint."""

    schemas: tuple[TopicSchemas, ...] = ()
    texts: Mapping[str, Schema] = {}

    def store(self, ledger: Ledger) -> None:
        """Store the texts. Before the plan: what a plan names can be read by anybody."""
        for schema in self.texts.values():
            ledger.keep_schema(schema)


def freeze_schemas(
    context: Context,
    settings: Settings,
    partitions: Iterable[PartitionPlan],
    before: Sequence[TopicSchemas] = (),
    infers: bool = True,
) -> FrozenSchemas:
    """Return the schemas that the records of a plan may be written with.

    Call it after the high watermarks were read: a producer registers a schema before its first record, so every record
    of the plan has a schema that the registry knows now.

    :param partitions: of the plan. Topics that are not read need no schemas.
    :param before: the schemas of the plan that this one repeats.
    :param infers: whether schemas are inferred again; else the inferred schemas of that plan stay.
    :raises TransientError: the registry does not answer.
    :raises PermanentError: the registry does not have the schemas.
    :raises ConfigError: a schema cannot be decoded.
    """
    decoded = context.archive.source.with_schemas
    read = [partition for partition in partitions if partition.ranges]
    if not read or not (context.archive.has_columns or settings.transform):
        return FrozenSchemas()
    # Imported late, because it loads Arrow, which Airflow need not load to parse a DAG.
    from kafka_archiver.records.pipeline.variants import Variants

    topics = sorted({partition.topic for partition in read})
    sources = _Sources(context, settings, read, {(s.topic, s.column): s for s in before}, infers)
    schemas = tuple(sources.of(topic, c, decoding) for topic in topics for c, decoding in decoded.items())
    for topic in topics:
        # Before the plan is made: a plan that cannot be carried out would stay.
        Variants(settings, topic, schemas, sources.texts)
    return FrozenSchemas(schemas, sources.texts)


class _Sources:
    """Where schemas come from. `texts`: those that were found, by fingerprint."""

    def __init__(
        self,
        context: Context,
        settings: Settings,
        partitions: Sequence[PartitionPlan],
        before: Mapping[tuple[str, str], TopicSchemas],
        infers: bool,
    ) -> None:
        self._context, self._settings, self._partitions, self._before = context, settings, partitions, before
        self._infers = infers
        self._registry: Registry | None = None
        self.texts: dict[str, Schema] = {}

    def of(self, topic: str, column: str, decoding: DecoderSection) -> TopicSchemas:
        """Return the schemas of a topic's keys, values or header."""
        schema = self._configured(topic, column, decoding)
        if schema:
            self._keep(schema)
        registry = self._context.archive.source.registry is not None
        if isinstance(decoding, Decoding) and decoding.is_framed(registry):
            return self._registered(topic, column, decoding, schema)
        assert schema, "the YAML was checked"
        return TopicSchemas(
            topic=topic, column=column, framed=False, writers=unframed_writer(schema), message=decoding.message or ""
        )

    def _configured(self, topic: str, column: str, decoding: DecoderSection) -> Schema | None:
        """Return the schema that the YAML gives, or that the topic's records have."""
        if decoding.infers:
            before = self._before.get((topic, column))
            if before and not before.framed and not self._infers:
                return self._context.ledger.schemas(before.written)[before.written[0]]
            own = [partition for partition in self._partitions if partition.topic == topic]
            return infer_schema(sample_values(self._context, self._settings, own, column))
        return decoding.declared_schema and complete_schema(decoding.declared_schema)

    def _registered(self, topic: str, column: str, decoding: Decoding, configured: Schema | None) -> TopicSchemas:
        """Return the schemas of bytes that begin with a schema's id."""
        if self._registry is None:
            assert self._context.registry, "the YAML was checked"
            self._registry = self._context.registry()
        evolution = self._settings.schema_evolution
        before = self._before.get((topic, column))
        first = before.writers if before else ()
        # Bytes that are stored as they are are only checked, each with its own schema; but Spark's SQL needs one.
        transform = self._settings.transform
        typed = self._settings.content != "record" or (transform is not None and transform.sql is not None)
        projected = bool(configured) or (typed and evolution != "NONE")
        in_header = decoding.schema_id == "header"
        known: dict[int | None, Writer] = {}
        main = None
        for subject in decoding.subjects_of(topic, column):
            versions = self._registry.versions(subject)
            if not versions and not any(writer.subject == subject for writer in first):
                raise no_subject(subject, topic, column, self._registry.url)
            for version in versions:
                if in_header and version.guid is None:
                    raise no_guid(version, column, self._registry.url)
                self._keep(version.schema)
            if versions:
                target = written_schema(versions, evolution, configured)
                main = main or target.fingerprint
                known = {
                    **{w.id: w for w in subject_writers(versions, target if projected else None, in_header)},
                    **known,
                }
        schemas = TopicSchemas(
            topic=topic,
            column=column,
            framed=True,
            writers=merge_writers(tuple(known.values()), first, projected),
            message=decoding.message or "",
        )
        for fingerprint in {print_ for w in schemas.writers for print_ in (w.fingerprint, w.written_as)}:
            if fingerprint not in self.texts:
                self.texts |= self._context.ledger.schemas([fingerprint])
        if projected or self._settings.content == "record" or len(schemas.written) == 1:
            return schemas
        mains = (main, before and before.main, schemas.written[-1])
        return schemas.model_copy(update={"main": next(main for main in mains if main in schemas.written)})

    def _keep(self, schema: Schema) -> None:
        self.texts[schema.fingerprint] = schema
