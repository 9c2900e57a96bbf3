"""A broker that loses the end of a log: it goes on there, and the offsets that were archived mean other records."""

import struct
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.first_records import LogEnd
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.archive.logs import read_logs
from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.ports import free_ports
from tests.support import quick, runs
from tests.support.topics import DAY, Record, new_topic, produce

pytestmark = pytest.mark.integration


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Kafka]:
    """One of our own: it is killed."""
    kafka = Kafka(tmp_path / "kafka", free_ports(KafkaPorts), java=quick.JAVA)
    kafka.start()
    try:
        yield kafka
    finally:
        kafka.stop(0)


def cut(broker: Kafka, **batches: int) -> None:
    """Kill the broker, take batches from the end of logs as a disk does that had them only in memory, start again.

    :param batches: how many, by topic.
    """
    broker.stop(grace=0)
    for topic, count in batches.items():
        folder = broker.directory / "data" / f"{topic}-0"
        [log] = folder.glob("*.log")
        data, starts = log.read_bytes(), [0]
        while starts[-1] < len(data):
            (length,) = struct.unpack_from(">i", data, starts[-1] + 8)
            starts.append(starts[-1] + 12 + length)
        log.write_bytes(data[: starts[-1 - count]])
        for left in [*folder.glob("*index"), *folder.glob("*.snapshot")]:
            left.unlink()
    broker.start()


def one_by_one(broker: Kafka, topic: str, values: str) -> None:
    for value in values:
        produce(broker.bootstrap_servers, topic, [Record(0, DAY, value.encode())])


def test_a_log_that_was_cut_and_has_grown_again_is_noticed_also_if_nothing_was_left(broker: Kafka) -> None:
    topic, emptied = (new_topic(broker.bootstrap_servers, name=name) for name in ("cut", "emptied"))
    name, nothing = TopicPartition(topic, 0), TopicPartition(emptied, 0)
    archive = Archive.model_validate(
        {"archive": "orders", "source": {"topics": [topic], "settle": 0}, "store": {"url": "memory://x"}}
    )
    store = MemoryStore(uuid.uuid4().hex)

    def context(of: Archive = archive) -> Context:
        cluster = Cluster({"bootstrap.servers": broker.bootstrap_servers})
        return Context(of, cluster, store, Ledger(store, "orders"))

    one_by_one(broker, topic, "abcde")
    one_by_one(broker, emptied, "abc")
    runs.run(context(), 1)
    cut(broker, cut=2, emptied=3)
    # No leader is new to who has archived nothing that is gone.
    ends = {name: LogEnd(3, 0), nothing: LogEnd(3, 0)}
    assert context().cluster.truncated(ends) == {name: None, nothing: 0}
    one_by_one(broker, topic, "vwxyz")
    one_by_one(broker, emptied, "wxyz")
    assert context().cluster.truncated({**ends, name: LogEnd(5, 0)}) == {name: 3, nothing: 0}
    with pytest.raises(PolicyError, match=rf"the log of {topic}\[0\] is not the one .* up to 5 under leader epoch 0"):
        runs.run(context(), 2)
    runs.run(context(archive.choosing({"recreated_topic": "new_generation"})), 2)
    planned = context().ledger.plan(runs.hour(2).id)
    assert planned
    assert [(p.generation, p.ranges) for p in planned.partitions] == [(1, ((0, 8),))]
    # The same between a plan and its reading.
    one_by_one(broker, topic, "12")
    runs.run(context(), 3, until="planned")
    cut(broker, cut=1)
    one_by_one(broker, topic, "345")
    late = context().ledger.plan(runs.hour(3).id)
    assert late
    logs = read_logs(context().cluster, late, context().ledger.progress(), replayed=False)
    assert logs.ranges == {name: Range(0, 9)}
    assert "is the same one only up to 9 now: it was truncated" in logs.doubts[name]
