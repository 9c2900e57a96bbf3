"""The topics of a cluster and its brokers: asked, described and created."""

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ConfigSource  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from kafka_archiver.kafka.admin_requests import LISTEN_SECONDS, Asking, Name, Start
from kafka_archiver.kafka.failures import code_of, translate
from kafka_archiver.kafka.java_properties import native_properties
from kafka_archiver.kafka.leaders import BrokerNode, described, majority_of, names_of, nodes_by_each, nodes_of
from kafka_archiver.messages.errors import ArchiverError, ConfigError, PermanentError, TransientError
from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.values.ranges import TopicPartition


class Topic(NamedTuple):
    """A topic as it is now; `id` changes when it is deleted and recreated."""

    name: str
    id: str
    partitions: int

    @property
    def names(self) -> list[TopicPartition]:
        """Its partitions."""
        return [TopicPartition(self.name, number) for number in range(self.partitions)]


def _topic(answer: Any) -> Topic:
    return Topic(answer.name, str(answer.topic_id), len(answer.partitions))


def own_entries(entries: Mapping[str, ConfigEntry]) -> dict[str, str]:
    """Return the settings that were made for the topic itself."""
    return {
        name: entry.value
        for name, entry in sorted(entries.items())
        if ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
        and entry.value is not None
        and not entry.is_sensitive
    }


def is_unknown_topic(error: ArchiverError) -> bool:
    """Return True if the broker that answered does not know a topic. Another one may."""
    return code_of(error) == KafkaError.UNKNOWN_TOPIC_OR_PART


class Topics:
    """A Kafka cluster, as its topics are asked for. Every call has a deadline (`timeout`, seconds).

    Errors are Transient- or PermanentError.
    """

    def __init__(self, properties: Mapping[str, str], timeout: float = 30.0) -> None:
        if not properties.get("bootstrap.servers"):
            raise ConfigError("the Kafka connection has no `bootstrap.servers`; give at least one host:port")
        self.properties = native_properties(properties)
        self.brokers = properties["bootstrap.servers"]
        self.tools = KafkaTools.of(properties)
        self.timeout = timeout
        self._asking = Asking(self.properties)

    def _ask(self, start: Start[Name, Any], what: Callable[[Name], str]) -> list[Any]:
        return self._asking.ask(start, what, self.timeout)

    def cluster_id(self) -> str:
        """The cluster's own id."""
        return str(self._asking.describe_cluster(self.timeout).cluster_id)

    def size(self) -> int:
        """The number of brokers."""
        return len(self.nodes())

    def nodes(self) -> list[BrokerNode]:
        """The brokers that are alive, by the one that answers.

        A broker that is cut off may have seen the others end, and not begin again: if it knows only itself, each that
        the connection names is asked.
        """
        nodes = nodes_of(self._asking.describe_cluster(self.timeout))
        addresses = [address.strip() for address in self.brokers.split(",")]
        if len(nodes) > 1 or len(addresses) == 1:
            return nodes
        return nodes_by_each(self.properties, addresses) or nodes

    def _described(self, topics: Collection[str], **options: bool) -> list[Any]:
        return self._ask(
            lambda admin: admin.describe_topics(TopicCollection(list(topics)), request_timeout=self.timeout, **options),
            lambda name: f"describe topic {name}",
        )

    def topic_settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Every setting of each topic, as the brokers apply it.

        :raises PermanentError: the credentials may not describe the settings.
        """
        return {
            name: {entry.name: entry.value for entry in answer.values() if entry.value is not None}
            for name, answer in self._settings(topics).items()
        }

    def _settings(self, topics: Iterable[str]) -> dict[str, dict[str, ConfigEntry]]:
        names = list(topics)
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        answers = self._ask(
            lambda admin: admin.describe_configs(resources, request_timeout=self.timeout),
            lambda resource: f"describe the settings of topic {resource.name}",
        )
        return dict(zip(names, answers, strict=True))

    def own_settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """The settings that each topic has of its own, without those that it has from the brokers, and secrets.

        :raises PermanentError: the credentials may not describe the settings.
        """
        return {name: own_entries(answer) for name, answer in self._settings(topics).items()}

    def replication(self, topics: Collection[str]) -> dict[str, int]:
        """The number of replicas of each topic."""
        return {a.name: max(len(p.replicas) for p in a.partitions) for a in self._described(topics)}

    def operations(self, topics: Collection[str]) -> dict[str, frozenset[str]]:
        """The operations that the credentials may do with each topic, such as WRITE."""
        answers = self._described(topics, include_authorized_operations=True)
        return {answer.name: frozenset(op.name for op in answer.authorized_operations or ()) for answer in answers}

    def create_topic(self, topic: str, partitions: int, replication: int, settings: Mapping[str, str]) -> None:
        """Create a topic, unless it exists, and wait until a majority of the brokers knows it.

        :raises PermanentError: the brokers refuse its settings, or the credentials.
        """
        new_topic = NewTopic(topic, partitions, replication, config=dict(settings))

        def create(admin: AdminClient) -> dict[str, Future[None]]:
            return dict(admin.create_topics([new_topic], request_timeout=self.timeout))

        try:
            self._ask(create, lambda name: f"create topic {name}")
        except ArchiverError as error:
            code = code_of(error)
            if code in (KafkaError.INVALID_CONFIG, KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.POLICY_VIOLATION):
                raise PermanentError(str(error)) from error.__cause__
            if code != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        until = time.monotonic() + self.timeout
        while self.topic_ids([topic])[topic] is None:
            if time.monotonic() > until:
                raise TransientError(f"{self.brokers}: created topic {topic}, and the brokers do not show it yet")
            time.sleep(LISTEN_SECONDS)

    def topics(self, selection: Collection[str] | re.Pattern[str]) -> list[Topic]:
        """The topics of these names, or all topics whose whole name matches the pattern, without Kafka's own; sorted.

        They are those that a majority of the brokers names.

        :raises PermanentError: a named topic does not exist, or no topic matches.
        :raises TransientError: too few brokers answer to know whether it exists.
        """
        nodes = self.nodes()
        names = self._matching(selection, nodes) if isinstance(selection, re.Pattern) else sorted(selection)
        if len(nodes) == 1 or not names:
            return [_topic(topic) for topic in self._described(names)]
        views = described(self.properties, nodes, names)
        by_name = {name: majority_of(name, views) for name in names}
        gone = [name for name, topic in by_name.items() if topic is None]
        if gone and not isinstance(selection, re.Pattern):
            error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
            raise translate(error, f"describe topic {gone[0]}", self.brokers) from KafkaException(error)
        return [_topic(topic) for topic in by_name.values() if topic is not None]

    def topic_ids(self, names: Collection[str]) -> dict[str, str | None]:
        """The ids of topics as they are now; None for a topic that does not exist."""
        if not names:
            return {}
        try:
            return {t.name: t.id for t in self.topics(names)}
        except PermanentError as error:
            if not is_unknown_topic(error):
                raise
            if len(names) == 1:
                return dict.fromkeys(names)
        return {name: identity for each in names for name, identity in self.topic_ids([each]).items()}

    def _matching(self, pattern: re.Pattern[str], nodes: Sequence[BrokerNode]) -> list[str]:
        known = self._asking.topics(self.timeout) if len(nodes) == 1 else names_of(self.properties, nodes)
        names = sorted(n for n in known if pattern.fullmatch(n) and not n.startswith("__"))
        if not names:
            raise PermanentError(
                f"no topic at {self.brokers} matches source.pattern {pattern.pattern!r} ({len(known)} topics seen); "
                "the pattern has to match the whole name"
            )
        return names
