"""A log that is cut, made again without another id, or overtaken by retention between its plan and its reading."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.kafka.first_records import LogEnd
from kafka_archiver.kafka.identity import NO_ID
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import PolicyError, TransientError
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.result import ChunkResult, Limits, WriteJob
from kafka_archiver.values.intervals import from_ms, to_hour
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.archive.step import ArchiveStep
from kafka_archiver.work.backlog import archive_runs
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.plan import PlannedWork, plan
from kafka_archiver.work.rebuild import rebuild_run
from kafka_archiver.work.verify import verify
from tests.support.archiver import hour
from tests.support.topics import DAY, HOUR, Record
from tests.support.worlds import TwinWorld

pytestmark = pytest.mark.contract

NAME = TopicPartition("orders", 0)


class Logged:
    """An archive of one log on the twins; `meanwhile` is what happens once its chunks are read."""

    def __init__(self, ids: bool = True, epochs: bool = True) -> None:
        self.now = DAY
        self.world = TwinWorld(lambda: self.now)
        self.twin, self.store = self.world.twin, self.world.store
        self.ledger = Ledger(self.store, "orders")
        self.choose()
        self.meanwhile: Callable[[], object] = lambda: None
        twin: Any = self.twin
        if not ids:
            twin._new_id = lambda name: NO_ID
        if not epochs:
            highs = self.twin.high_watermarks
            twin.high_watermarks = lambda names: {n: LogEnd(e.offset, None) for n, e in highs(names).items()}
        self.twin.create_topic("orders")

    def choose(self, limit: int = 1000, **policies: str) -> None:
        source = {"topics": ["orders"], "settle": 0, "max_records_per_run": limit}
        store = {"url": "memory://x", "codec": "none"}
        document = {"archive": "orders", "source": source, "store": store, "policies": policies}
        self.archive = Archive.model_validate(document)

    def produce(self, values: str, number: int = 0) -> None:
        self.twin.produce("orders", [Record(0, DAY + number * HOUR, value.encode()) for value in values])

    def cut(self, count: int, produced_then: str) -> None:
        """An unclean election, after which the log has grown again."""
        self.twin.elect(NAME, cut=count)
        self.produce(produced_then, 1)

    def remake(self, values: str) -> None:
        """The same topic again, at brokers that give no ids."""
        for name in self.twin.logs.pop(NO_ID), *self.twin.groups.values():
            name.clear()
        self.twin._ids.clear()
        self.twin.create_topic("orders")
        self.produce(values, 1)

    @property
    def context(self) -> Context:
        cluster: Any = self.twin
        return Context(self.archive, cluster, self.store, self.ledger, lambda: from_ms(self.now))

    def plan(self, number: int) -> PlannedWork:
        self.now = DAY + (number + 1) * HOUR + 60_000
        return plan(self.context, hour(number), "scheduled")

    def finish(self, work: PlannedWork) -> None:
        context = self.context
        choice = ReadPolicies.of(self.archive.policies.model_dump())
        archive_runs(context, work, ArchiveStep(context.cluster, self.store, self.ledger, self, choice).run)
        verify(context, work.runs)
        commit(context, work.runs)
        close_hours(context, work.runs)

    def run(self, number: int) -> None:
        self.finish(self.plan(number))

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        """The engine."""
        written = []
        for chunk in chunks:
            whole = plan.chunk_of(chunk.name, chunk.start)
            assert whole
            batches = self.twin.read_chunk(chunk, plan.settings)
            written.append(write_chunk(whole, batches, job, self.store, Limits(upload_threads=1)))
        self.meanwhile()
        return written

    @property
    def values(self) -> str:
        """Return what is archived, in the order of keys."""
        keys = sorted(s.key for s in self.store.list("") if not s.key.startswith("_ledger/"))
        return "".join((self.store.get(key) or b"").decode().replace("\n", "") for key in keys)

    def account(self, number: int) -> dict[str, int]:
        manifest = self.ledger.manifest(hour(number).id)
        assert manifest
        return {fate: count for fate, count in manifest.account.items() if count}

    def complete_as_of(self, number: int) -> datetime | None:
        proof = self.ledger.hour(to_hour(hour(number).start))
        return proof.complete_as_of if proof else None


def test_a_log_that_is_cut_between_plan_and_archive_and_grows_again_is_not_read_as_planned() -> None:
    log = Logged()
    log.produce("abcdefghij")
    work = log.plan(0)
    log.cut(5, "uvwxyz")
    with pytest.raises(
        PolicyError, match=r"orders\[0\] reached 10 .* epoch 0 .* only up to 5 now: it was truncated.*loss"
    ):
        log.finish(work)
    log.choose(lost_offsets="record_loss")
    log.finish(work)
    assert (log.values, log.account(0)) == ("abcde", {"archived": 5, "lost": 5})
    assert log.complete_as_of(0) is None


def test_so_it_is_where_it_does_not_grow() -> None:
    log = Logged()
    log.produce("abcde")
    work = log.plan(0)
    log.cut(5, "")
    log.choose(lost_offsets="record_loss")
    log.finish(work)
    assert (log.values, log.account(0)) == ("", {"lost": 5})


def test_a_log_that_is_cut_while_it_is_read_is_looked_at_again() -> None:
    log = Logged()
    log.produce("abcde")
    work = log.plan(0)
    log.meanwhile = lambda: log.cut(2, "xyz")
    with pytest.raises(TransientError, match="deleted, made again or cut while it was read"):
        log.finish(work)
    log.meanwhile = lambda: None
    with pytest.raises(PolicyError, match="only up to 3 now"):
        log.finish(work)


def test_another_leader_and_a_cut_behind_what_was_planned_are_none_of_its_business() -> None:
    log = Logged()
    log.produce("abcde")
    work = log.plan(0)
    log.produce("fgh")
    log.cut(3, "xyz")
    log.finish(work)
    assert (log.values, log.account(0)) == ("abcde", {"archived": 5})


def test_a_replay_is_left_to_its_checksums() -> None:
    log = Logged()
    log.produce("abcde")
    log.run(0)
    log.cut(2, "xyz")
    log.finish(PlannedWork((hour(0).id,), (hour(0).id,)))
    assert log.values == "abcde"


@pytest.mark.parametrize("ids", [True, False])
def test_where_the_brokers_give_no_epochs_the_last_archived_record_tells(ids: bool) -> None:
    log = Logged(ids, epochs=False)
    log.produce("abcde")
    log.run(0)
    log.produce("fgh")
    work = log.plan(1)
    log.cut(5, "stuvwxyz")
    with pytest.raises(PolicyError, match="the record at offset 4 differs"):
        log.finish(work)
    log.choose(lost_offsets="record_loss")
    log.finish(work)
    assert (log.values, log.account(1)) == ("abcde", {"lost": 3})


@pytest.mark.parametrize("while_read", [False, True])
def test_a_topic_made_again_without_another_id_is_not_read_as_the_old_one(while_read: bool) -> None:
    log = Logged(ids=False)
    log.produce("abcde")
    log.run(0)
    log.produce("fgh")
    work = log.plan(1)
    if while_read:
        log.meanwhile = lambda: log.remake("lmnopqrstuvwxyz")
        with pytest.raises(TransientError, match="made again or cut while it was read"):
            log.finish(work)
        log.meanwhile = lambda: None
    else:
        log.remake("lmnopqrstuvwxyz")
    with pytest.raises(PolicyError, match="the record at offset 4 differs"):
        log.finish(work)
    log.choose(lost_offsets="record_loss")
    log.finish(work)
    assert (log.values, log.account(1)) == ("abcde", {"lost": 3})


@pytest.mark.parametrize(
    ("again", "message"),
    [
        (True, r"was deleted and made again since run .* was planned.*record_loss"),
        (False, r"was deleted .* and is gone"),
    ],
)
def test_a_topic_deleted_while_a_run_is_unfinished_loses_that_run_only_when_told_to(again: bool, message: str) -> None:
    log = Logged()
    log.produce("abcde")
    work = log.plan(0)
    log.twin.delete_topic("orders")
    if again:
        log.twin.create_topic("orders")
        log.produce("xy", 1)
    with pytest.raises(PolicyError, match=message):
        log.finish(work)
    log.choose(lost_offsets="record_loss", recreated_topic="new_generation")
    log.finish(work)
    progress = log.ledger.progress()
    assert progress
    assert (log.values, log.account(0), progress.lost) == ("", {"lost": 5}, 5)


@pytest.mark.parametrize(("epochs", "produced_then"), [(True, "uvwxyz"), (True, "x"), (False, "xy")])
def test_what_was_seen_and_cut_before_it_was_planned_leaves_the_hours_until_then_incomplete(
    epochs: bool, produced_then: str
) -> None:
    log = Logged(epochs=epochs)
    log.choose(limit=5)
    log.produce("abcdefghij")
    log.run(0)
    assert log.complete_as_of(0) is None
    log.cut(4, produced_then)
    log.run(1)
    planned = log.ledger.plan(hour(1).id)
    assert planned
    assert [p.cut for p in planned.partitions] == [True]
    log.choose()
    log.run(2)
    log.run(3)
    assert log.values == "abcdef" + produced_then
    proofs = [log.ledger.hour(to_hour(hour(number).start)) for number in range(4)]
    assert [proof and proof.status for proof in proofs] == ["incomplete"] * 3 + ["complete"]
    assert proofs[0]
    assert "was cut before run" in str(proofs[0].reason)
    assert [p.cut for p in log.context.ledger.plan(hour(3).id).partitions] == [False]  # type: ignore[union-attr]


def test_a_leader_that_has_all_of_what_was_seen_cuts_nothing() -> None:
    log = Logged()
    log.choose(limit=5)
    log.produce("abcdefghij")
    log.run(0)
    first = log.ledger.plan(hour(0).id)
    log.produce("klm")
    log.cut(3, "xyz")
    log.run(1)
    assert first
    assert log.complete_as_of(0) == first.planned_at


def test_a_backfill_sees_it_too_and_a_rebuild_of_what_saw_it_does_not_say_it_again() -> None:
    log = Logged()
    log.choose(limit=5)
    log.produce("abcdefghij")
    log.run(0)
    log.cut(4, "uvwxyz")
    log.now = DAY + 2 * HOUR + 60_000
    log.finish(plan(log.context, hour(1), "backfill"))
    assert [p.cut for p in log.ledger.plan(hour(1).id).partitions] == [True]  # type: ignore[union-attr]
    log.finish(rebuild_run(log.context, hour(1).id, False))
    assert [p.cut for p in log.ledger.plan(f"{hour(1).id}+r1").partitions] == [False]  # type: ignore[union-attr]


def test_what_retention_overtakes_is_lost_only_when_told_to_and_shown_for_ever() -> None:
    log = Logged()
    log.produce("abcde")
    log.run(0)
    log.produce("fghij", 1)
    work = log.plan(1)
    log.twin.delete_records(NAME, 8)
    with pytest.raises(PolicyError, match=r"retention removed .* orders\[0\] \[5, 10\) before 8 since .*record_loss"):
        log.finish(work)
    log.choose(lost_offsets="record_loss")
    log.finish(work)
    log.choose()
    log.produce("k", 2)
    log.run(2)
    log.produce("l", 3)
    log.run(3)
    assert (log.values, log.account(1)) == ("abcdeijkl", {"archived": 2, "lost": 3})
    # It was known in the hour after the run's, and what is gone may have been of that hour, too.
    proofs = [log.ledger.hour(to_hour(hour(number).start)) for number in range(4)]
    assert [proof and proof.status for proof in proofs] == ["complete", "incomplete", "incomplete", "complete"]


def test_what_the_next_leader_has_again_of_a_run_is_read_and_not_called_absent() -> None:
    log = Logged()
    log.choose(lost_offsets="record_loss")
    log.produce("abcdefgh")
    work, kept = log.plan(0), log.twin.log(NAME)
    kept.start = 5
    # Retention follows at replicas a little later.
    log.meanwhile = lambda: setattr(kept, "start", 2)
    with pytest.raises(
        TransientError, match=r"orders\[0\] has offsets of run .* that it did not have when the run was"
    ):
        log.finish(work)
    log.finish(work)
    assert (log.values, log.account(0)) == ("cdefgh", {"archived": 6, "lost": 2})


def test_a_broker_that_may_lead_no_more_takes_nothing_away_and_lets_what_is_there_be_planned() -> None:
    logged = Logged()
    logged.produce("abc")
    twin: Any = logged.twin
    highs = twin.high_watermarks
    twin.high_watermarks = lambda names: {n: LogEnd(*end[:2], "others say so") for n, end in highs(names).items()}
    logged.run(0)
    twin.high_watermarks = lambda names: {n: LogEnd(1, None, "others say so") for n in names}
    with pytest.raises(TransientError, match="seems to have lost records, but others say so"):
        logged.run(1)
