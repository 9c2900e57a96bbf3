"""Register the archive's schemas at the target's registry, so that consumers can read what a restore writes.

Under the same ids a subject must be in the mode IMPORT for a while, which a registry grants only to an empty subject.
Which mode each had before is on record first: whoever comes after a killed attempt sets it back.
`records/decode/reframe` writes new ids into records.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, PermanentError, TransientError
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.restored_schemas import (
    PlacedSchema,
    RegisteredSchema,
    RestoreSchemas,
    SchemaIds,
    SubjectMode,
    named_schemas,
    with_imports,
)
from kafka_archiver.model.schemas import Schema, SubjectVersion

if TYPE_CHECKING:
    # Not at runtime: it loads the HTTP client.
    from kafka_archiver.records.decode.schema_registry_writer import RegistryWriter

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


@dataclass
class SchemaRegistration:
    """Registers the schemas of one restore.

    :ivar stored: the document as it was read or written last.
    """

    ledger: Ledger
    restore: str
    writer: "RegistryWriter"

    def run(self, plans: Iterable[Plan], topics: Iterable[str], ids: SchemaIds) -> RestoreSchemas:
        """Register what records of these topics name; a second attempt registers what the first one did not.

        :raises ConfigError: the records name no schemas, or the registry cannot take them under these ids.
        :raises TransientError: the registry does not answer, or another process does the same at this moment.
        """
        self.stored = self.ledger.restore_schemas(self.restore)
        before = self.repaired()
        schemas, columns = named_schemas(plans, topics)
        if not schemas:
            raise ConfigError(
                f"archive {self.ledger.archive} knows no schemas of {', '.join(sorted(topics))}: only plans with a "
                "decoder and a registry keep them. Leave out --registry: the bytes are restored as they are"
            )
        document = RestoreSchemas(
            archive=self.ledger.archive,
            restore=self.restore,
            registry=self.writer.url,
            ids=ids,
            schemas=schemas,
            columns=columns,
        )
        if before and before.done and _is_same(before, document):
            return before
        texts = self.ledger.schemas(schema.fingerprint for schema in schemas)
        if ids == "new":
            return self._with_new_ids(document, texts)
        return self._with_same_ids(document, texts, before.modes if before else ())

    def repaired(self) -> RestoreSchemas | None:
        """Set back the modes that a killed attempt has left. Return the document of the attempt before."""
        document = self.stored.document
        if document is None or document.done or not document.modes:
            return document
        if document.registry != self.writer.url:
            raise PermanentError(
                f"restore {self.restore} has left subjects in the mode IMPORT at {document.registry}: run it once more "
                "with that registry, which sets them back, or give the restore another name"
            )
        for known in document.modes:
            self._set_back(known)
        return document

    def _set_back(self, known: SubjectMode) -> None:
        from kafka_archiver.records.decode.schema_registry_requests import RefusedError
        from kafka_archiver.records.decode.schema_registry_writer import has_no_modes

        try:
            if self.writer.mode(known.subject) == "IMPORT" and known.mode != "IMPORT":
                self.writer.set_mode(known.subject, known.mode)
                log.info("subject %s of %s is not in the mode IMPORT any more", known.subject, self.writer.url)
        except RefusedError as error:
            if not has_no_modes(error):
                raise

    def _with_new_ids(self, document: RestoreSchemas, texts: Mapping[str, Schema]) -> RestoreSchemas:
        from kafka_archiver.records.decode.schema_registry_requests import RefusedError

        registered = []
        for schema in document.schemas:
            try:
                number = self.writer.register(schema.subject, texts[schema.fingerprint])
            except RefusedError as error:
                raise ConfigError(
                    f"version {schema.version} of subject {schema.subject} cannot be registered: {error}. Set the "
                    "subject's compatibility to NONE for the restore, or delete the subject there"
                ) from error
            registered.append(schema.model_copy(update={"new_id": number}))
        return self._keep(document.model_copy(update={"schemas": tuple(registered), "done": True}))

    def _with_same_ids(
        self, document: RestoreSchemas, texts: Mapping[str, Schema], own: tuple[SubjectMode, ...]
    ) -> RestoreSchemas:
        known_modes = {mode.subject: mode for mode in own}
        missing = self._missing(with_imports(document.schemas, texts), frozenset(known_modes))
        subjects = dict.fromkeys(schema.place.subject for schema in missing)
        modes = {subject: known_modes.get(subject) or self._mode(subject) for subject in subjects}
        if modes:
            self._keep(document.model_copy(update={"modes": tuple(modes.values())}))
        try:
            for subject in modes:
                self._import_into(subject, force=subject in known_modes)
            for missed in missing:
                self.writer.register(missed.place.subject, missed.text, missed.place.id, missed.place.version)
        finally:
            for mode in modes.values():
                self._set_back(mode)
        for schema in document.schemas:
            self._require(schema, self.writer.registry.schema(schema.id))
        registered = tuple(schema.model_copy(update={"new_id": schema.id}) for schema in document.schemas)
        return self._keep(document.model_copy(update={"schemas": registered, "done": True}))

    def _missing(self, schemas: Sequence[PlacedSchema], own: Collection[str]) -> list[PlacedSchema]:
        """Return what the registry lacks.

        :param own: subjects that an earlier attempt of this restore has begun to fill.
        :raises ConfigError: a subject has other schemas, or an id is that of another schema.
        """
        versions: dict[str, list[SubjectVersion]] = {}
        missing = []
        for schema in schemas:
            place = schema.place
            if place.subject not in versions:
                versions[place.subject] = self.writer.registry.versions(place.subject)
            of_subject = versions[place.subject]
            equal = [v for v in of_subject if v.schema.fingerprint == place.fingerprint]
            if any(schema.is_import or v.id == place.id for v in equal):
                continue
            if of_subject and place.subject not in own:
                if schema.is_import:
                    # Whoever imports it registers it, under an id that the registry gives.
                    continue
                raise self._not_empty(place)
            if occupied := self.writer.registry.schema(place.id):
                self._require(place, occupied)
            missing.append(schema)
        return missing

    def _mode(self, subject: str) -> SubjectMode:
        return SubjectMode(subject=subject, mode=self._if_it_has_modes(lambda: self.writer.mode(subject)))

    def _import_into(self, subject: str, force: bool) -> None:
        """Set a subject to IMPORT, and make sure that it is: a registry without modes may ignore it."""
        self._if_it_has_modes(lambda: self.writer.set_mode(subject, "IMPORT", force))
        if self._if_it_has_modes(lambda: self.writer.mode(subject)) != "IMPORT":
            raise self._no_modes()

    def _if_it_has_modes(self, ask: Callable[[], Answer]) -> Answer:
        from kafka_archiver.records.decode.schema_registry_requests import RefusedError
        from kafka_archiver.records.decode.schema_registry_writer import has_no_modes

        try:
            return ask()
        except RefusedError as error:
            if has_no_modes(error):
                raise self._no_modes() from error
            raise

    def _no_modes(self) -> ConfigError:
        return ConfigError(
            f"the schema registry at {self.writer.url} has no mode IMPORT, without which it gives ids of its own: "
            "restore with --schema-ids new, which writes the new ids into the records"
        )

    def _not_empty(self, schema: RegisteredSchema) -> ConfigError:
        return ConfigError(
            f"subject {schema.subject} of the schema registry at {self.writer.url} has schemas, but not version "
            f"{schema.version} with id {schema.id}, and a registry takes ids only for an empty subject: delete the "
            "subject there, for good, or restore with --schema-ids new, which writes the new ids into the records"
        )

    def _require(self, schema: RegisteredSchema, actual: Schema | None) -> None:
        if actual is None or actual.fingerprint != schema.fingerprint:
            state = "is another schema" if actual else "does not exist"
            raise ConfigError(
                f"id {schema.id} of the schema registry at {self.writer.url} {state}, and in the archive it is version "
                f"{schema.version} of subject {schema.subject}: restore with --schema-ids new, which writes the new "
                "ids into the records, or use an empty registry"
            )

    def _keep(self, document: RestoreSchemas) -> RestoreSchemas:
        if not self.ledger.replace_of_restore(document, self.stored):
            raise TransientError("another process registers the schemas of this restore at the same moment; try again")
        self.stored = self.ledger.restore_schemas(self.restore)
        return document


def _is_same(before: RestoreSchemas, document: RestoreSchemas) -> bool:
    """Return True if a document says of the same schemas, by the same rule, that they are registered."""
    places = tuple(schema.model_copy(update={"new_id": None}) for schema in before.schemas)
    return (before.registry, before.ids, before.columns, places) == (
        document.registry,
        document.ids,
        document.columns,
        document.schemas,
    )
