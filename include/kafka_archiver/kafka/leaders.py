"""The topics, and the leader of each partition, as a majority of the brokers names them.

A broker that is cut off from the controllers goes on to answer as the leader of its partitions, with an old watermark,
and knows no newer topics and partitions. The other brokers do. So each broker is asked on a connection of its own.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from kafka_archiver.kafka.admin_requests import Asking
from kafka_archiver.messages.errors import ArchiverError, TransientError
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.values.threads import each

# A broker that does not answer by then counts as one that names no leader.
_SECONDS = 10.0
View = Mapping[TopicPartition, int]
# The topics as one broker describes them; None: it does not know the topic.
Described = Mapping[str, Any]


class BrokerNode(NamedTuple):
    """A broker and its address."""

    id: int
    address: str


class Leader(NamedTuple):
    """The leader that a majority names; else `unsure` says why there is none. `named_by_rest`: by a minority."""

    node: BrokerNode | None
    unsure: str = ""
    named_by_rest: tuple[BrokerNode, ...] = ()


class LeaderAnswer(NamedTuple):
    """The leader's answer about a partition, as `list_offsets` has it; `unsure`: why another one may lead."""

    offset_info: Any
    unsure: str = ""


def leaders(
    properties: Mapping[str, str], nodes: Sequence[BrokerNode], names: Collection[TopicPartition]
) -> dict[TopicPartition, Leader]:
    """Return the leader of each partition by the brokers' present answers.

    :param properties: librdkafka's client properties.
    :param nodes: all brokers of the cluster.
    """
    topics = sorted({name.topic for name in names})
    views = dict(zip(nodes, each(lambda node: _view(properties, node, topics), nodes), strict=True))
    return {name: _majority(name, views) for name in names}


def at_leaders(
    properties: Mapping[str, str], leading: Mapping[TopicPartition, Leader], spec: OffsetSpec, timeout: float
) -> dict[TopicPartition, LeaderAnswer]:
    """Return what each leader says of its own partitions; nothing for a partition without a leader that answers."""
    by_node: dict[BrokerNode, list[TopicPartition]] = {}
    for name, leader in leading.items():
        for node in filter(None, (leader.node, *leader.named_by_rest)):
            by_node.setdefault(node, []).append(name)
    by_broker = {node: _asked(properties, node, names, spec, timeout) for node, names in by_node.items()}
    answers: dict[TopicPartition, LeaderAnswer] = {}
    for name, leader in leading.items():
        if leader.node is not None and (mine := by_broker[leader.node].get(name)) is not None:
            newer = [
                node
                for node in leader.named_by_rest
                if (answer := by_broker[node].get(name)) is not None
                and (answer.leader_epoch or 0) > (mine.leader_epoch or 0)
            ]
            doubt = f"broker {newer[0].id} leads {name} in a newer epoch than broker {leader.node.id}" if newer else ""
            answers[name] = LeaderAnswer(mine, doubt)
    return answers


def ask_leaders(
    properties: Mapping[str, str],
    leading: Mapping[TopicPartition, Leader],
    ask: Callable[[Mapping[str, str], Collection[TopicPartition]], Mapping[TopicPartition, Any]],
) -> dict[TopicPartition, Any]:
    """Return what the leaders say of their own partitions; of those without a leader, what any broker says.

    :param ask: asks about some partitions, with the properties of a client that is to be made for this.
    """
    by_node: dict[BrokerNode | None, list[TopicPartition]] = {}
    for name, leader in leading.items():
        by_node.setdefault(leader.node, []).append(name)

    def answers_of(node: BrokerNode | None) -> Mapping[TopicPartition, Any]:
        return ask({**properties, "bootstrap.servers": node.address} if node else properties, by_node[node])

    return {name: answer for answers in each(answers_of, by_node) for name, answer in answers.items()}


def nodes_of(description: Any) -> list[BrokerNode]:
    """Return the brokers that a description of the cluster names."""
    return [BrokerNode(node.id, f"{node.host}:{node.port}") for node in description.nodes]


def nodes_by_each(properties: Mapping[str, str], addresses: Sequence[str]) -> list[BrokerNode]:
    """Return the brokers that any of these names, each asked alone; those that do not answer name none."""

    def nodes_by(address: str) -> list[BrokerNode]:
        try:
            return nodes_of(_only(properties, address).describe_cluster(_SECONDS))
        except ArchiverError:
            return []

    return sorted({node for nodes in each(nodes_by, addresses) for node in nodes})


