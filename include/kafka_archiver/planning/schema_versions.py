"""Selects the schemas that a plan names: of what records may be written with, and of what the run writes. Pure."""

from collections.abc import Sequence

from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.plan import Writer
from kafka_archiver.model.schemas import Schema, SubjectVersion
from kafka_archiver.model.settings import Evolution


def written_schema(
    versions: Sequence[SubjectVersion], evolution: Evolution, configured: Schema | None = None
) -> Schema:
    """Return the schema that a run writes: the given one; else, as Confluent's sink connectors, the oldest version for
    FORWARD, and the latest for the others. No deleted version, unless all are deleted.

    :param versions: at least one, oldest first.
    :param configured: the schema of the YAML.
    """
    present = [version for version in versions if not version.deleted] or versions
    return configured or (present[0] if evolution == "FORWARD" else present[-1]).schema


def subject_writers(
    versions: Sequence[SubjectVersion], target: Schema | None, guids: bool = False
) -> tuple[Writer, ...]:
    """Return the schemas of one subject's versions, one for each id.

    :param versions: oldest first.
    :param target: the schema that the run writes all of them as; None: each one as itself.
    :param guids: records have the schema's GUID in a header.
    """
    by_id = {version.id: version for version in versions}
    return tuple(
        Writer(
            id=version.id,
            subject=version.subject,
            version=version.number,
            guid=version.guid if guids else None,
            fingerprint=(own := version.schema.fingerprint),
            written_as=target.fingerprint if target else own,
        )
        for version in by_id.values()
    )


def unframed_writer(schema: Schema) -> tuple[Writer, ...]:
    """Return the schema of bytes without a frame."""
    return (Writer(fingerprint=schema.fingerprint, written_as=schema.fingerprint),)


def merge_writers(registered: Sequence[Writer], before: Sequence[Writer], projected: bool) -> tuple[Writer, ...]:
    """Return the schemas of a further plan of the same records: also those that the registry has lost since the first
    plan. An id that the registry gives to another schema by now stays with the schema of the first plan.

    :param registered: those that the registry has now. :param before: those of the first plan.
    :param projected: the run writes all schemas of a subject as one; else each one as itself.
    """
    first = {writer.id: writer.fingerprint for writer in before}
    same = [writer for writer in registered if first.get(writer.id, writer.fingerprint) == writer.fingerprint]
    known = {writer.id for writer in same}
    target = {writer.subject: writer.written_as for writer in registered}

    def written(lost: Writer) -> str:
        return target.get(lost.subject, lost.written_as) if projected else lost.fingerprint

    lost = [writer for writer in before if writer.id not in known]
    return (*same, *(writer.model_copy(update={"written_as": written(writer)}) for writer in lost))


def no_subject(subject: str, topic: str, column: str, url: str) -> PermanentError:
    """Return the error for a subject without versions."""
    return PermanentError(
        f"the schema registry at {url} has no subject {subject}, which has the schemas of the {column}s of topic "
        f"{topic} by `source.{column}.subject`: nothing was planned. Register the schema, or name the right strategy, "
        "`subjects` or registry"
    )


def no_guid(version: SubjectVersion, column: str, url: str) -> PermanentError:
    """Return the error for a registry that does not know the ids that headers have."""
    return PermanentError(
        f"the schema registry at {url} gives no GUID for version {version.number} of subject {version.subject}, and "
        f"`source.{column}.schema_id` is header: nothing was planned. GUIDs need Confluent's registry 8.0 or later; "
        "with another one, let producers put the id before the data, and set `schema_id: frame`"
    )
