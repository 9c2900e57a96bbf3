"""The DAG that restores, in a real Airflow, with groups whose offsets a run has noted: each task cleared alone."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.store import open_store
from kafka_archiver.values import ranges
from scripts.stack.kafka import Kafka
from scripts.stack.rest import address
from scripts.stack.s3 import S3
from tests.support.airflow import DONE, Airflow
from tests.support.odd_records import consumed, contents
from tests.support.topics import DAY, Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
TASKS = ("plan", "restore", "verify", "translate_groups")
YAML = """
source: {{topics: [{topic}], snapshot_groups: ["{group}.*"]}}
store: {{url: 's3://archive/{name}', content: record}}
schedule: null
"""


@pytest.fixture
def name(airflow: Airflow) -> Iterator[str]:
    """A name for the test's archive, which is gone afterwards."""
    name = f"x{uuid.uuid4().hex[:8]}"
    yield name
    airflow.remove_archive(name)


def member(brokers: str, group: str, topic: str) -> Consumer:
    """Return a live member of a group, which has not committed anything."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([topic])
    until(lambda: [consumer.poll(0.5)] and consumer.assignment())
    return consumer


def commit(brokers: str, group: str, topic: str, *offsets: int) -> None:
    """Commit the offsets of a group's partitions."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": group, "enable.auto.commit": False})
    places = [TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def states_after_clearing(airflow: Airflow, dag: str, run: str, task: str) -> dict[str, str | None]:
    """Clear one task alone. Return the states of all tasks, once it has run again."""

    def attempts() -> int:
        return next(t.attempt for t in airflow.tasks(dag, run) if t.task == task)

    before = attempts()
    body = {"dag_run_id": run, "task_ids": [task], "dry_run": False, "only_failed": False}
    airflow.request("POST", address("dags", dag, "clearTaskInstances"), body)
    until(lambda: attempts() > before and airflow.runs(dag)[0]["state"] in DONE, seconds=240, every=1)
    return {t.task: t.state for t in airflow.tasks(dag, run)}


def test_each_task_of_a_restore_may_be_cleared_alone(airflow: Airflow, kafka: Kafka, s3: S3, name: str) -> None:
    brokers, group = kafka.bootstrap_servers, f"app-{name}"
    topic, copy = new_topic(brokers, 2, name=f"t-{name}"), f"copy-{name}"
    produce(brokers, topic, [Record(n % 2, DAY + n, b"%d" % n, b"k") for n in range(40)])
    commit(brokers, group, topic, 13, 20)
    archive = airflow.add_archive(name, YAML.format(topic=topic, group=group, name=name))
    airflow.pause(archive, False)
    airflow.trigger(archive)
    [(run, state)] = airflow.wait_for_runs(archive, 1).items()
    failed = [t.task for t in airflow.tasks(archive, run) if t.state == "failed"]
    assert state == "success", [airflow.last_line(archive, run, task) for task in failed]

    dag = airflow.parsed(f"restore_{name}")
    consumer = member(brokers, group, topic)
    try:
        conf = {"restore": "r", "rename": [f"{topic}={copy}"], "create": True, "groups": ["app-.*"]}
        run = airflow.trigger(dag, **conf)
        airflow.wait_for_runs(dag, 1)
    finally:
        consumer.close()
    states = {t.task: t.state for t in airflow.tasks(dag, run)}
    assert states == dict.fromkeys(TASKS, "success") | {"translate_groups": "failed"}
    assert "it has live members" in airflow.last_line(dag, run, "translate_groups")

    partitions = [ranges.TopicPartition(copy, number) for number in range(2)]

    def target() -> list[object]:
        positions = Cluster({"bootstrap.servers": brokers}).positions(group, partitions)
        logs = [consumed(brokers, copy, number, "read_uncommitted") for number in range(2)]
        return [[position and position.offset for position in positions.values()], *logs]

    # `translate_groups` again, once its consumers are gone; then each of the others.
    assert states_after_clearing(airflow, dag, run, "translate_groups") == dict.fromkeys(TASKS, "success")
    restored = target()
    assert restored[0] == [13, 20]
    for number in range(2):
        assert contents(brokers, copy, number) == contents(brokers, topic, number)
    for task in TASKS[:-1]:
        assert states_after_clearing(airflow, dag, run, task) == dict.fromkeys(TASKS, "success"), task
        assert target() == restored, task
    report = Ledger(open_store(f"s3://archive/{name}", s3.options()), name).restore_report("r").document
    assert report
    assert report.verified

    # Where a consumer has gone on since, nobody puts it back.
    commit(brokers, group, copy, 15, 20)
    states = states_after_clearing(airflow, dag, run, "translate_groups")
    assert states == dict.fromkeys(TASKS, "success") | {"translate_groups": "failed"}
    assert target() == [[15, 20], *restored[1:]]
