"""A broker that is killed and started again must not end a process that asks about groups, as Airflow's API server."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.ports import free_ports
from tests.support import quick
from tests.support.topics import new_topic
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

# Prints "ok" or "error" for each round of requests, from four threads, as the page asks.
ASKING = """
import sys, threading
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.values.ranges import TopicPartition

def ask():
    while True:
        cluster = Cluster({"bootstrap.servers": sys.argv[1]}, timeout=3)
        try:
            for _ in range(5):
                cluster.members("a-group")
                cluster.move_group("a-group", {TopicPartition(sys.argv[2], 0): 0})
            print("ok", flush=True)
        except TransientError:
            print("error", flush=True)

for _ in range(4):
    threading.Thread(target=ask, daemon=True).start()
sys.stdin.read()
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Kafka]:
    broker = Kafka(tmp_path / "kafka", free_ports(KafkaPorts), java=quick.JAVA)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop(grace=0)


def test_requests_about_a_group_outlive_their_broker(broker: Kafka, tmp_path: Path) -> None:
    topic, log = new_topic(broker.bootstrap_servers), tmp_path / "asked"

    def answers(word: str) -> int:
        return log.read_text().split().count(word)

    with log.open("w") as output:
        command = [sys.executable, "-c", ASKING, broker.bootstrap_servers, topic]
        asking = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT)
    try:
        for _ in range(2):
            answered, failed = answers("ok"), answers("error")
            until(lambda before=answered: asking.poll() is not None or answers("ok") > before + 10, seconds=60)
            broker.stop(grace=0)
            until(lambda before=failed: asking.poll() is not None or answers("error") > before + 3, seconds=60)
            broker.start()
        answered = answers("ok")
        until(lambda: asking.poll() is not None or answers("ok") > answered, seconds=60)
        assert asking.poll() is None, log.read_text()
    finally:
        asking.kill()
        asking.wait()
