"""The questions of the archiver to Kafka, asked of a real broker."""

import re
import uuid

import confluent_kafka
import pytest

from kafka_archiver.kafka.cluster import Cluster, LogEnd
from kafka_archiver.kafka.first_records import FirstRecord, crc32
from kafka_archiver.kafka.groups import Position
from kafka_archiver.messages.errors import ConfigError, PermanentError, TransientError
from kafka_archiver.values.ranges import TopicPartition
from scripts.stack.kafka import Kafka
from tests.support.topics import DAY, HOUR, Record, delete_records, new_topic, produce
from tests.support.waiting import until

pytestmark = pytest.mark.contract


@pytest.fixture
def cluster(kafka: Kafka) -> Cluster:
    return Cluster({"bootstrap.servers": kafka.bootstrap_servers})


def test_a_pattern_matches_whole_names(cluster: Cluster) -> None:
    tag = uuid.uuid4().hex[:8]
    for name in (f"{tag}.a", f"{tag}.b", f"x{tag}.a"):
        new_topic(cluster.brokers, name=name)
    assert [t.name for t in cluster.topics(re.compile(rf"{tag}\..*"))] == [f"{tag}.a", f"{tag}.b"]
    with pytest.raises(PermanentError, match=r"no topic at .* matches source.pattern"):
        cluster.topics(re.compile(f"none-{tag}"))


def test_an_open_transaction_ends_the_log_for_read_committed_only(cluster: Cluster) -> None:
    name = new_topic(cluster.brokers)
    partition = TopicPartition(name, 0)
    produce(cluster.brokers, name, [Record(0, DAY, b"1")] * 3)
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.brokers, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"open", partition=0)
    producer.flush(30)
    assert cluster.log_ends([partition], "read_committed") == {partition: 3}
    assert cluster.log_ends([partition], "read_uncommitted") == {partition: 4}
    producer.abort_transaction(30)
    # The abort marker takes an offset of its own, a moment later.
    until(lambda: cluster.log_ends([partition], "read_committed") == {partition: 5})


def test_offsets_at_a_time_are_the_first_at_or_after_it(cluster: Cluster) -> None:
    name = new_topic(cluster.brokers)
    partition = TopicPartition(name, 0)
    produce(cluster.brokers, name, [Record(0, DAY + i * HOUR, b"x") for i in (0, 2, 1, 3)])
    for hour, expected in ((0, 0), (1, 1), (2, 1), (3, 3), (4, None)):
        assert cluster.offsets_at([partition], DAY + hour * HOUR, "read_committed") == {partition: expected}


def test_first_records_are_those_at_or_behind_an_offset_aborted_ones_too(cluster: Cluster) -> None:
    name = new_topic(cluster.brokers, 3)
    partition_zero, partition_one, partition_two = (TopicPartition(name, number) for number in range(3))
    values = (b"a", None, b"")
    produce(cluster.brokers, name, [Record(0, DAY + i * HOUR, value) for i, value in enumerate(values)])
    produce(cluster.brokers, name, [Record(1, DAY, b"aborted")], transaction="abort")
    for offset, value in enumerate(values):
        records = cluster.first_records({partition_zero: offset})
        assert records == {partition_zero: FirstRecord(offset, DAY + offset * HOUR, 0, crc32(value))}
    delete_records(cluster.brokers, name, 1)
    assert cluster.first_records({partition_zero: 1, partition_one: 0, partition_two: 0}) == {
        partition_zero: FirstRecord(1, DAY + HOUR, 0, None),
        partition_one: FirstRecord(0, DAY, 0, crc32(b"aborted")),
        partition_two: None,
    }
    # Behind the end, and before the start: nothing to be found there.
    assert cluster.first_records({partition_zero: 3, partition_one: 2}) == {partition_zero: None, partition_one: None}
    assert cluster.first_records({}) == {}


def test_high_watermarks_come_with_the_leader_s_epoch(cluster: Cluster) -> None:
    name = new_topic(cluster.brokers, 2)
    partition_zero, partition_one = TopicPartition(name, 0), TopicPartition(name, 1)
    produce(cluster.brokers, name, [Record(0, DAY, b"x")] * 2)
    produce(cluster.brokers, name, [Record(0, DAY, b"x")], transaction="abort")
    watermarks = cluster.high_watermarks([partition_zero, partition_one])
    assert watermarks[partition_zero] == LogEnd(4, 0)
    assert watermarks[partition_one].offset == 0


def test_a_group_is_moved_and_read_back(cluster: Cluster) -> None:
    name, group = new_topic(cluster.brokers, 2), uuid.uuid4().hex
    partition_zero, partition_one = TopicPartition(name, 0), TopicPartition(name, 1)
    assert cluster.members(group) == []
    assert cluster.committed(group, [partition_zero, partition_one]) == {partition_zero: None, partition_one: None}
    cluster.move_group(group, {partition_zero: 7})
    assert cluster.committed(group, [partition_zero, partition_one]) == {partition_zero: 7, partition_one: None}
    assert cluster.positions(group, [partition_zero, partition_one]) == {
        partition_zero: Position(7, ""),
        partition_one: None,
    }
    cluster.move_group(group, {partition_zero: 5, partition_one: 0}, "who put it there")
    assert cluster.positions(group, [partition_zero, partition_one]) == {
        partition_zero: Position(5, "who put it there"),
        partition_one: Position(0, "who put it there"),
    }
    assert cluster.committed(group, [partition_zero, partition_one]) == {partition_zero: 5, partition_one: 0}


def test_a_group_with_live_members_is_seen_and_not_moved(cluster: Cluster) -> None:
    name, group = new_topic(cluster.brokers), uuid.uuid4().hex
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.brokers, "group.id": group, "client.id": "intruder"}
    )
    consumer.subscribe([name])
    until(lambda: consumer.poll(0.1) or consumer.assignment())
    [member] = cluster.members(group)
    assert member.startswith("intruder@")
    with pytest.raises(PermanentError, match="the group has live members"):
        cluster.move_group(group, {TopicPartition(name, 0): 0})
    consumer.close()


def test_brokers_that_do_not_answer_are_a_transient_error_that_names_them() -> None:
    with pytest.raises(TransientError, match=r"127\.0\.0\.1:1"):
        Cluster({"bootstrap.servers": "127.0.0.1:1"}, timeout=2).topics(["x"])


def test_a_connection_without_brokers_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"no `bootstrap\.servers`"):
        Cluster({})
