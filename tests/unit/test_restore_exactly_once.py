"""A restore on the twins, whatever happens to its attempts: each record once, in order, and no false `verified`."""

import uuid
from functools import cache
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import FencedError, PermanentError, TransientError
from kafka_archiver.model.restore import RestoreLimits, RestorePlan, RestoreSelection
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.records.reading.object_copies import Copies
from kafka_archiver.store import open_store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.restore import lane
from kafka_archiver.work.restore.lane import Lane
from kafka_archiver.work.restore.pace import Pace
from kafka_archiver.work.restore.partition_writer import PartitionWriter
from kafka_archiver.work.restore.plan import plan_restore
from kafka_archiver.work.restore.verify import PartitionReader
from tests.support.kafka_twin import KafkaTwin
from tests.support.lake import Lake
from tests.support.restore_twin import Fate, FatedTarget, KilledError, TwinTarget, TwinWriter
from tests.support.topics import Record

pytestmark = pytest.mark.unit

NAME = TopicPartition("t", 0)
HOWS = ["kill", "kill after", "lost before", "lost after", "another attempt", "no group", "abort of others", "foreign"]


@cache
def archive(absent: frozenset[int]) -> Lake:
    """Return an archive of eight offsets in three runs and five chunks, some of them without a record."""
    name = uuid.uuid4().hex
    MemoryStore(name)
    lake = Lake(
        open_store(f"memory://{name}/", {}),
        {NAME: Range(0, 8)},
        settings={"content": "record", "codec": "none"},
        absent={(NAME, offset) for offset in absent},
    )
    for hour in (1, 4, 7):
        lake.run(hour)
    return lake


class World:
    """An archive of one partition, and a restore of it into an empty topic of the same name."""

    def __init__(self, absent: frozenset[int]) -> None:
        self.lake = archive(absent)
        self.name = uuid.uuid4().hex
        self.twin = KafkaTwin(lambda: 0)
        self.twin.create_topic("t")
        self.target = TwinTarget(self.twin)
        request = RestoreRequest(self.name, RestoreSelection(topics=("t",)), limits=RestoreLimits(transaction_bytes=20))
        self.plan = plan_restore(self.lake.ledger, self.twin, request)
        self.expected = [b'{"n": %d}' % offset for offset in range(8) if offset not in absent]
        self.foreign = 0

    @property
    def lane(self) -> Lane:
        return Lane(self.lake.ledger, self.frozen, NAME, frozenset())

    @property
    def frozen(self) -> RestorePlan:
        plan = self.lake.ledger.restore_plan(self.name)
        assert plan
        return plan

    def attempt(self, fates: dict[int, str]) -> bool:
        """Run an attempt; at some of its calls something happens. Return True if it ended well."""
        happenings = {
            "another attempt": lambda: self.attempt({}),
            "no group": lambda: self.twin.delete_group(self.plan.group),
            "abort of others": self.abort_of_others,
            "foreign": self.foreign_write,
        }
        target = FatedTarget(
            self.target,
            {at: Fate("meanwhile", happenings[how]) if how in happenings else Fate(how) for at, how in fates.items()},
        )
        try:
            PartitionWriter(target, self.lane, Pace(), clock=lambda: 0.0, sleep=lambda _: None).run()
        except (KilledError, FencedError, TransientError, PermanentError) as error:
            event(f"an attempt ended by {type(error).__name__}")
            return False
        return True

    def foreign_write(self) -> None:
        self.foreign += 1
        self.twin.produce("t", [Record(0, 5, b"foreign")])

    def abort_of_others(self) -> None:
        self.twin.produce("t", [Record(0, 5, b"aborted")], "others")
        self.twin.end_transaction("others", commit=False)

    def values(self) -> list[bytes | None]:
        """Return what a consumer with read_committed sees."""
        entries = self.twin.log(NAME).entries
        return [entry.record.value for entry in entries if entry.record and entry.visible("read_committed")]


@given(
    absent=st.frozensets(st.integers(0, 7), max_size=3),
    attempts=st.lists(st.dictionaries(st.integers(0, 30), st.sampled_from(HOWS), max_size=4), max_size=4),
)
@example(absent=frozenset(), attempts=[{9: "lost after", 12: "no group"}])
@example(absent=frozenset(), attempts=[{8: "another attempt"}])
@example(absent=frozenset(), attempts=[{9: "foreign"}, {}])
@settings(max_examples=150, deadline=None)
def test_each_record_is_there_once_and_in_order_and_verified_is_true_only_then(
    absent: frozenset[int], attempts: list[dict[int, str]]
) -> None:
    world = World(absent)
    for fates in attempts:
        world.attempt(fates)
        restored = [value for value in world.values() if value != b"foreign"]
        assert restored == world.expected[: len(restored)]
    is_done = world.attempt({})
    verified = PartitionReader(world.target, world.lane, lambda _: None).run()
    report = verified.report
    values = world.values()
    assert [value for value in values if value != b"foreign"] == world.expected[: len(values) - world.foreign]
    assert report.verified == (values == world.expected)
    if not world.foreign:
        assert is_done
        assert report.verified
        assert report.selected == report.written == report.records == len(world.expected)
        [log_map] = verified.maps
        for offset, value in zip((o for o in range(8) if o not in absent), world.expected, strict=True):
            entry = world.twin.log(NAME).entries[log_map.translate(offset)]
            assert entry.record
            assert entry.record.value == value
        aborted = [entry for entry in world.twin.log(NAME).entries if entry.state == "aborted"]
        assert report.aborted <= len(aborted)


