"""The schemas and the snapshots of topics and groups that plans name, by fingerprint; written before the plan."""

from collections.abc import Iterable
from typing import NoReturn, TypeVar

from kafka_archiver.ledger.documents import Documents
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.messages.errors import DocumentError, IntegrityError
from kafka_archiver.model.object_keys import schema_document, snapshot_document
from kafka_archiver.model.schemas import Schema, SchemaDocument
from kafka_archiver.model.snapshots import GroupsSnapshot, TopicsSnapshot

AnySnapshot = TypeVar("AnySnapshot", TopicsSnapshot, GroupsSnapshot)


class SnapshotDocuments(Documents):
    """The snapshots of an archive's topics, and of the groups that read them."""

    __slots__ = ()

    def topics_snapshot(self, fingerprint: str) -> TopicsSnapshot | None:
        """Return the snapshot of the topics that a plan names; None if it is gone."""
        return self._snapshot(TopicsSnapshot, "topics", fingerprint)

    def groups_snapshot(self, fingerprint: str) -> GroupsSnapshot | None:
        """Return the snapshot of the groups that a plan names; None if it is gone."""
        return self._snapshot(GroupsSnapshot, "groups", fingerprint)

    def keep_snapshot(self, snapshot: AnySnapshot) -> None:
        """Store a snapshot, unless it is stored already."""
        name = "topics" if isinstance(snapshot, TopicsSnapshot) else "groups"
        self.store.create(snapshot_document(self.archive, snapshot.fingerprint, name), self._bytes(snapshot))

    def _snapshot(self, kind: type[AnySnapshot], name: str, fingerprint: str) -> AnySnapshot | None:
        key = snapshot_document(self.archive, fingerprint, name)
        snapshot = self._read(kind, key)
        if snapshot and snapshot.digest[:32] != fingerprint:
            raise self._foreign(key, "fingerprint", snapshot.digest[:32], fingerprint)
        return snapshot


class SchemaDocuments(Documents):
    """The schemas of an archive."""

    __slots__ = ()

    def schema(self, fingerprint: str) -> Schema | None:
        """A schema that a plan names."""
        key = schema_document(self.archive, fingerprint)
        document = self._read(SchemaDocument, key)
        if document and (has := document.content.fingerprint) != fingerprint:
            raise self._foreign(key, "fingerprint", has, fingerprint)
        return document.content if document else None

    def schemas(self, fingerprints: Iterable[str]) -> dict[str, Schema]:
        """The schemas that a plan names, by fingerprint.

        :raises IntegrityError: one is gone.
        """
        return {fingerprint: self.schema(fingerprint) or self._lost(fingerprint) for fingerprint in fingerprints}

    def keep_schema(self, schema: Schema) -> None:
        """Store a schema, unless it is stored already. A damaged document is replaced by what it was."""
        key, data = (
            schema_document(self.archive, schema.fingerprint),
            self._bytes(SchemaDocument.of(self.archive, schema)),
        )
        try:
            if self.schema(schema.fingerprint) is None:
                self.store.create(key, data)
        except DocumentError:
            if damaged := self.store.version(key):
                self.store.replace(key, data, damaged.etag)

    def _lost(self, fingerprint: str) -> NoReturn:
        raise IntegrityError(
            f"{self._name(schema_document(self.archive, fingerprint))} is gone: the run needs this schema.",
            *advise(
                "Restore it with ",
                repair(self.archive),
                ", if the registry still has it, or from a version or copy of the store",
            ),
        )
