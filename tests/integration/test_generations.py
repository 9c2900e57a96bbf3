"""Case 11 on a real broker: the same offsets come to mean other records."""

import pytest
from confluent_kafka.admin import AdminClient

from kafka_archiver.errors import PolicyError
from tests.support.archiver import Archiver, Services, hour
from tests.support.topics import DAY, HOUR, Record, new_topic
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture
def archiver(services: Services) -> Archiver:
    records = [Record(n % 2, DAY + n * HOUR // 20, b"%d" % n) for n in range(20)]
    return services.archive(records, 2, settings={"chunk_records": 4}, plain=True)


def make_again(archiver: Archiver, first: int, count: int) -> None:
    """Delete the topic and make it again, with one partition more."""
    [topic], brokers = archiver.topics, archiver.kafka.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.delete_topics([topic])[topic].result(30)
    until(lambda: topic not in admin.list_topics(timeout=10).topics)
    new_topic(brokers, 3, topic)
    until(lambda: topic in admin.list_topics(timeout=10).topics)
    archiver.produce([Record(n % 3, DAY + HOUR + n, b"%d" % n) for n in range(first, first + count)])


@pytest.mark.slow
def test_case_11_a_topic_deleted_and_made_again_begins_a_new_generation(archiver: Archiver) -> None:
    archiver.run(hour(0), plain=True)
    before = archiver.etags()
    make_again(archiver, 100, 30)
    with pytest.raises(PolicyError, match=r"deleted and made again.*recreated_topic: new_generation"):
        archiver.plan(hour(1))
    with pytest.raises(PolicyError, match="does not begin a new generation"):
        archiver.plan(hour(1), "backfill")
    archiver.choose(recreated_topic="new_generation")
    proofs = archiver.submitted(archiver.plan(hour(1)))
    assert before.items() <= archiver.etags().items()
    new = set(archiver.objects()) - set(before)
    assert all("+g1.jsonl.gz" in key for key in new)
    assert archiver.values() == [*range(20), *range(100, 130)]
    assert archiver.group(3) == [10, 10, 10]
    assert all("deleted and made again" in p.decided[0] for p in archiver.planned(hour(1).id).partitions[:2])
    # Nobody knows what the old topic had when it was deleted, which was before this was planned.
    assert proofs == []
    assert archiver.run(hour(2), plain=True) == []
    archiver.produce([Record(0, DAY + 3 * HOUR, b"200")])
    [proof] = archiver.run(hour(3), plain=True)
    assert (proof.hour_start, proof.rows) == (hour(3).start, 1)
    assert archiver.values()[-1] == 200
    etags = archiver.etags()
    archiver.run(hour(0), plain=True)
    assert archiver.etags() == etags, "a replay of the old generation keeps what Kafka does not have any more"
    assert archiver.group(3) == [11, 10, 10]
