"""A topic is lost, with its settings and its consumers' offsets: all of it is there again, from the archive alone."""

import logging
import time
import uuid
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.target import KafkaTarget
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.model.restore import RestoreSelection
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.values.intervals import from_ms
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.restore.groups import GroupMover, snapshot_of_groups, translate_groups, verified_map
from kafka_archiver.work.restore.lane import Lane
from kafka_archiver.work.restore.pace import Pace
from kafka_archiver.work.restore.partition_writer import PartitionWriter
from kafka_archiver.work.restore.plan import plan_restore
from kafka_archiver.work.restore.prepare import forecast, prepare
from kafka_archiver.work.restore.step import publish, published
from kafka_archiver.work.restore.verify import PartitionReader
from tests.support.archiver import Services, hour
from tests.support.topics import DAY, HOUR, Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

OWN = {"max.message.bytes": "2000000", "retention.ms": "3155760000000", "segment.ms": "600000"}
RECORDS = [Record(n % 2, DAY + n, b"%d" % n, b"k%d" % n, [("h", b"%d" % n)]) for n in range(40)]


def read_in_group(brokers: str, group: str, topic: str, count: int) -> list[bytes]:
    """Read so many records as a member of a group, and commit behind them."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": brokers, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    try:
        end = time.monotonic() + 60
        while len(values) < count and time.monotonic() < end:
            if (message := consumer.poll(1)) and not message.error():
                values.append(message.value())
                consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()
    return values


def test_a_lost_topic_comes_back_with_its_settings_and_its_groups_go_on(
    services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    brokers, group = services.kafka.bootstrap_servers, f"app-{uuid.uuid4().hex[:6]}"
    topic = new_topic(brokers, 2, **{name.replace(".", "_"): value for name, value in OWN.items()})
    produce(brokers, topic, RECORDS, "commit")
    already = read_in_group(brokers, group, topic, 25)
    source = {"snapshot_groups": [group[:8] + ".*"]}
    archiver = services.archive_of(topic, settings={"content": "record"}, source=source)
    archiver.run(hour(3), plain=True)
    ledger, cluster = archiver.context.ledger, Cluster({"bootstrap.servers": brokers})
    lost = cluster.topics([topic])[0].id
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.delete_topics([topic])[topic].result(30)
    until(lambda: cluster.topic_ids([topic])[topic] is None)

    request = RestoreRequest("r", RestoreSelection(topics=(topic,)))
    outlook = forecast(ledger, cluster, request)
    assert [(finding.kind, finding.severity) for finding in outlook.findings] == [("topic missing", "problem")]
    assert cluster.topic_ids([topic])[topic] is None

    def ready(sources: Any, through: int, wanted_request: RestoreRequest = request) -> None:
        assert prepare(ledger, cluster, wanted_request, sources, through, create=True) == []

    with caplog.at_level(logging.INFO):
        plan = plan_restore(ledger, cluster, request, ready)
    assert plan.topics[0].topic_id not in ("", lost)
    target, results = KafkaTarget({"bootstrap.servers": brokers}, patience=20), []
    before = published(ledger, plan)
    for name in plan.targets():
        lane = Lane(ledger, plan, name, frozenset())
        PartitionWriter(target, lane, Pace()).run()
        results.append(PartitionReader(target, lane, time.sleep).run())
    assert publish(ledger, plan, results, before).verified

    stood, outcomes = snapshot_of_groups(ledger, plan.through, ["app-.*"]), []
    for dry_run in (True, False, False):
        mover = GroupMover(cluster, plan, verified_map(ledger, plan), dry_run=dry_run)
        outcomes += [report.outcome for report in translate_groups(ledger, mover, stood).groups]
    assert outcomes == ["moved", "moved", "there"]
    positions = cluster.positions(group, [TopicPartition(topic, number) for number in range(2)])
    assert {place and place.stamp for place in positions.values()} == {
        f"kafka-archiver restore {archiver.archive.archive}/r"
    }
    # The group reads what it had not read, and nothing a second time.
    unread = read_in_group(brokers, group, topic, len(RECORDS) - len(already))
    assert sorted([*already, *unread]) == sorted(record.value or b"" for record in RECORDS)

    # Another archive begins where the producers begin again: what is restored is archived already.
    began = time.time_ns() // 1_000_000 + 1_000
    produce(brokers, topic, [Record(n % 2, began + n, b'{"new": 1}') for n in range(6)])
    source = {"start": from_ms(began).isoformat()}
    following, interval = services.archive_of(topic, source=source), hour((began - DAY) // HOUR)
    following.run(interval, plain=True)
    assert following.account(interval) == {"archived": 6}
    assert [line for lines in following.lines().values() for line in lines] == [{"new": 1}] * 6

    # Once it is over, the topic gets the settings back that the source had, when a person says so.
    assert cluster.own_settings([topic])[topic]["retention.ms"] == "-1"
    assert "--add-config retention.ms=3155760000000 --delete-config " in caplog.text
    again = RestoreRequest("again", RestoreSelection(topics=(topic,)))
    with pytest.raises(PolicyError, match=r"has offsets \[0, \d+\).*--append"):
        plan_restore(ledger, cluster, again, lambda sources, through: ready(sources, through, again))
