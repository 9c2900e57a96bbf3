"""Write one partition of a restore's target, exactly once, whatever happened to earlier attempts.

The order matters: become the only writer, read the progress, compare what stands in the target behind it with the
archive's next records, and go on behind these. The log decides; the group with the progress only saves comparing. After
an answer that is not sure the writer is thrown away, and all of it begins again.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from kafka_archiver.messages.errors import PermanentError, TransientError, UncertainError
from kafka_archiver.model.restore import RestorePlan, TargetTopic
from kafka_archiver.model.restore_progress import Place, RestoreProgress
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.restore.digests import payload_bytes
from kafka_archiver.work.restore.lane import Lane, LaneBatch, offsets_of
from kafka_archiver.work.restore.pace import Pace
from kafka_archiver.work.restore.rows import (
    LaneRows,
    Tally,
    cut,
    first_difference,
    first_place,
    last_place,
    shown,
)
from kafka_archiver.work.restore.target import Target, Writer

log = logging.getLogger(__name__)
# How often to begin again without a commit in between.
TRIES = 5
# Waits for the end of another producer's open transaction, and how many.
PAUSE, PAUSES = 0.2, 75

# How the transactional ids of restores begin.
TRANSACTIONAL_ID = "kafka-archiver-restore-"


class StoppedError(TransientError):
    """The process was asked to end. What was written is committed."""


def transactional_id(topic_id: str, partition: int) -> str:
    """Return the transactional id of every restore's writer of a partition: competing restores fence each other."""
    return f"{TRANSACTIONAL_ID}{topic_id}-{partition}"


@dataclass
class PartitionWriter:
    """Writes the records of a lane.

    `stop`: returns True if the process shall end. `clock`: seconds. `sleep`: waits for others.
    """

    target: Target
    lane: Lane
    pace: Pace
    stop: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self._commits = 0

    @property
    def plan(self) -> RestorePlan:
        """The frozen plan."""
        return self.lane.plan

    @property
    def name(self) -> TopicPartition:
        """The target partition."""
        return self.lane.target

    def run(self) -> RestoreProgress:
        """Write what is not written yet. Returns the progress at the end of the lane.

        :raises PermanentError: something else stands in the target, or a record cannot be written.
        :raises TransientError: the brokers do not answer, or another attempt has taken over.
        """
        failures = 0
        while True:
            before = self._commits
            try:
                return self._attempt()
            except UncertainError as error:
                failures = 1 if self._commits > before else failures + 1
                if failures == TRIES:
                    raise
                log.warning("%s: %s; comparing the target's log, then going on", self.name, error)

    def _attempt(self) -> RestoreProgress:
        session, rows = self.begin()
        try:
            for batch in rows.batches():
                session.take(batch, is_waiting=batch is None)
            return session.finish()
        finally:
            session.writer.close()

    def begin(self) -> "tuple[Session, LaneRows]":
        """Become the only writer, and compare the log. Returns the transactions, to close, and what is not written.

        Raises as `run`, and UncertainError if an answer is not sure.
        """
        topic = require_topic(self.target, self.plan, self.name)
        writer = self.target.writer(transactional_id(topic.topic_id, self.name.partition), self.name)
        try:
            # Again: the topic may have been made anew before the writer was the only one.
            require_topic(self.target, self.plan, self.name)
            progress, rows, end = self._resumed(topic)
            return Session(self, writer, Tally.of(progress), end), rows
        except BaseException:
            writer.close()
            raise

    def _resumed(self, topic: TargetTopic) -> tuple[RestoreProgress, LaneRows, int]:
        """Return the progress, the records behind it, and the end of the log, once the log was compared."""
        position = self.target.progress(self.plan.group, self.name)
        progress, start = RestoreProgress(plan=self.plan.digest), self.plan.start(self.name)
        if position:
            stamped = RestoreProgress.from_stamp(position.stamp)
            if stamped is None or stamped.plan != self.plan.digest:
                raise PermanentError(
                    f"group {self.plan.group} has an offset of {self.name} that is not of this restore: somebody moved "
                    "it. Delete the group: the restore then compares the target's log with the archive from its start"
                )
            progress, start = stamped, position.offset
        end = settled_end(self.target, self.name, self.sleep)
        if end < start:
            raise lost_log(self.name, end, start)
        rows = LaneRows(self.lane, progress.place)
        if start < end:
            progress = self._adopted(progress, rows, Range(start, end), topic)
        return progress, rows, end

    def _adopted(
        self, progress: RestoreProgress, rows: LaneRows, offsets: Range, topic: TargetTopic
    ) -> RestoreProgress:
        """Return the progress behind the records in the target, which must be the archive's next ones."""
        adopted, tally = 0, Tally.of(progress)
        for batch in self.target.read(self.name, offsets, "read_committed"):
            done = 0
            for piece in rows.take(batch.num_rows):
                here = batch.slice(done, piece.records.num_rows)
                if difference := first_difference(here, piece.records, topic.append_time):
                    row, column = difference
                    at, place = int(offsets_of(here)[row]), first_place(piece.sliced(row))
                    raise foreign_record(self.name, at, self._source(place), column, shown(here, piece, row, column))
                tally.add(piece, int(payload_bytes(piece.records).sum()))
                done += piece.records.num_rows
            if done < batch.num_rows:
                at = int(offsets_of(batch)[done])
                raise foreign_record(self.name, at, "the end of what the plan selects", "record", "another record")
            adopted += done
        if adopted:
            log.info("%s: %d records behind the progress are the archive's: going on behind them", self.name, adopted)
        return tally.progress

    def _source(self, place: Place) -> str:
        return f"{self.lane.sources[place.source]} offset {place.offset}"


