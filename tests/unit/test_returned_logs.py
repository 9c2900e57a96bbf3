"""A connection that names another cluster for a while: the first cluster's records are not archived twice."""

import pytest

from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.values.ranges import TopicPartition
from tests.support.kafka_twin import KafkaTwin
from tests.support.topics import DAY, HOUR, Record
from tests.support.twin_archive import TwinArchive

pytestmark = pytest.mark.unit
P0 = TopicPartition("orders", 0)


def produce(twin: KafkaTwin, number: int, count: int) -> None:
    twin.produce("orders", [Record(0, DAY + number * HOUR + n, b"%d" % n) for n in range(count)])


@pytest.fixture
def archive() -> TwinArchive:
    """An archive of one cluster that a run has led to another one."""
    archive = TwinArchive(1, 2, policies={"recreated_topic": "new_generation"})
    for number in range(2):
        produce(archive.twin, number, 3)
        archive.run(number, "scheduled")
    first = archive.twin
    archive.twin = KafkaTwin(lambda: archive.now)
    # Its topic has another id.
    archive.twin.create_topic("others")
    archive.twin.create_topic("orders")
    produce(archive.twin, 2, 3)
    archive.run(2, "scheduled")
    archive.twin = first
    return archive


def test_a_log_that_comes_back_is_not_archived_a_second_time(archive: TwinArchive) -> None:
    produce(archive.twin, 3, 3)
    with pytest.raises(PolicyError, match=r"archived up to 6 .* `source.start: group:archiver-orders`"):
        archive.run(3, "scheduled")
    assert [proof.rows for number in range(2) if (proof := archive.proof(number))] == [3, 3]


def test_a_log_that_comes_back_without_any_archived_record_is_a_new_one(archive: TwinArchive) -> None:
    produce(archive.twin, 3, 3)
    archive.twin.delete_records(P0, 6)
    archive.run(3, "scheduled")
    progress = archive.ledger.progress()
    assert progress
    assert [(p.generation, p.next) for p in progress.partitions] == [(2, 9)]
