"""Three real brokers, of which one is cut off from the controller while it leads, and goes on to answer.

Each step is one of the model, whose oracle compares every proof and every loss with what Kafka has. More of them, at
random: `make attack`, or `python -m tests.support.model_run --three-brokers --minutes 30`.
"""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from kafka_archiver.kafka import cluster
from scripts.stack.s3 import S3
from tests.support.model import ALL_GOES, Model
from tests.support.model_run import cut, one_thread
from tests.support.three_brokers import SESSION_SECONDS, ThreeBrokers
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

STORE = {"format": "jsonl", "codec": "none", "content": "record", "chunk_records": 5}
SOURCE = {
    "start": "earliest",
    "isolation": "read_committed",
    "max_records_per_run": 1000,
    "value": {"decode": "bytes"},
}
RECORDS = [(0, -3_600_000, b"a", "good"), (0, 0, None, "good")] * 3


@pytest.fixture
def model(stack_directory: Path, s3: S3) -> Iterator[Model]:
    """The model at its beginning; at its end everything is archived, and every check holds."""
    with (
        one_thread(),
        patch.object(cluster, "SESSION_SECONDS", SESSION_SECONDS + 2),
        ThreeBrokers(stack_directory / "three").running() as servers,
    ):
        state = cut(servers, s3)()
        state.begin(STORE, SOURCE, [1], "archive")
        yield state
        state.teardown()


def end_by(brokers: str, topic: str) -> int | None:
    """Return the end of partition 0 by the leader that a new client of these brokers finds, None without an answer."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "end"})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
    except KafkaException:
        return None
    finally:
        consumer.close()


def test_a_leader_that_is_cut_off_completes_no_hour_and_loses_nothing(model: Model) -> None:
    servers, [topic] = model.twin.servers, model.topics  # type: ignore[attr-defined]
    model.produce(0, RECORDS, None)
    model.scheduled(ALL_GOES, [], True, False, 0, 0)
    model.cut_leader_off(0)
    model.produce(0, RECORDS * 5, None)
    # A client learns of all brokers from the first, and may then ask another one: not each answer is of the first.
    until(lambda: end_by(servers.first, topic) == 6, 60)
    assert until(lambda: end_by(servers.others, topic)) == 36
    # Every other client of the archiver knows only the broker that is cut off, when it begins.
    for _ in range(4):
        model.scheduled(ALL_GOES, [], True, False, 0, 0)
        model.backfill(2, ALL_GOES, [], True, False, 0)
    # An attempt of before, that goes on when everything is healed.
    model.produce(0, RECORDS, None)
    model.scheduled(ALL_GOES, [("freeze", 12)], True, True, 0, 0)
    model.heal()
    model.wake(0, 1 << 30)
    model.scheduled(ALL_GOES, [], True, False, 0, 0)
    assert model.oracle.complete > 0
