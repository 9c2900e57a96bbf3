"""Offsets that are gone keep no hour incomplete that began later, whatever their time: nothing could complete it."""

from typing import Any

import pytest

from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.plan import Fill
from tests.support.topics import DAY, HOUR, Record
from tests.support.twin_archive import TwinArchive

pytestmark = pytest.mark.contract

LOG = TopicPartition("orders", 0)
POLICIES = {"lost_offsets": "record_loss", "recreated_topic": "new_generation"}
YEAR_2090 = 3_786_912_000_000


def left_out(partitions: int = 1, **source: Any) -> TwinArchive:
    """An archive that has left out four records of its last partition, the second one of the year 2090."""
    archive = TwinArchive(partitions, 6, policies=POLICIES, **{"start": "latest", **source})
    times = [DAY, YEAR_2090, DAY, DAY]
    archive.twin.produce("orders", [Record(partitions - 1, time, b"{}") for time in times])
    archive.run(0, "scheduled")
    return archive


def topics(archive: TwinArchive, name: str) -> None:
    """Name another topic in the YAML."""
    if archive.twin.topic_ids([name])[name] is None:
        archive.twin.create_topic(name)
    archive.archive = archive.archive.model_copy(
        update={"source": archive.archive.source.model_copy(update={"topics": (name,)})}
    )


def go_on(archive: TwinArchive, *numbers: int) -> None:
    for number in numbers:
        archive.twin.produce("orders", [Record(0, DAY + number * HOUR, b"{}")])
        archive.run(number, "scheduled")


def test_what_was_left_out_and_is_gone() -> None:
    archive = left_out()
    go_on(archive, 1)
    archive.twin.delete_records(LOG, 4)
    go_on(archive, 2, 3, 4, 5)
    # The first run that missed it was planned in hour 3.
    assert archive.statuses == ["incomplete"] * 4 + ["complete"] * 2


def test_it_is_asked_about_once() -> None:
    archive = left_out()
    go_on(archive, 1)
    archive.twin.delete_records(LOG, 2)
    go_on(archive, 2)
    archive.twin.delete_records(LOG, 4)
    go_on(archive, 3, 4, 5)
    # While some of it is there, nothing new is known.
    assert [bool(plan.partitions[0].older) for plan in archive.ledger.following(0)] == [
        True,
        *[False] * 2,
        True,
        *[False] * 2,
    ]


def test_what_is_gone_of_it_when_the_rest_is_filled() -> None:
    archive = left_out()
    archive.twin.delete_records(LOG, 2)
    archive.run(-4, "backfill", Fill())
    go_on(archive, 1, 2, 3, 4, 5)
    assert archive.statuses == ["incomplete"] * 2 + ["complete"] * 4


def test_what_a_fill_loses_of_it() -> None:
    archive = left_out()
    work = archive.plan(-4, "backfill", Fill())
    archive.twin.delete_records(LOG, 2)
    archive.finish(work)
    go_on(archive, 1, 2, 3, 4, 5)
    assert archive.statuses == ["incomplete"] * 2 + ["complete"] * 4


def test_what_is_gone_with_a_partition_that_the_topic_has_no_more() -> None:
    archive = left_out(partitions=2)
    archive.twin.delete_topic("orders")
    archive.twin.create_topic("orders")
    go_on(archive, 1, 2, 3, 4, 5)
    assert archive.statuses == ["incomplete"] * 3 + ["complete"] * 3


def test_what_is_left_out_of_a_topic_that_is_archived_no_more() -> None:
    archive = left_out()
    topics(archive, "others")
    for number in (2, 3):
        archive.run(number, "scheduled")
    # The first run without the topic was planned in hour 3.
    assert archive.statuses == ["incomplete"] * 4 + ["none"] * 2
    archive.run(4, "scheduled")
    assert archive.statuses[4] == "complete"
    # It is asked about anew, and filled.
    topics(archive, "orders")
    archive.run(5, "scheduled")
    assert archive.statuses[5] == "incomplete"
    archive.run(-4, "backfill", Fill())
    assert archive.statuses == ["incomplete"] * 4 + ["complete"] * 2


def test_a_partition_that_is_added_after_the_topic_was_made_again_with_fewer_has_lost_nothing() -> None:
    archive = left_out(partitions=2, start="earliest")
    archive.twin.delete_topic("orders")
    archive.twin.create_topic("orders")
    go_on(archive, 1)
    archive.twin.add_partition("orders")
    archive.twin.produce("orders", [Record(1, DAY + 3 * HOUR, b"{}")])
    # Nobody has to decide about it.
    archive.archive = archive.archive.model_copy(update={"policies": type(archive.archive.policies)()})
    go_on(archive, 5)
    assert archive.statuses == ["complete"] + ["incomplete"] * 2 + ["complete"] * 3
    assert archive.left() == 0
