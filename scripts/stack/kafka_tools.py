"""Kafka's command-line tools as programs on the path: messages of the archiver and the docs' tour name them."""

from __future__ import annotations

import shlex
from pathlib import Path

TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}
# Half of the CPU: a tool ends before Java's second compiler pays.
_SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def write_kafka_tools(directory: Path, java: Path, jars: Path) -> None:
    """Write a script for each tool.

    :param java: the program.
    :param jars: the directory of the broker's jars.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, main_class in TOOLS.items():
        script = directory / name
        command = shlex.join([str(java), *_SHORT_LIVED, "-cp", f"{jars}/*", main_class])
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        script.chmod(0o755)