@dataclass
class Session:
    """The transactions of one writer. `end`: the end of the log; behind a commit, of the records and the marker."""

    owner: PartitionWriter
    writer: Writer
    tally: Tally
    end: int
    # Of the open transaction.
    began: float | None = None
    sent: int = 0
    size: int = 0
    last: Place | None = None

    def take(self, batch: LaneBatch | None, is_waiting: bool) -> None:
        """Write the next records, and commit now and then. None: the record before is complete.

        :param is_waiting: the next records may take a while.
        """
        if batch is None:
            self.commit_if_due(is_waiting)
            return
        pace = self.owner.pace
        for piece in cut(batch, pace.most_rows, pace.most_bytes):
            if self.is_boundary(piece.batch):
                self.commit_if_due(is_waiting=False, wait=pace.wait)
            self.send(*piece)

    def make_way(self, batch: LaneBatch) -> None:
        """Commit what is due before records are sent, also if none of them is of this partition."""
        if self.is_boundary(batch):
            self.commit_if_due(is_waiting=False, wait=self.owner.pace.wait)

    def finish(self) -> RestoreProgress:
        """Commit what is not committed yet. No `take` may follow."""
        if self.began is not None:
            self.commit()
        return self.tally.progress

    def is_boundary(self, batch: LaneBatch) -> bool:
        """Return True if a transaction may end before these records: rows of one record stay together."""
        return self.last != first_place(batch)

    def send(self, batch: LaneBatch, size: int) -> None:
        self.owner.pace.before(batch.records.num_rows, size)
        if self.began is None:
            self.began = self.owner.clock()
        self.writer.send(batch.records)
        self.sent, self.size, self.last = self.sent + batch.records.num_rows, self.size + size, last_place(batch)
        self.tally.add(batch, size)

    def commit_if_due(self, is_waiting: bool, wait: float = 0.0) -> None:
        """Commit a transaction that is large or old enough, or all before a wait and if the process shall end.

        :param is_waiting: for how long is not known. The brokers abort a transaction that is open for too long.
        :param wait: seconds until more may be sent.
        """
        stopping, limits = self.owner.stop(), self.owner.plan.limits
        if self.began is not None:
            age = self.owner.clock() - self.began + wait
            is_old = age >= limits.transaction_seconds
            if stopping or is_waiting or is_old or self.size >= limits.transaction_bytes:
                self.commit()
        if stopping:
            raise StoppedError(f"{self.owner.name}: stopped after a commit; the next attempt goes on from there")

    def commit(self) -> None:
        owner, name = self.owner, self.owner.name
        written = self.writer.commit(owner.plan.group, self.tally.progress.to_stamp())
        owner._commits += 1
        if written.start < self.end:
            raise lost_log(name, written.start, self.end)
        if written.start > self.end:
            gap = owner.target.read(name, Range(self.end, written.start), "read_committed")
            if records := next((batch for batch in gap if batch.num_rows), None):
                raise another_producer(name, int(offsets_of(records)[0]))
        if written.size != self.sent:
            raise another_producer(name, written.start)
        # Behind the last record is the marker of the commit.
        self.end = written.end + 1
        self.began, self.sent, self.size, self.last = None, 0, 0, None


def require_topic(target: Target, plan: RestorePlan, name: TopicPartition) -> TargetTopic:
    """Return the plan's entry of a target topic.

    :raises PermanentError: the topic is gone, or another one of its name.
    """
    [topic] = (topic for topic in plan.topics if topic.topic == name.topic)
    current = target.topic_id(name.topic)
    if current != topic.topic_id:
        state = "is gone" if current is None else f"is another one now (id {current}, planned {topic.topic_id})"
        raise PermanentError(
            f"the target's topic {name.topic} {state}: somebody deleted it. Begin a restore of another name"
        )
    return topic


def settled_end(target: Target, name: TopicPartition, sleep: Callable[[float], None]) -> int:
    """Return the end of a partition's log, once no transaction is open in it.

    :raises TransientError: another producer's transaction stays open.
    """
    for _ in range(PAUSES):
        stable, high = target.ends(name)
        if stable == high:
            return high
        sleep(PAUSE)
    raise TransientError(
        f"{name} has an open transaction of another producer from offset {stable} on: end that producer (Kafka's tool: "
        "`kafka-transactions.sh --find-hanging`); the next attempt looks again"
    )


def lost_log(name: TopicPartition, end: int, written: int) -> PermanentError:
    """Return the error for a log that ends before what the restore has written."""
    return PermanentError(
        f"{name} ends at offset {end}, and the restore has written up to {written}: the topic has lost records (an "
        "unclean leader election), or somebody deleted it and it was made anew. Restore into a new topic"
    )


def foreign_record(name: TopicPartition, offset: int, expected: str, column: str, values: str) -> PermanentError:
    """Return the error for a record in the target that the restore did not write."""
    return PermanentError(
        f"{name} offset {offset} is not a record of this restore: expected {expected}; its {column} is {values}. "
        "Another producer writes to the target: stop it, and restore into a new topic"
    )


def another_producer(name: TopicPartition, offset: int) -> PermanentError:
    """Return the error for records of another producer between those of the restore."""
    return PermanentError(
        f"another producer writes to {name}: its records are at or behind offset {offset}, between those of the "
        "restore. Stop it, and restore into a new topic"
    )