def _asked(
    properties: Mapping[str, str], node: BrokerNode, names: Sequence[TopicPartition], spec: OffsetSpec, timeout: float
) -> dict[TopicPartition, Any]:
    places = {confluent_kafka.TopicPartition(n.topic, n.partition): spec for n in names}
    try:
        answers = _only(properties, node.address).ask(
            lambda admin: admin.list_offsets(places, request_timeout=timeout),
            lambda place: f"read the watermarks of {place.topic}[{place.partition}]",
            timeout,
        )
    except TransientError:
        return {}
    return {name: answer for name, answer in zip(names, answers, strict=True) if answer.offset >= -1}


def _only(properties: Mapping[str, str], address: str) -> Asking:
    """Return a new client that knows this broker only until its first answer."""
    return Asking({**properties, "bootstrap.servers": address})


def described(
    properties: Mapping[str, str], nodes: Sequence[BrokerNode], topics: Collection[str]
) -> dict[BrokerNode, Described | None]:
    """Return the topics as each broker describes them; None: it does not answer.

    :param properties: librdkafka's client properties.
    """
    names = sorted(topics)
    return dict(zip(nodes, each(lambda node: _describe(properties, node, names), nodes), strict=True))


def names_of(properties: Mapping[str, str], nodes: Sequence[BrokerNode]) -> set[str]:
    """Return the names of all topics that any broker knows."""
    return {name for names in each(lambda node: _names(properties, node), nodes) for name in names}


def majority_of(topic: str, views: Mapping[BrokerNode, Described | None]) -> Any:
    """Return a topic as the brokers describe it; None: most of them do not know it.

    Of those that know it by the same id, the one with most partitions counts: partitions are never removed.

    :raises TransientError: the brokers that answer are no majority, and none of them knows it.
    """
    answers = [view[topic] for view in views.values() if view is not None]
    known = [answer for answer in answers if answer is not None]
    unknown = len(answers) - len(known)
    if 2 * unknown > len(views):
        return None
    if not known:
        raise TransientError(
            f"no broker that answers knows topic {topic}, but {len(views) - unknown} of {len(views)} do not answer; "
            "the next attempt asks again"
        )
    identity, _ = Counter(str(answer.topic_id) for answer in known).most_common(1)[0]
    return max((a for a in known if str(a.topic_id) == identity), key=lambda answer: len(answer.partitions))


class _OrNone:
    """A future that gives None if the broker does not know the topic."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def result(self, timeout: float) -> Any:
        try:
            return self._inner.result(timeout=timeout)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise


def _describe(properties: Mapping[str, str], node: BrokerNode, topics: Sequence[str]) -> Described | None:
    def start(admin: AdminClient) -> Any:
        futures = admin.describe_topics(TopicCollection(list(topics)), request_timeout=_SECONDS)
        return {name: _OrNone(future) for name, future in futures.items()}

    try:
        description = _only(properties, node.address).ask(start, lambda topic: f"describe topic {topic}", _SECONDS)
    except TransientError:
        return None
    return dict(zip(topics, description, strict=True))


def _names(properties: Mapping[str, str], node: BrokerNode) -> list[str]:
    try:
        return _only(properties, node.address).topics(_SECONDS)
    except TransientError:
        return []


def _view(properties: Mapping[str, str], node: BrokerNode, topics: Sequence[str]) -> View | None:
    """Return the leaders as one broker names them; None: no answer."""
    try:
        topics_by_name = _describe(properties, node, topics)
    except ArchiverError:
        return None
    if topics_by_name is None:
        return None
    return {
        TopicPartition(topic.name, partition.id): partition.leader.id
        for topic in filter(None, topics_by_name.values())
        for partition in topic.partitions
        if partition.leader is not None
    }


def _majority(name: TopicPartition, views: Mapping[BrokerNode, View | None]) -> Leader:
    counts = Counter(view[name] for view in views.values() if view is not None and name in view)
    leader, count = counts.most_common(1)[0] if counts else (None, 0)
    node = next((node for node in views if node.id == leader), None)
    if node is not None and 2 * count > len(views):
        return Leader(node, named_by_rest=tuple(other for other in views if other.id in counts and other.id != leader))
    if silent := sum(view is None for view in views.values()):
        return Leader(None, f"{silent} of {len(views)} brokers do not answer, and the others are no majority")
    named = ", ".join(f"{count} name broker {leader}" for leader, count in sorted(counts.items())) or "none is named"
    return Leader(None, f"the {len(views)} brokers do not agree on the leader of {name}: {named}")
