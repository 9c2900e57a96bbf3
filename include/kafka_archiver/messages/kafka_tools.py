"""The exact commands of Kafka's own tools that messages name. Pure."""

import shlex
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

# A shell ignores the comment, so the command can be copied with it.
_SECURITY = "  # client.properties: a file with the connection's security settings, as Kafka's Java tools name them"


class KafkaTools(NamedTuple):
    """The tools for one cluster.

    :param brokers: `bootstrap.servers` of the connection.
    :param secured: the brokers ask for TLS or a login.
    :param user: the name in the connection's credentials; empty if it has none.
    """

    brokers: str
    secured: bool = False
    user: str = ""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """The tools for the cluster of a connection."""
        protocol = properties.get("security.protocol", "PLAINTEXT")
        user = properties.get("sasl.username", "")
        return cls(properties["bootstrap.servers"], protocol.upper() != "PLAINTEXT", user)

    def reset_group(self, group: str, topic: str, partition: int, offset: int) -> str:
        """Put a group to an offset of a partition."""
        return self._groups(
            "--group", group, "--topic", f"{topic}:{partition}", "--reset-offsets", "--to-offset", offset, "--execute"
        )

    def delete_group(self, group: str) -> str:
        """Delete a group with its offsets."""
        return self._groups("--delete", "--group", group)

    def list_members(self, group: str) -> str:
        """List the consumers that are in a group."""
        return self._groups("--describe", "--group", group, "--members")

    def list_topics(self) -> str:
        """List the topics that these credentials may see."""
        return self._spelt("kafka-topics", "--list")

    def alter_topic(self, topic: str, setting: str) -> str:
        """Change a setting of a topic.

        :param setting: its name and value, as `retention.ms=1`.
        """
        return self._spelt(
            "kafka-configs", "--entity-type", "topics", "--entity-name", topic, "--alter", "--add-config", setting
        )

    def set_topic(self, topic: str, settings: Mapping[str, str], removed: Iterable[str] = ()) -> str:
        """Change settings of a topic, and remove some of its own."""
        added = ",".join(f"{name}=[{value}]" if "," in value else f"{name}={value}" for name, value in settings.items())
        words = (
            *(("--add-config", added) if added else ()),
            *(("--delete-config", gone) if (gone := ",".join(removed)) else ()),
        )
        return self._spelt("kafka-configs", "--entity-type", "topics", "--entity-name", topic, "--alter", *words)

    def create_topic(self, topic: str, partitions: int, replication: int, settings: Mapping[str, str]) -> str:
        configs = (word for name, value in settings.items() for word in ("--config", f"{name}={value}"))
        return self._spelt(
            "kafka-topics", "--create", "--topic", topic, "--partitions", partitions,
            "--replication-factor", replication, *configs,
        )  # fmt: skip

    def add_partitions(self, topic: str, partitions: int) -> str:
        """Raise the number of a topic's partitions."""
        return self._spelt("kafka-topics", "--alter", "--topic", topic, "--partitions", partitions)

    def delete_topic(self, topic: str) -> str:
        """Delete a topic with its records."""
        return self._spelt("kafka-topics", "--delete", "--topic", topic)

    def allow(self, operations: Iterable[str], resource: str, name: str, prefixed: bool = False) -> str:
        """Grant operations to a user, whose name stands for itself in the command.

        :param resource: topic, group, transactional-id; cluster has no name.
        """
        words = [word for operation in operations for word in ("--operation", operation)]
        words += [
            f"--{resource}",
            *([name] if name else []),
            *(["--resource-pattern-type", "prefixed"] if prefixed else []),
        ]
        return self._spelt("kafka-acls", "--add", "--allow-principal", f"User:{self.user or 'NAME'}", *words)

    def describe_producers(self, topic: str, partition: int) -> str:
        """List the producers of a partition, with the transactions that they have open."""
        return self._spelt("kafka-transactions", "describe-producers", "--topic", topic, "--partition", partition)

    def abort_transaction(self, topic: str, partition: int, start: int) -> str:
        """Abort the transaction that begins at an offset of a partition."""
        place = "--topic", topic, "--partition", partition, "--start-offset", start
        return self._spelt("kafka-transactions", "abort", *place)

    def _groups(self, *words: str | int) -> str:
        return self._spelt("kafka-consumer-groups", *words)

    def _spelt(self, tool: str, *words: str | int) -> str:
        security = ("--command-config", "client.properties") if self.secured else ()
        command = shlex.join(map(str, (tool, "--bootstrap-server", self.brokers, *security, *words)))
        return command + _SECURITY * self.secured
