"""The schemas of a restore: those that its records name by id, and their ids in the target's registry. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, cast

from pydantic import Field

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.schemas import Schema
from kafka_archiver.values.documents import ArchiveDocument, Value

Id = Annotated[int, Field(ge=1)]
# same: the ids that the records have; new: ids that the target's registry gives, and the records get these.
SchemaIds = Literal["same", "new"]
Column = Literal["key", "value"]
RegistryMode = Literal["READWRITE", "READONLY", "READONLY_OVERRIDE", "FORWARD", "IMPORT"]


class RegisteredSchema(Value):
    """A version of a subject. `id`: in the source. `new_id`: in the target; null: not registered there yet."""

    subject: str
    version: Id
    id: Id
    fingerprint: str
    new_id: Id | None = None


class SubjectMode(Value):
    """A subject that is set to IMPORT for a while. `mode`: the one that it had of its own before; null: none."""

    subject: str
    mode: RegistryMode | None


class ReframedColumn(Value):
    """The schema ids of the keys or values of a source topic: pairs of the old and the new id, sorted."""

    topic: str
    column: Column
    ids: tuple[tuple[Id, Id], ...]


class RestoreSchemas(ArchiveDocument):
    """The schemas of a restore. `registry`: the target's URL. `modes`: set before any mode is changed.

    `done`: everything is registered, and each subject has its mode back.
    """

    document: Literal["kafka-archiver/restore-schemas"] = "kafka-archiver/restore-schemas"
    restore: str
    registry: str
    ids: SchemaIds
    schemas: tuple[RegisteredSchema, ...]
    columns: tuple[ReframedColumn, ...]
    modes: tuple[SubjectMode, ...] = ()
    done: bool = False

    @property
    def reframed(self) -> tuple[ReframedColumn, ...]:
        """The columns whose records get other ids, with these."""
        new_ids = {schema.id: schema.new_id or schema.id for schema in self.schemas}
        columns = (
            ReframedColumn(topic=c.topic, column=c.column, ids=tuple((old, new_ids[old]) for old, _ in c.ids))
            for c in self.columns
        )
        return tuple(column for column in columns if any(old != new for old, new in column.ids))


def named_schemas(
    plans: Iterable[Plan], topics: Iterable[str]
) -> tuple[tuple[RegisteredSchema, ...], tuple[ReframedColumn, ...]]:
    """Return the schemas that records of these topics may name by id, by subject and version, and the ids by column.

    :raises ConfigError: an id means two schemas: the archive has seen two registries.
    """
    restored = frozenset(topics)
    schemas: dict[int, RegisteredSchema] = {}
    columns: dict[tuple[str, Column], set[int]] = {}
    for plan in plans:
        for of_topic in plan.schemas:
            if of_topic.topic not in restored or not of_topic.framed or of_topic.column not in ("key", "value"):
                continue
            column = cast(Column, of_topic.column)
            for writer in of_topic.writers:
                if writer.id is None or writer.subject is None or writer.version is None:
                    continue
                known = schemas.get(writer.id)
                if known and known.fingerprint != writer.fingerprint:
                    raise ConfigError(
                        f"schema id {writer.id} means version {known.version} of subject {known.subject} in one run of "
                        f"archive {plan.archive} and version {writer.version} of {writer.subject} in another: the "
                        "archive has seen two registries. Restore the hours of each one by itself (--hours), or the "
                        "bytes as they are (without --registry)"
                    )
                schemas.setdefault(
                    writer.id,
                    RegisteredSchema(
                        subject=writer.subject, version=writer.version, id=writer.id, fingerprint=writer.fingerprint
                    ),
                )
                columns.setdefault((of_topic.topic, column), set()).add(writer.id)
    return (
        tuple(sorted(schemas.values(), key=lambda schema: (schema.subject, schema.version))),
        tuple(
            ReframedColumn(topic=topic, column=column, ids=tuple((number, number) for number in sorted(ids)))
            for (topic, column), ids in sorted(columns.items())
        ),
    )


class PlacedSchema(NamedTuple):
    """A schema to register, with its text. `is_import`: the archive knows it only as an import of others."""

    place: RegisteredSchema
    text: Schema
    is_import: bool = False


def with_imports(schemas: Sequence[RegisteredSchema], texts: Mapping[str, Schema]) -> list[PlacedSchema]:
    """Return the schemas with their texts, each behind those that it imports.

    The archive knows an import by its name alone: it becomes a subject of this name, as Confluent's serializers do,
    with an id above all others.
    """
    following = max((schema.id for schema in schemas), default=0) + 1
    versions: dict[str, list[str]] = {}
    ordered: list[PlacedSchema] = []
    for schema in schemas:
        for name, imported in _imports(texts[schema.fingerprint]):
            known = versions.setdefault(name, [])
            if imported.fingerprint not in known:
                known.append(imported.fingerprint)
                place = RegisteredSchema(
                    subject=name, version=len(known), id=following, fingerprint=imported.fingerprint
                )
                following += 1
                ordered.append(PlacedSchema(place, imported, is_import=True))
        ordered.append(PlacedSchema(schema, texts[schema.fingerprint]))
    return ordered


def _imports(schema: Schema) -> Iterator[tuple[str, Schema]]:
    for reference in schema.references:
        yield from _imports(reference.imported)
        yield reference.name, reference.imported
