"""The snapshots that plans name, by fingerprint. They are written before the plan, create-only."""

from typing import TypeVar

from kafka_archiver.ledger.documents import Documents
from kafka_archiver.model.keys import snapshot_document
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

    def keep_topics(self, snapshot: TopicsSnapshot) -> None:
        """Store a snapshot of the topics, unless it is stored already."""
        self.store.create(snapshot_document(self.archive, snapshot.fingerprint, "topics"), self._bytes(snapshot))

    def keep_groups(self, snapshot: GroupsSnapshot) -> None:
        """Store a snapshot of the groups, unless it is stored already."""
        self.store.create(snapshot_document(self.archive, snapshot.fingerprint, "groups"), self._bytes(snapshot))

    def _snapshot(self, kind: type[AnySnapshot], name: str, fingerprint: str) -> AnySnapshot | None:
        key = snapshot_document(self.archive, fingerprint, name)
        snapshot = self._read(kind, key)
        if snapshot and snapshot.digest[:32] != fingerprint:
            raise self._foreign(key, "fingerprint", snapshot.digest[:32], fingerprint)
        return snapshot
