"""The hand-over from another tool, `source.start: group:<old>`: what it has stored, and what the archive takes."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import confluent_kafka
import pytest

from kafka_archiver.imports.registry import import_text
from kafka_archiver.messages.errors import PolicyError, TransientError
from kafka_archiver.state.status.condition import observe, of_brokers
from kafka_archiver.values.ranges import TopicPartition
from tests.support.archiver import Archiver, Services, hour
from tests.support.topics import DAY, HOUR, Record, produce
from tests.support.waiting import until

pytestmark = pytest.mark.contract


def records(first: int, count: int, partition: int = 0) -> list[Record]:
    return [Record(partition, DAY + HOUR // 2, b"[%d, %d]" % (partition, first + n)) for n in range(count)]


@contextmanager
def connector(services: Services, group: str, topic: str) -> Iterator[confluent_kafka.Consumer]:
    """The old tool: it reads on from its group's offsets, and commits what it has stored."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": services.kafka.bootstrap_servers,
            "group.id": group,
            "client.id": "connector",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def stored(consumer: confluent_kafka.Consumer, count: int) -> list[bytes]:
    """The values of the next records."""
    stored_values: list[bytes] = []

    def enough() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            stored_values.append(message.value() or b"")
        return len(stored_values) >= count

    until(enough)
    return stored_values


def archive_of(services: Services, topic: str, group: str, **policies: str) -> Archiver:
    return services.archive_of(topic, source={"start": f"group:{group}"}, policies=policies)


def put(archiver: Archiver, group: str, offset: int) -> None:
    """Put a group to an offset of the first partition. A broker that has just started may not know its groups yet."""

    def moved() -> bool:
        try:
            archiver.context.cluster.move_group(group, {TopicPartition(archiver.topics[0], 0): offset})
        except TransientError:
            return False
        return True

    until(moved)


def values(archiver: Archiver) -> list[tuple[int, int]]:
    return [(partition, number) for partition, number in archiver.values()]


def test_nothing_is_lost_or_twice_at_the_hand_over(services: Services) -> None:
    topic, group = services.topic(records(0, 5), partitions=2), f"connect-{uuid.uuid4().hex}"
    with connector(services, group, topic) as old:
        by_connector = stored(old, 3)
        old.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 3)], asynchronous=False)
        # Read, and lost with the tool: it had not stored them.
        stored(old, 2)
    produce(services.kafka.bootstrap_servers, topic, records(0, 4, partition=1))
    archiver = archive_of(services, topic, group)
    archiver.run(hour(0), plain=True)
    by_archiver = values(archiver)
    assert by_connector == [record.value for record in records(0, 3)]
    assert by_archiver == [(0, 3), (0, 4), *((1, n) for n in range(4))]
    assert archiver.group(2) == [5, 4]
    # Only the first plan asks the old group: a tool that was started again by mistake changes nothing.
    archiver.produce(records(5, 1))
    with connector(services, group, topic) as old:
        stored(old, 1)
        archiver.run(hour(1), plain=True)
    assert values(archiver) == sorted([*by_archiver, (0, 5)])


def test_a_tool_that_is_still_at_work_is_refused_and_named(services: Services) -> None:
    topic, group = services.topic(records(0, 2)), f"connect-{uuid.uuid4().hex}"
    archiver = archive_of(services, topic, group)
    with connector(services, group, topic) as old:
        stored(old, 2)
        with pytest.raises(
            PolicyError, match=rf"group {group} \(source.start\) has live members: connector@"
        ) as caught:
            archiver.plan(hour(0))
        assert f"--describe --group {group} --members" in str(caught.value)
        assert "handover" in [finding.kind for finding in of_brokers(archiver.context, observe(archiver.context))]
        old.commit(asynchronous=False)
    archiver.run(hour(0), plain=True)
    assert (archiver.values(), archiver.group()) == ([], [2])


