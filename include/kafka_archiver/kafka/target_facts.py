"""Asks a cluster what a restore has to know before it writes the first record."""

import logging
from collections.abc import Callable, Collection
from typing import TypeVar

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.transactional import TransactionalWriter
from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.model.target_facts import TargetFacts, TopicFacts
from kafka_archiver.values.ranges import Range, TopicPartition

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


def gather_facts(cluster: Cluster, topics: Collection[str], group: str, transactional_id: str) -> TargetFacts:
    """Return the facts about the target. Begins a transaction, and writes nothing.

    :param transactional_id: how the restore's transactional ids begin.
    :raises TransientError: the brokers do not answer.
    :raises PermanentError: they refuse the credentials, or do not let them describe a topic.
    :raises ConfigError: the connection leaves too little time for a transaction.
    """
    existing = [name for name, identity in cluster.topic_ids(sorted(topics)).items() if identity is not None]
    return TargetFacts(
        cluster_id=cluster.cluster_id(),
        brokers=cluster.size(),
        tools=cluster.tools,
        topics={topic: _topic_facts(cluster, topic) for topic in existing},
        group=group,
        transactional_id=transactional_id,
        group_operations=_if_allowed(lambda: cluster.group_operations(group), frozenset[str]()),
        refused_transaction=_refused_transaction(cluster, transactional_id),
    )


def _topic_facts(cluster: Cluster, name: str) -> TopicFacts:
    [topic] = cluster.topics([name])
    starts = cluster.log_starts(topic.names)
    ends = cluster.high_watermarks(topic.names)
    settings = _if_allowed(lambda: cluster.topic_settings([name])[name], None)
    return TopicFacts(
        topic=name,
        topic_id=topic.id,
        replication=cluster.replication([name])[name],
        logs=tuple(Range(starts[place], ends[place].offset) for place in topic.names),
        settings=settings,
        operations=cluster.operations([name])[name] or None,
    )


def _refused_transaction(cluster: Cluster, transactional_id: str) -> str:
    """Return why the brokers refuse a transactional producer; empty if they do not."""
    try:
        TransactionalWriter(cluster.properties, f"{transactional_id}preflight", TopicPartition("any", 0)).close()
    except ConfigError:
        raise
    except PermanentError as error:
        return str(error)
    return ""


def _if_allowed(ask: Callable[[], Answer], otherwise: Answer) -> Answer:
    """Return the answer, or another one if the credentials may not ask."""
    try:
        return ask()
    except PermanentError as error:
        log.info("%s", error)
        return otherwise
