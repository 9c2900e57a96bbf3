"""The twin of Kafka answers as a real broker does, after the same sequence of records, transactions and operators."""

import random
import re
import uuid

import pytest

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.messages.errors import ArchiverError, PermanentError, PolicyError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.ranges import TopicPartition
from scripts.stack.kafka import Kafka
from tests.support.kafka_mirror import ISOLATIONS, KafkaMirror
from tests.support.kafka_twin import KafkaTwin
from tests.support.topics import DAY, HOUR, Record, new_topic
from tests.support.waiting import until

pytestmark = pytest.mark.contract

YEAR_9999 = 253_402_300_799_999
TIMES = [DAY, DAY - 1, DAY + HOUR, DAY + HOUR - 1, DAY - 2 * HOUR]


@pytest.fixture
def mirror(kafka: Kafka) -> KafkaMirror:
    return KafkaMirror(kafka.bootstrap_servers, lambda: 0)


def twin_of(mirror: KafkaMirror) -> KafkaTwin:
    """The mirror's answers without the broker."""
    twin = KafkaTwin(lambda: 0)
    twin.__dict__.update({name: value for name, value in mirror.__dict__.items() if name in twin.__dict__})
    return twin


def same_answers(mirror: KafkaMirror, topic: str, group: str) -> None:
    twin, real = twin_of(mirror), mirror.cluster
    assert twin.topics([topic]) == real.topics([topic])
    assert twin.topic_ids([topic, f"no-{topic}"]) == real.topic_ids([topic, f"no-{topic}"])
    names = [name for listed in twin.topics([topic]) for name in listed.names]
    assert twin.log_starts(names) == real.log_starts(names)
    assert twin.positions(group, names) == real.positions(group, names)
    assert twin.members(group) == real.members(group)
    groups = twin.offsets_of_groups([re.escape(group)], [topic])
    assert groups == real.offsets_of_groups([re.escape(group), "no-such-group"], [topic])
    assert twin.replication([topic]) == real.replication([topic])
    ends = twin.high_watermarks(names)
    assert ends == real.high_watermarks(names)
    assert real.truncated(ends) == twin.truncated(ends) == dict.fromkeys(names)
    for start in range(0, 12, 3):
        places = {name: start for name in names if twin.log_starts([name])[name] <= start <= ends[name].offset}
        by_twin, by_kafka = twin.first_records(places), real.first_records(places)
        for name in places:
            assert by_twin[name] == by_kafka[name], f"{name} at {start}"
    for step in (1, 2, 5):
        behind = {name: range(twin.log_starts([name])[name], ends[name].offset + 1, step) for name in names}
        assert twin.times_behind(behind) == real.times_behind(behind)
    assert real.times_behind({}) == {}
    assert real.times_behind(dict.fromkeys(names, ())) == twin.times_behind(dict.fromkeys(names, ()))
    for isolation in ISOLATIONS:
        assert twin.log_ends(names, isolation) == real.log_ends(names, isolation)
        for time in {t + by for t in (*TIMES, YEAR_9999) for by in (0, 1)}:
            by_twin, by_kafka = twin.offsets_at(names, time, isolation), real.offsets_at(names, time, isolation)
            for name in names:
                # A broker looks for a time in one segment alone. Where a log begins in the middle of a segment, what
                # made it the right one may be gone: then the broker knows no such record, whatever is behind.
                # Where the segments begin is the broker's affair: the twin may not see what it sees.
                log = twin.log(name)
                offsets = range(log.start, log.end(isolation))
                later = (o for o in offsets if log.entries[o].timestamp >= time and not log.entries[o].compacted)
                known = {next(later, None), None} if log.start else {by_twin[name]}
                assert {by_twin[name], by_kafka[name]} <= known, f"{name} {isolation} at {time}"
    for name, latest in real.latest_times(names).items():
        # No record that is there is later. (Control records have the clock's time.)
        log = twin.log(name)
        offsets = [e.timestamp for e in log.entries[log.start :] if e.record is not None and not e.compacted]
        assert max(offsets, default=-1) <= min(latest, log.latest)
    for name in names:
        log = twin.log(name)
        for offset in range(log.start, log.high + 1):
            assert twin.first_records({name: offset}) == real.first_records({name: offset})
        end = log.end("read_committed")
        if log.start < end:
            chunk = Chunk(topic=topic, partition=name.partition, generation=0, start=log.start, end=end)
            for isolation in ISOLATIONS:
                for content in ("value", "record"):
                    settings = Settings.model_validate({"isolation": isolation, "content": content})
                    properties = {"bootstrap.servers": mirror.brokers}
                    by_twin = [row for batch in twin.read_chunk(chunk, settings) for row in batch.to_pylist()]
                    by_kafka = [r for b in read_chunk(properties, "g", chunk, settings, 20) for r in b.to_pylist()]
                    assert by_twin == by_kafka