def test_a_record_of_another_producer_behind_the_progress_is_named() -> None:
    world = World(frozenset())
    assert world.attempt({})
    world.foreign_write()
    at = world.twin.log(NAME).high - 1
    with pytest.raises(PermanentError, match=rf"t\[0\] offset {at} is not a record of this restore"):
        PartitionWriter(world.target, world.lane, Pace(), sleep=lambda _: None).run()


@pytest.mark.parametrize("call", ["send", "commit"])
def test_a_record_of_another_producer_between_those_of_the_restore_ends_it(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, method = World(frozenset()), getattr(TwinWriter, call)

    def disturbed(*arguments: Any) -> Any:
        result = method(*arguments)
        if not world.foreign:
            world.foreign_write()
        return result

    monkeypatch.setattr(TwinWriter, call, disturbed)
    with pytest.raises(PermanentError, match=r"another producer writes to t\[0\]: its records are at or behind offset"):
        PartitionWriter(world.target, world.lane, Pace(), sleep=lambda _: None).run()


def test_no_transaction_is_open_during_a_wait_for_the_limit_that_is_longer_than_it_may_be() -> None:
    world, present = World(frozenset()), [0.0]

    def sleep(seconds: float) -> None:
        assert len({*world.target.ends(NAME)}) == 1
        present[0] += seconds

    # A record in 80 seconds.
    pace = Pace(bytes_per_second=0.1, clock=lambda: present[0], sleep=sleep)
    PartitionWriter(world.target, world.lane, pace, clock=lambda: present[0]).run()
    assert world.values() == world.expected
    assert present[0] >= 7 * 80


def test_no_transaction_is_open_while_objects_are_read_for_who_knows_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    world, add, reads = World(frozenset()), Copies.add, []

    def add_slowly(copies: Copies, item: Any, fetch: Any) -> Any:
        reads.append({*world.target.ends(NAME)})
        return add(copies, item, fetch)

    monkeypatch.setattr(lane, "QUIET", 0)
    monkeypatch.setattr(Copies, "add", add_slowly)
    PartitionWriter(world.target, world.lane, Pace(), clock=lambda: 0.0).run()
    assert world.values() == world.expected
    assert len(reads) > 1
    assert all(len(ends) == 1 for ends in reads)


def test_who_waits_for_records_is_told_so_while_others_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(frozenset())
    [source] = world.plan.sources
    monkeypatch.setattr(lane, "REQUEST", 0)
    monkeypatch.setattr(lane, "QUIET", source.bytes)
    assert None not in list(world.lane.read())
    monkeypatch.setattr(Lane, "_selected", lambda _, source, batch: batch.filter(pc.less(batch.column("offset"), 2)))
    assert None in list(world.lane.read())


def test_an_open_transaction_of_another_producer_is_waited_for_and_named() -> None:
    world = World(frozenset())
    world.twin.produce("t", [Record(0, 5, b"open")], "others")
    waits: list[float] = []
    with pytest.raises(TransientError, match=r"open transaction of another producer from offset 0 on"):
        PartitionWriter(world.target, world.lane, Pace(), sleep=waits.append).run()
    world.twin.end_transaction("others", commit=False)
    assert world.attempt({})
    assert waits


def test_a_topic_that_was_made_anew_is_not_written() -> None:
    world = World(frozenset())
    world.twin.delete_topic("t")
    world.twin.create_topic("t")
    with pytest.raises(PermanentError, match="is another one now"):
        PartitionWriter(world.target, world.lane, Pace(), sleep=lambda _: None).run()
    assert world.values() == []


def test_a_topic_that_is_made_anew_between_two_commits_ends_the_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    world, commit = World(frozenset()), TwinWriter.commit

    def commit_and_lose_the_topic(writer: TwinWriter, group: str, stamp: str) -> Range:
        written = commit(writer, group, stamp)
        world.twin.delete_topic("t")
        world.twin.create_topic("t")
        return written

    monkeypatch.setattr(TwinWriter, "commit", commit_and_lose_the_topic)
    with pytest.raises(PermanentError, match=r"t\[0\] ends at offset 0, and the restore has written up to \d"):
        PartitionWriter(world.target, world.lane, Pace(), sleep=lambda _: None).run()


def test_a_stop_commits_what_was_sent() -> None:
    world = World(frozenset())
    answers = iter([False, False, False, True])
    with pytest.raises(TransientError, match="stopped after a commit"):
        PartitionWriter(world.target, world.lane, Pace(), stop=lambda: next(answers, True), sleep=lambda _: None).run()
    values = world.values()
    assert 0 < len(values) < len(world.expected)
    assert values == world.expected[: len(values)]
    assert not [entry for entry in world.twin.log(NAME).entries if entry.state == "aborted"]