def test_a_group_that_left_no_offset_is_refused(services: Services) -> None:
    archiver = archive_of(services, services.topic(records(0, 1)), "no-such-group")
    with pytest.raises(PolicyError, match="no committed offset in any partition of the archive"):
        archiver.plan(hour(0))


def test_what_the_tool_had_not_stored_and_kafka_has_dropped_is_a_loss(services: Services) -> None:
    topic, group = services.topic(records(0, 4)), uuid.uuid4().hex
    archiver = archive_of(services, topic, group)
    put(archiver, group, 1)
    archiver.delete_records(3)
    with pytest.raises(PolicyError, match=r"2 offsets of .* are gone: the archive stands at 1"):
        archiver.plan(hour(0))
    archiver.choose(lost_offsets="record_loss")
    archiver.run(hour(0), plain=True)
    assert (values(archiver), archiver.account(hour(0))) == ([(0, 3)], {"archived": 1, "lost": 2})


def test_a_log_that_ends_before_the_tool_s_offset_is_another_log(services: Services) -> None:
    topic, group = services.topic(records(0, 2)), uuid.uuid4().hex
    archiver = archive_of(services, topic, group)
    put(archiver, group, 9)
    with pytest.raises(PolicyError, match="stands at 9, past the end of the log at 2"):
        archiver.plan(hour(0))


def test_a_commit_between_the_two_looks_is_seen(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, group = services.topic(records(0, 2)), uuid.uuid4().hex
    archiver = archive_of(services, topic, group)
    name, cluster = TopicPartition(topic, 0), archiver.context.cluster
    put(archiver, group, 1)
    members: Callable[[str], list[str]] = cluster.members

    def last_words(asked: str) -> list[str]:
        if asked == group and cluster.committed(group, [name]) == {name: 1}:
            cluster.move_group(group, {name: 2})
        return members(asked)

    monkeypatch.setattr(cluster, "members", last_words)
    with pytest.raises(TransientError, match="has committed 2 in"):
        archiver.plan(hour(0))
    archiver.run(hour(0), plain=True)
    assert (archiver.values(), archiver.group()) == ([], [2])


def test_an_imported_connector_goes_on_in_its_own_paths(services: Services) -> None:
    name = f"c{uuid.uuid4().hex[:8]}"
    countries = ["DE", "FR", "DE", "FR", "DE"]
    values = [Record(0, DAY, b'{"country": "%s"}' % country.encode()) for country in countries]
    topic = services.topic(values)
    sink = {
        "name": name,
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": topic,
        "s3.bucket.name": services.s3.bucket,
        "flush.size": "100000",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
        "partition.field.name": "country",
    }
    with connector(services, f"connect-{name}", topic) as old:
        stored(old, 2)
        old.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 2)], asynchronous=False)
    imported, _ = import_text(json.dumps({"name": name, "config": sink}), "sink.json")
    content = imported.drafts[0].content
    store = {key: value for key, value in content["store"].items() if key not in ("url", "aws")}
    archiver = services.archive_of(topic, source=content["source"], settings=store)
    archiver.run(hour(0), plain=True)
    assert {o.key: o.rows for o in archiver.manifest(hour(0)).objects} == {
        f"{topic}/country=DE/{topic}+0+0000000002.jsonl": 2,
        f"{topic}/country=FR/{topic}+0+0000000002.jsonl": 1,
    }


def test_a_prefix_where_the_connector_s_own_objects_are_is_refused(services: Services) -> None:
    topic, group = services.topic(records(0, 3)), uuid.uuid4().hex
    archiver = services.archive_of(topic, source={"start": f"group:{group}"}, settings={"layout": "confluent_default"})
    put(archiver, group, 1)
    archiver.context.store.put(f"{topic}/partition=0/{topic}+0+0000000000.json", b"0")
    with pytest.raises(PolicyError, match=r"objects of it are there \(.*Give this archive another `store\.url`"):
        archiver.plan(hour(0))
