"""A real Kafka broker, KRaft, in one JVM."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from scripts.stack.errors import StackError
from scripts.stack.java import find_java
from scripts.stack.paths import BROKER_JARS
from scripts.stack.ports import HOST
from scripts.stack.process import NO_MORE, Service

# Any 16 bytes in Kafka's base64; fixed, because a broker refuses a directory of another cluster.
CLUSTER_ID = "a2Fma2EtYXJjaGl2ZXItMQ"

LOGGING = """\
status = warn
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""


@dataclass(frozen=True)
class KafkaPorts:
    BASE: ClassVar[int] = 18_092
    clients: int
    controller: int


def server_properties(ports: KafkaPorts, logs: Path, more: Mapping[str, str] = NO_MORE) -> str:
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{HOST}:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{ports.clients},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.clients}",
        "log.dirs": str(logs).replace("\\", "\\\\"),
        # One broker: one replica for internal topics, and few partitions, which are fast to create and load.
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        # A misspelt topic must be an error, not a new topic.
        "auto.create.topics.enable": "false",
        # No retention by age: records may have timestamps from 1970 or 9999.
        "log.retention.hours": -1,
        "log.message.timestamp.after.max.ms": 9223372036854775807,
        # Compaction, deletion and aborts of hung transactions take seconds; topics configure them.
        "log.initial.task.delay.ms": 500,
        "log.cleaner.backoff.ms": 500,
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
        "log.retention.check.interval.ms": 1000,
        "log.segment.delete.delay.ms": 1000,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        **more,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


class Kafka(Service):
    title = "Kafka"

    def __init__(
        self, directory: Path, ports: KafkaPorts, more: Mapping[str, str] = NO_MORE, java: Sequence[str] = ()
    ) -> None:
        """:param more: further settings of the broker; they override ours. :param java: further options of its JVM."""
        self.ports = ports
        self._more = more
        self._options = java
        self.bootstrap_servers = f"{HOST}:{ports.clients}"
        super().__init__(directory, self.bootstrap_servers)

    def launch(self) -> None:
        if not any(BROKER_JARS.glob("kafka_*.jar")):
            raise StackError(f"no broker jars in {BROKER_JARS}: run `make install`")
        data = self.directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        properties = self.directory / "server.properties"
        properties.write_text(server_properties(self.ports, data, self._more))
        (self.directory / "log4j2.properties").write_text(LOGGING)
        if not (data / "meta.properties").exists():
            self._format(properties)
        self._run(self._java("-Xms128m", "-Xmx512m", *self._options, "kafka.Kafka", str(properties)), os.environ)

    def wait(self) -> None:
        # log_level 0: librdkafka would print refused connections on standard error.
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

        def ask() -> None:
            # The first request needs a broker with metadata, the second a controller that can write.
            client.list_topics(timeout=1)
            probe = NewTopic("stack-ready", num_partitions=1, replication_factor=1)
            client.create_topics([probe], validate_only=True, request_timeout=5)["stack-ready"].result()

        self._wait_for(ask, KafkaException, seconds=90)

    def _format(self, properties: Path) -> None:
        tool = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties))
        command = self._java("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *tool)
        formatted = subprocess.run(command, capture_output=True, text=True, check=False)
        if formatted.returncode != 0:
            raise StackError(f"could not format Kafka's storage: {formatted.stderr or formatted.stdout}")

    def _java(self, *arguments: str) -> list[str]:
        return [
            str(find_java().executable),
            "-cp",
            f"{BROKER_JARS}/*",
            # Keeps temporary files inside the checkout.
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={self.directory}",
            f"-Dlog4j2.configurationFile={(self.directory / 'log4j2.properties').as_uri()}",
            *arguments,
        ]