def test_only_the_settings_that_a_topic_has_of_its_own_are_told(kafka: Kafka) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2, retention_ms="-1", cleanup_policy="compact")
    plain = new_topic(kafka.bootstrap_servers)
    cluster = Cluster({"bootstrap.servers": kafka.bootstrap_servers})
    own = {topic: {"cleanup.policy": "compact", "retention.ms": "-1"}, plain: {}}
    assert cluster.own_settings([topic, plain]) == own
    assert cluster.topic_settings([plain])[plain]["cleanup.policy"] == "delete"
    assert cluster.replication([topic, plain]) == {topic: 1, plain: 1}


@pytest.mark.parametrize("seed", range(3))
def test_the_same_sequence_gives_the_same_answers(mirror: KafkaMirror, seed: int) -> None:
    draw = random.Random(seed)
    topic, group = f"twin-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    mirror.create_topic(topic, 2)
    begun: set[str] = set()
    for step in range(14):
        transaction = draw.choice([None, None, "x", "y"])
        records = [
            Record(draw.randrange(2), draw.choice(TIMES), b"%d" % n, draw.choice([None, b"a"]), [("h", None)] * (n % 2))
            for n in range(draw.randrange(1, 5))
        ]
        mirror.produce(topic, records, transaction)
        begun |= {transaction} if transaction else set()
        if begun and draw.random() < 0.5:
            mirror.end_transaction(begun.pop(), draw.random() < 0.5)
        name = TopicPartition(topic, draw.randrange(2))
        if step % 5 == 4:
            mirror.delete_records(name, draw.randint(mirror.log(name).start, mirror.log(name).end("read_committed")))
        if step % 4 == 3:
            stamp = draw.choice(["", "kafka-archiver a #1"])
            for kafka in (twin_of(mirror), mirror.cluster):
                kafka.move_group(group, {name: mirror.log(name).high}, stamp)
    same_answers(mirror, topic, group)
    for transaction in begun:
        mirror.end_transaction(transaction, True)
    mirror.add_partition(topic)
    same_answers(mirror, topic, group)
    mirror.delete_group(group)
    mirror.delete_topic(topic)
    mirror.create_topic(topic)
    mirror.produce(topic, [Record(0, DAY, b"again")])
    same_answers(mirror, topic, group)


def test_compaction_leaves_the_same_gaps(mirror: KafkaMirror) -> None:
    topic = f"twin-{uuid.uuid4().hex[:8]}"
    mirror.create_topic(topic)
    mirror.produce(topic, [Record(0, DAY + n, b"%d" % n, b"%d" % min(n, 3)) for n in range(9)])
    name = TopicPartition(topic, 0)
    until(lambda: mirror.compact(name, 0) or mirror.log(name).entries[7].compacted, 90)
    same_answers(mirror, topic, uuid.uuid4().hex)


def test_a_topic_that_is_made_again_takes_the_group_offsets_with_it(mirror: KafkaMirror) -> None:
    topic, group = f"twin-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    mirror.create_topic(topic)
    mirror.produce(topic, [Record(0, DAY, b"x")])
    name = TopicPartition(topic, 0)
    for kafka in (twin_of(mirror), mirror.cluster):
        kafka.move_group(group, {name: 1})
    before = mirror.cluster.topics([topic])
    same_answers(mirror, topic, group)
    mirror.delete_topic(topic)
    mirror.create_topic(topic)
    same_answers(mirror, topic, group)
    assert mirror.cluster.committed(group, [name]) == {name: None}
    assert mirror.cluster.topics([topic]) != before


def test_a_topic_that_is_not_there_is_the_same_error(mirror: KafkaMirror) -> None:
    for kafka in (twin_of(mirror), mirror.cluster):
        with pytest.raises(PermanentError, match="it does not exist"):
            kafka.topics([f"no-{uuid.uuid4().hex}"])
        with pytest.raises(PermanentError, match=r"matches source\.pattern"):
            kafka.topics(re.compile("no-such-topic-at-all"))
    with pytest.raises(PermanentError, match="describe topic no-such-topic: it does not exist; create it or correct"):
        mirror.cluster.topics(["no-such-topic"])


def test_a_chunk_whose_start_is_gone_is_the_same_error(mirror: KafkaMirror) -> None:
    topic = f"twin-{uuid.uuid4().hex[:8]}"
    mirror.create_topic(topic)
    mirror.produce(topic, [Record(0, DAY, b"x")] * 5)
    mirror.delete_records(TopicPartition(topic, 0), 3)
    chunk, settings = Chunk(topic=topic, partition=0, generation=0, start=0, end=5), Settings()
    with pytest.raises(PolicyError, match="does not have the start"):
        list(twin_of(mirror).read_chunk(chunk, settings))
    with pytest.raises(ArchiverError, match="does not have the start"):
        list(read_chunk({"bootstrap.servers": mirror.brokers}, "g", chunk, settings, 20))
