"""Offsets that a group does not read back as they were committed: when another client is to blame, and when nobody."""

from collections.abc import Iterable, Mapping

import pytest

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.values.ranges import TopicPartition

pytestmark = pytest.mark.unit
P0 = TopicPartition("orders", 0)


class Group(Cluster):
    """A cluster whose group reads back these answers, one after the other."""

    def __init__(self, answers: Iterable[int | None]) -> None:
        super().__init__({"bootstrap.servers": "b:1"})
        self._answers = iter(answers)
        self.commits = 0

    def look_anew(self) -> None:
        """Wait for nothing."""

    def committed(self, group: str, names: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {P0: next(self._answers)}

    def _call(self, function: object, *args: object) -> None:
        self.commits += 1


def move(group: Group, offsets: Mapping[TopicPartition, int] = {P0: 10}) -> None:
    group.move_group("archiver-orders", offsets)


@pytest.mark.parametrize("first", [None, 7])
def test_an_offset_that_reads_back_otherwise_once_is_committed_again(first: int | None) -> None:
    group = Group([first, 10])
    move(group)
    assert group.commits == 2


def test_an_offset_that_does_not_read_back_at_all_is_tried_again_by_the_next_attempt() -> None:
    with pytest.raises(TransientError, match=r"committed offset 10 of .*, but read back None"):
        move(Group([None, None]))


def test_an_offset_that_reads_back_otherwise_twice_is_of_another_client() -> None:
    with pytest.raises(PermanentError, match="but read back 7: another client commits in this group"):
        move(Group([7, 7]))
