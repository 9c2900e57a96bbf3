"""Several target partitions in one pass over the archive: each record once, whatever happens to one of the writers."""

import uuid
from functools import cache
from threading import Barrier

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model.restore import RestoreLimits, RestorePlan, RestoreSelection
from kafka_archiver.model.restore_progress import RestoreProgress
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.store import open_store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.restore.lane import Lane
from kafka_archiver.work.restore.pace import Pace
from kafka_archiver.work.restore.partition_writer import PartitionWriter, Session
from kafka_archiver.work.restore.partitioners import partition_of
from kafka_archiver.work.restore.plan import plan_restore
from kafka_archiver.work.restore.step import groups_of
from kafka_archiver.work.restore.together import write_together
from kafka_archiver.work.restore.verify import PartitionReader, verify_together
from tests.support.kafka_twin import KafkaTwin
from tests.support.lake import Lake
from tests.support.restore_twin import Fate, FatedTarget, KilledError, TwinTarget
from tests.support.topics import Record

pytestmark = pytest.mark.unit
SOURCES = {TopicPartition("t", 0): Range(0, 7), TopicPartition("t", 1): Range(2, 8)}
PARTITIONS = 3
HOWS = ["kill", "kill after", "lost before", "lost after", "no group"]


def key_of(offset: int) -> bytes | None:
    return [b"a", b"b", None, b"c", b"d"][offset % 5]


@cache
def archive() -> Lake:
    """Return an archive of two partitions, two offsets in a chunk."""
    name = uuid.uuid4().hex
    MemoryStore(name)
    odd = {
        (source, o): {"key": key_of(o), "value": b"%d-%d" % (source.partition, o)}
        for source in SOURCES
        for o in range(8)
    }
    settings = {"content": "record", "codec": "none"}
    lake = Lake(open_store(f"memory://{name}/", {}), dict(SOURCES), settings, odd=odd)
    lake.run(8)
    return lake


class World:
    """A restore of the archive into three partitions, chosen by Java's partitioner."""

    def __init__(self) -> None:
        self.twin = KafkaTwin(lambda: 0)
        self.twin.create_topic("t", PARTITIONS)
        request = RestoreRequest(
            uuid.uuid4().hex,
            RestoreSelection(topics=("t",)),
            limits=RestoreLimits(transaction_bytes=8),
            partitioner="murmur2",
        )
        self.plan = plan_restore(archive().ledger, self.twin, request)
        self.target = TwinTarget(self.twin)

    @property
    def lanes(self) -> list[Lane]:
        [group] = groups_of(self.plan, 1)
        return [Lane(archive().ledger, self.plan, name, frozenset()) for name in group]

    def attempt(self, fates: dict[int, str]) -> bool:
        """Run an attempt; at some of its calls something happens. Return True if it ended well."""
        happenings = {"no group": lambda: self.twin.delete_group(self.plan.group)}
        target = FatedTarget(
            self.target,
            {at: Fate("meanwhile", happenings[how]) if how in happenings else Fate(how) for at, how in fates.items()},
        )
        try:
            writers = [
                PartitionWriter(target, lane, Pace(), clock=lambda: 0.0, sleep=lambda _: None) for lane in self.lanes
            ]
            write_together(writers)
        except (KilledError, ArchiverError):
            return False
        return True

    def values(self, partition: int) -> list[bytes | None]:
        """Return what a consumer with read_committed sees."""
        entries = self.twin.log(TopicPartition("t", partition)).entries
        return [entry.record.value for entry in entries if entry.record and entry.visible("read_committed")]

    def expected(self, partition: int) -> list[bytes]:
        """Return one source partition after the other, each by offset."""
        return [
            b"%d-%d" % (source.partition, offset)
            for source, offsets in SOURCES.items()
            for offset in range(*offsets)
            if partition_of(key_of(offset), "murmur2", PARTITIONS, source.partition) == partition
        ]


