"""The facts about a cluster before a restore writes to it, and the needs of the restore. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.model.snapshots import TopicSnapshot
from kafka_archiver.values.ranges import Range


class TopicFacts(NamedTuple):
    """A topic of the target.

    :param logs: the offsets of each partition.
    :param settings: every setting as the brokers apply it; None: the credentials may not describe them.
    :param operations: that the credentials may do with it; None: the brokers do not tell.
    """

    topic: str
    topic_id: str
    replication: int
    logs: tuple[Range, ...]
    settings: Mapping[str, str] | None = None
    operations: frozenset[str] | None = None


class TargetFacts(NamedTuple):
    """The target.

    :param topics: those that exist, of those that the restore writes.
    :param group, transactional_id: the names that the restore uses; of the second, how it begins.
    :param group_operations: as of `TopicFacts`.
    :param refused_transaction: why a trial transaction did not begin; empty: it did.
    """

    cluster_id: str
    brokers: int
    tools: KafkaTools
    topics: Mapping[str, TopicFacts]
    group: str
    transactional_id: str
    group_operations: frozenset[str] | None = None
    refused_transaction: str = ""


class TopicDemand(NamedTuple):
    """The needs of a restore in one topic of the target.

    :param partitions: as many at least.
    :param written: the partitions that get records.
    :param oldest, newest: bounds of the records' timestamps in milliseconds, without those below 0; None: unknown.
    :param largest: the largest record that the source took, in bytes; None: unknown.
    :param snapshot: the source's topic, as the archive's plans have seen it.
    """

    topic: str
    partitions: int
    written: frozenset[int]
    oldest: int | None = None
    newest: int | None = None
    largest: int | None = None
    snapshot: TopicSnapshot | None = None


class TopicCreation(NamedTuple):
    """A topic to create.

    :param settings: for the time of the restore. :param later: what to change when it is over: the source's settings,
        `None` for those that it did not have.
    """

    topic: str
    partitions: int
    replication: int
    settings: Mapping[str, str]
    later: Mapping[str, str | None]
