"""Kafka's own tools, as messages name them, on the path of the local stack."""

import re
import subprocess
from pathlib import Path

import pytest

from kafka_archiver.messages import kafka_tools as messages
from kafka_archiver.messages.kafka_tools import KafkaTools
from scripts.stack.java import find_java
from scripts.stack.kafka import Kafka
from scripts.stack.kafka_tools import TOOLS, write_kafka_tools
from scripts.stack.paths import BROKER_JARS, ROOT
from tests.support.topics import new_topic

pytestmark = pytest.mark.contract


def test_the_commands_of_messages_run_as_they_are(kafka: Kafka, tmp_path: Path) -> None:
    named = re.findall(r'"(kafka-[a-z-]+)"', Path(messages.__file__).read_text())
    assert set(named) <= set(TOOLS)
    write_kafka_tools(tmp_path / "the tools", find_java().executable, BROKER_JARS)
    topic, tools = new_topic(kafka.bootstrap_servers), KafkaTools(kafka.bootstrap_servers)
    commands = {
        command: subprocess.run(
            command, shell=True, env={"PATH": f"{tmp_path / 'the tools'}:/usr/bin:/bin"}, capture_output=True, text=True
        )
        for command in (
            tools.list_topics(),
            tools.alter_topic(topic, "retention.ms=3600000"),
            tools.reset_group("g", topic, 0, 0),
            tools.list_members("g"),
            tools.describe_producers(topic, 0),
        )
    }
    assert {command: done.stderr for command, done in commands.items() if done.returncode} == {}
    assert topic in commands[tools.list_topics()].stdout


def test_the_tour_s_console_writes_a_record_and_reads_it_back(kafka: Kafka, tmp_path: Path) -> None:
    write_kafka_tools(tmp_path, find_java().executable, BROKER_JARS)
    topic = new_topic(kafka.bootstrap_servers)
    tour = (ROOT / "docs" / "tour.md").read_text()
    commands = [line.replace("orders", topic) for line in tour.splitlines() if "kafka-console-" in line]
    read = ""
    for command in commands:
        read = subprocess.run(
            command.replace("--max-messages 3", "--max-messages 1"),
            shell=True, check=True, capture_output=True, text=True,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers},
        ).stdout  # fmt: skip
    assert [len(commands), read] == [2, '{"id": 1, "note": "from the console"}\n']