@given(st.lists(st.dictionaries(st.integers(0, 40), st.sampled_from(HOWS), max_size=4), max_size=3))
@example([{16: "lost after"}, {20: "kill after", 3: "no group"}])
@settings(max_examples=40, deadline=None)
def test_each_record_is_there_once_in_order_and_verified(attempts: list[dict[int, str]]) -> None:
    world = World()
    for fates in attempts:
        world.attempt(fates)
        for partition in range(PARTITIONS):
            restored = world.values(partition)
            assert restored == world.expected(partition)[: len(restored)]
    assert world.attempt({})
    readers = [PartitionReader(world.target, lane, lambda _: None) for lane in world.lanes]
    for reader, verified in zip(readers, verify_together(readers), strict=True):
        partition = reader.lane.target.partition
        assert world.values(partition) == world.expected(partition)
        assert verified.report.verified, verified.report
        assert verified == reader.run()


def test_the_archive_is_read_once_for_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    read = Lane.read

    def counted(self: Lane, *arguments: object, **more: object) -> object:
        passes.append(self.target)
        return read(self, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Lane, "read", counted)
    assert World().attempt({})
    assert len(passes) == 1


def test_a_stop_commits_what_was_sent_to_every_partition() -> None:
    world = World()
    asked = iter([False] * 12)
    writers = [PartitionWriter(world.target, lane, Pace(), stop=lambda: next(asked, True)) for lane in world.lanes]
    with pytest.raises(ArchiverError, match="stopped after a commit"):
        write_together(writers)
    assert not [
        e for p in range(PARTITIONS) for e in world.twin.log(TopicPartition("t", p)).entries if e.state == "aborted"
    ]
    assert 0 < sum(len(world.values(p)) for p in range(PARTITIONS)) < sum(r.size for r in SOURCES.values())


def test_a_record_of_another_producer_ends_the_pass_and_is_named() -> None:
    world = World()
    assert world.attempt({})
    world.twin.produce("t", [Record(1, 5, b"foreign")])
    writers = [PartitionWriter(world.target, lane, Pace(), sleep=lambda _: None) for lane in world.lanes]
    with pytest.raises(ArchiverError, match=r"t\[1\] offset \d+ is not a record of this restore"):
        write_together(writers)
    readers = [PartitionReader(world.target, lane, lambda _: None) for lane in world.lanes]
    assert [v.report.verified for v in verify_together(readers)] == [True, False, True]


def test_groups_are_as_many_as_tasks_and_no_pass_has_too_many_writers() -> None:
    plan: RestorePlan = World().plan
    [topic] = plan.topics
    many = plan.model_copy(update={"topics": (topic.model_copy(update={"starts": (0,) * 20}),)})
    for tasks, expected in ((1, 3), (4, 4), (50, 20)):
        groups = groups_of(many, tasks)
        assert len(groups) == expected
        assert max(map(len, groups)) <= 8
        assert sorted(name for group in groups for name in group) == list(many.targets())


def test_the_last_commits_wait_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """A barrier that only all of them pass stands for brokers that do not answer."""
    world, barrier, finish = World(), Barrier(PARTITIONS), Session.finish

    def waiting(session: Session) -> RestoreProgress:
        barrier.wait(10)
        return finish(session)

    monkeypatch.setattr(Session, "finish", waiting)
    assert world.attempt({})
    assert [world.values(partition) for partition in range(PARTITIONS)] == [*map(world.expected, range(PARTITIONS))]


def test_no_transaction_is_open_while_another_partition_waits_for_the_limit() -> None:
    world, present = World(), [0.0]
    names = [TopicPartition("t", partition) for partition in range(PARTITIONS)]

    def sleep(seconds: float) -> None:
        assert all(len({*world.target.ends(name)}) == 1 for name in names)
        present[0] += seconds

    # A record in 80 seconds.
    pace = Pace(records_per_second=1 / 80, clock=lambda: present[0], sleep=sleep)
    write_together([PartitionWriter(world.target, lane, pace, clock=lambda: present[0]) for lane in world.lanes])
    assert [world.values(partition) for partition in range(PARTITIONS)] == [*map(world.expected, range(PARTITIONS))]
    assert present[0] >= 80 * (sum(r.size for r in SOURCES.values()) - 1)
