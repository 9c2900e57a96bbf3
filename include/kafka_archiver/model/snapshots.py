"""Snapshots of a cluster at planning: the topics' settings, and the committed offsets of consumer groups. Pure.

A plan names them by their fingerprints. Equal snapshots are one document, so an unchanged cluster costs nothing.
"""

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from kafka_archiver.model.settings import Choices
from kafka_archiver.values.documents import ArchiveDocument, Count, Value
from kafka_archiver.values.ranges import TopicPartition


class TopicSnapshot(Value):
    """A topic as it was. `settings`: those that it had of its own, and not from the brokers."""

    topic: str
    topic_id: str
    partitions: Annotated[int, Field(ge=1)]
    replication: Annotated[int, Field(ge=1)]
    settings: Choices = Field(default={})


class GroupSnapshot(Value):
    """A consumer group's committed offsets in the archive's topics: topic, partition and offset, sorted."""

    group: str
    offsets: tuple[tuple[str, Count, Count], ...]

    @property
    def by_partition(self) -> dict[TopicPartition, int]:
        return {TopicPartition(topic, partition): offset for topic, partition, offset in self.offsets}


class Snapshot(ArchiveDocument):
    """A document that plans name by its fingerprint."""

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits; the same for equal content."""
        return hashlib.sha256(self.to_json()).hexdigest()[:32]


class TopicsSnapshot(Snapshot):
    """The topics of an archive, sorted."""

    document: Literal["kafka-archiver/topics"] = "kafka-archiver/topics"
    cluster_id: str
    topics: tuple[TopicSnapshot, ...]


class GroupsSnapshot(Snapshot):
    """The consumer groups that `source.snapshot_groups` names, sorted, without those that have no offset."""

    document: Literal["kafka-archiver/groups"] = "kafka-archiver/groups"
    cluster_id: str
    groups: tuple[GroupSnapshot, ...]
