"""The preflight of a restore on a real broker: a setting that would harm records is refused, and its remedy helps."""

import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.target_facts import gather_facts
from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.restore import RestoreOptions
from kafka_archiver.model.snapshots import TopicSnapshot
from kafka_archiver.model.target_facts import TargetFacts, TopicDemand
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.work.restore.preflight import creation, judge, settings_of_source
from scripts.stack.java import find_java
from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.kafka_tools import write_kafka_tools
from scripts.stack.paths import BROKER_JARS
from scripts.stack.ports import free_ports
from tests.support import quick
from tests.support.topics import Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.contract, pytest.mark.slow]

GROUP, IDS = "restore-group", "kafka-archiver-restore-"
PRESENT = datetime.now(UTC)
YEAR_AGO, IN_A_YEAR = (to_ms(PRESENT + timedelta(days=days)) for days in (-365, 365))


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tools")
    write_kafka_tools(folder, find_java().executable, BROKER_JARS)
    return folder


def run(command: str, tools: Path) -> None:
    done = subprocess.run(
        command, shell=True, env={"PATH": f"{tools}:/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout


def facts_of(kafka: Kafka, topic: str) -> TargetFacts:
    return gather_facts(Cluster({"bootstrap.servers": kafka.bootstrap_servers}), [topic], GROUP, IDS)


def demand_of(topic: str, **more: object) -> TopicDemand:
    return TopicDemand(topic, 2, frozenset({0, 1}), YEAR_AGO, IN_A_YEAR, 5_000_000)._replace(**more)  # type: ignore[arg-type]


def problems(kafka: Kafka, topic: str, **more: object) -> list[Finding]:
    findings = judge([demand_of(topic, **more)], facts_of(kafka, topic), RestoreOptions(), PRESENT)
    return [finding for finding in findings if finding.severity == "problem"]


def test_each_setting_that_harms_records_is_refused_and_its_remedy_helps(kafka: Kafka, tools: Path) -> None:
    topic = new_topic(
        kafka.bootstrap_servers,
        1,
        cleanup_policy="compact",
        message_timestamp_before_max_ms="1000",
        message_timestamp_after_max_ms="1000",
        max_message_bytes="4000000",
        min_insync_replicas="2",
    )
    expected = {
        "too few partitions": "t has 1 partitions",
        "compaction": "cleanup.policy is compact, expected delete",
        "old timestamps": "message.timestamp.before.max.ms is 1000, expected",
        "future timestamps": "message.timestamp.after.max.ms is 1000, expected",
        "large records": "max.message.bytes is 4000000, expected 5,000,000 or more",
        "replicas": "min.insync.replicas is 2, expected at most 1",
    }
    refused = problems(kafka, topic)
    assert {finding.kind for finding in refused} == set(expected)
    for finding in refused:
        assert expected[finding.kind] in finding.observed.replace(topic, "t")
    for command in {finding.actions[0].command for finding in refused}:
        run(command, tools)
    until(lambda: not problems(kafka, topic))
    # The judgement was right: the brokers take such records now, and keep them.
    produce(kafka.bootstrap_servers, topic, [Record(0, YEAR_AGO, b"x" * 3_000), Record(1, IN_A_YEAR, b"y")])


@pytest.mark.parametrize(
    ("settings", "observed"),
    [
        ({"message_timestamp_type": "LogAppendTime"}, ["message.timestamp.type is LogAppendTime, expected CreateTime"]),
        (
            {"retention_ms": "86400000", "retention_bytes": "1000000"},
            ["retention.ms is 86400000, expected -1", "retention.bytes is 1000000, expected -1"],
        ),
    ],
)
def test_a_setting_that_removes_or_changes_records(kafka: Kafka, settings: dict[str, str], observed: list[str]) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2, max_message_bytes="9000000", **settings)
    refused = problems(kafka, topic)
    assert [finding.observed for finding in refused] == observed
    assert all(f"{line.split()[0]}=" in finding.actions[0].command for finding in refused for line in observed)


def test_a_topic_with_records_is_refused_unless_the_caller_appends(kafka: Kafka, tools: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2, max_message_bytes="9000000")
    produce(kafka.bootstrap_servers, topic, [Record(1, YEAR_AGO, b"x")])
    assert problems(kafka, topic, written=frozenset({0})) == []
    [finding] = problems(kafka, topic)
    assert finding.kind == "target not empty"
    assert f"{topic}[1] has offsets [0, 1)" in finding.observed
    assert not judge([demand_of(topic)], facts_of(kafka, topic), RestoreOptions(append=True), PRESENT)
    run(finding.actions[0].command, tools)
    [missing] = until(lambda: [f for f in problems(kafka, topic) if f.kind == "topic missing"])
    run(missing.actions[0].command, tools)
    until(lambda: not problems(kafka, topic, largest=None))


def test_a_topic_is_created_as_the_source_was_and_safe_for_the_restore(kafka: Kafka, tools: Path) -> None:
    own = {
        "cleanup.policy": "compact",
        "segment.ms": "60000",
        "min.insync.replicas": "2",
        "max.message.bytes": "6000000",
    }
    topic = f"created-{time.time_ns()}"
    source = TopicSnapshot(topic="orders", topic_id="x", partitions=3, replication=3, settings=own)
    demand = demand_of(topic, snapshot=source)
    cluster = Cluster({"bootstrap.servers": kafka.bootstrap_servers})
    planned = creation(demand, cluster.size())
    for _ in range(2):
        cluster.create_topic(planned.topic, planned.partitions, planned.replication, planned.settings)
    assert problems(kafka, topic) == []
    facts = facts_of(kafka, topic)
    assert len(facts.topics[topic].logs) == 3
    run(settings_of_source(planned, facts.tools).command, tools)
    assert until(lambda: cluster.own_settings([topic])[topic].get("cleanup.policy") == "compact")
    # The broker has one node: it cannot have two replicas in sync.
    assert cluster.own_settings([topic])[topic] == {**own, "min.insync.replicas": "1"}
    with pytest.raises(PermanentError, match="create topic other"):
        cluster.create_topic("other", 1, 1, {"no.such.setting": "1"})


@pytest.fixture(scope="module")
def guarded(stack_directory: Path) -> Iterator[Kafka]:
    """A broker with access control, which allows everything that no rule is about."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    server = Kafka(stack_directory / "guarded", free_ports(KafkaPorts), settings, java=quick.JAVA)
    try:
        server.start()
        yield server
    finally:
        server.stop(grace=0)


def test_missing_rights_are_refused_and_the_remedy_grants_them(guarded: Kafka, tools: Path) -> None:
    topic = new_topic(guarded.bootstrap_servers, 2, max_message_bytes="9000000")
    assert problems(guarded, topic) == []
    # Another user may do all of it; this one may only look at the topic.
    for kind, name, operation, user in (
        (ResourceType.TOPIC, topic, AclOperation.ALL, "other"),
        (ResourceType.GROUP, GROUP, AclOperation.READ, "other"),
        (ResourceType.TRANSACTIONAL_ID, IDS, AclOperation.WRITE, "other"),
        (ResourceType.TOPIC, topic, AclOperation.DESCRIBE, "ANONYMOUS"),
        (ResourceType.TOPIC, topic, AclOperation.DESCRIBE_CONFIGS, "ANONYMOUS"),
    ):
        form = ResourcePatternType.PREFIXED if name == IDS else ResourcePatternType.LITERAL
        rule = AclBinding(kind, name, form, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        admin = AdminClient({"bootstrap.servers": guarded.bootstrap_servers})
        admin.create_acls([rule])[rule].result(10)
    refused = until(lambda: problems(guarded, topic) if len(problems(guarded, topic)) == 3 else None)
    assert [finding.subject for finding in refused] == [GROUP, IDS, topic]
    producer = Producer({"bootstrap.servers": guarded.bootstrap_servers, "transactional.id": f"{IDS}x-0"})
    with pytest.raises(KafkaException):
        producer.init_transactions(10)
    for finding in refused:
        run(finding.actions[0].command.replace("User:NAME", "User:ANONYMOUS"), tools)
    until(lambda: not problems(guarded, topic))
