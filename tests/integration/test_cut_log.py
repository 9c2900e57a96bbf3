"""A broker that loses the end of a log: it goes on there, and the offsets that were archived mean other records."""

import signal
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.errors import PolicyError
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.first import LogEnd
from kafka_archiver.ledger import Ledger
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.steps.archive.logs import read_logs
from kafka_archiver.steps.context import Context
from kafka_archiver.store.memory import MemoryStore
from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.ports import free_ports
from scripts.stack.process import marked
from tests.support import runs
from tests.support.topics import DAY, Record, new_topic, produce

pytestmark = pytest.mark.integration


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Kafka]:
    """One of our own: it is killed."""
    kafka = Kafka(tmp_path / "kafka", free_ports(KafkaPorts))
    kafka.start()
    try:
        yield kafka
    finally:
        kafka.stop(0)


def cut(broker: Kafka, topic: str, batches: int) -> None:
    """Kill the broker, take batches from the end of a log as a disk does that had them only in memory, start again."""
    for process in marked(broker.directory):
        process.send_signal(signal.SIGKILL)
    broker.stop(0)
    folder = broker.directory / "data" / f"{topic}-0"
    [log] = folder.glob("*.log")
    data, starts = log.read_bytes(), [0]
    while starts[-1] < len(data):
        (length,) = struct.unpack_from(">i", data, starts[-1] + 8)
        starts.append(starts[-1] + 12 + length)
    log.write_bytes(data[: starts[-1 - batches]])
    for left in [*folder.glob("*index"), *folder.glob("*.snapshot")]:
        left.unlink()
    broker.start()


def one_by_one(broker: Kafka, topic: str, values: str) -> None:
    for value in values:
        produce(broker.bootstrap_servers, topic, [Record(0, DAY, value.encode())])


def test_a_log_that_was_cut_and_has_grown_again_is_noticed(broker: Kafka) -> None:
    topic = new_topic(broker.bootstrap_servers)
    name = TopicPartition(topic, 0)
    archive = Archive.model_validate(
        {"archive": "orders", "source": {"topics": [topic], "settle": 0}, "store": {"url": "memory://x"}}
    )
    store = MemoryStore(uuid.uuid4().hex)

    def context(of: Archive = archive) -> Context:
        cluster = Cluster({"bootstrap.servers": broker.bootstrap_servers})
        return Context(of, cluster, store, Ledger(store, "orders"))

    one_by_one(broker, topic, "abcde")
    runs.run(context(), 1)
    cut(broker, topic, 2)
    # No leader is new to who has archived nothing that is gone.
    assert context().cluster.truncated({name: LogEnd(3, 0)}) == {name: None}
    one_by_one(broker, topic, "vwxyz")
    assert context().cluster.truncated({name: LogEnd(5, 0)}) == {name: 3}
    with pytest.raises(PolicyError, match=rf"the log of {topic}\[0\] is not the one .* up to 5 under leader epoch 0"):
        runs.run(context(), 2)
    runs.run(context(archive.choosing({"recreated_topic": "new_generation"})), 2)
    planned = context().ledger.plan(runs.hour(2).id)
    assert planned
    assert [(p.generation, p.ranges) for p in planned.partitions] == [(1, ((0, 8),))]
    # The same between a plan and its reading.
    one_by_one(broker, topic, "12")
    runs.run(context(), 3, until="planned")
    cut(broker, topic, 1)
    one_by_one(broker, topic, "345")
    late = context().ledger.plan(runs.hour(3).id)
    assert late
    logs = read_logs(context().cluster, late, context().ledger.progress(), replayed=False)
    assert logs.there == {name: Range(0, 9)}
    assert "is the same one only up to 9 now: it was truncated" in logs.found[name]


def test_a_log_of_which_nothing_is_left_is_cut_at_its_beginning(broker: Kafka) -> None:
    topic = new_topic(broker.bootstrap_servers)
    name = TopicPartition(topic, 0)
    one_by_one(broker, topic, "abc")
    cut(broker, topic, 3)
    cluster = Cluster({"bootstrap.servers": broker.bootstrap_servers})
    assert cluster.truncated({name: LogEnd(3, 0)}) == {name: 0}
    one_by_one(broker, topic, "wxyz")
    assert cluster.truncated({name: LogEnd(3, 0)}) == {name: 0}
