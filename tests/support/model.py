"""The model test: random sequences of all that producers, operators, retention and death can do, and one oracle.

`Model` is a state machine of hypothesis; its world is what it runs on: the twins in memory, or real servers.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kafka_archiver.config import Archive
from kafka_archiver.errors import ArchiverError, IntegrityError, TransientError
from kafka_archiver.intervals import Interval, from_ms
from kafka_archiver.ledger import Ledger
from kafka_archiver.plan import PartitionPlan, Plan
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.spark.finish import Choice
from kafka_archiver.spark.job import ArchiveJob
from kafka_archiver.steps.close_hours import close_hours
from kafka_archiver.steps.commit import commit
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.plan import Origin, Work, plan
from kafka_archiver.steps.rebuild import rebuild_hour, rebuild_run
from kafka_archiver.steps.verify import verify
from kafka_archiver.writer.result import Limits
from tests.support.draws import ALL_GOES, FATES, POLICIES, POLICY_NAMES, RECORDS, SOURCE, STORE, YEAR_9999
from tests.support.interrupt import Fate, Interrupted, InterruptedEngine, Killed
from tests.support.oracle import Oracle, Snapshot
from tests.support.topics import HOUR, Record
from tests.support.worlds import TwinWorld, World

MINUTE = timedelta(minutes=1)
# What errors say, and what has to have happened before: one of these.
EXCUSES = (
    (r"stands at \d+ in .*but the ledger says it is archived up to", "group|recreated"),
    (r"has no offset for .*but the ledger says", "group|recreated"),
    (r"was deleted( and made again)?", "recreated"),
    (r"past the end of the log", "group|recreated"),
    (r"are gone: the archive stands at", "retention|group|recreated"),
    (
        r"retention (removed|overtook)|Kafka does not have the start|Kafka has removed everything|Kafka has only",
        "retention|recreated|group",
    ),
    (r"Kafka does not have the records of", "retention|recreated"),
    (r"is not one JSON document|contains a newline", "bad"),
    (r"was written by an earlier attempt", "retention|recreated"),
    (r"cannot be rebuilt", "retention|compaction|recreated"),
    (r"before the end of|it does not exist", "recreated"),
    (
        r"is not settled yet|has no records of hour|does not exist; only what is settled|can only go on as it began",
        "always",
    ),
)


@dataclass
class Statistics:
    """What a run of the model has done, over all sequences."""

    sequences: int = 0
    steps: int = 0
    attempts: int = 0
    kills: int = 0
    overtaken: int = 0
    refusals: dict[str, int] = field(default_factory=dict)
    records: int = 0
    checks: int = 0


def step(**draws: Any) -> Callable[[Callable[..., None]], Any]:
    """A rule that is counted."""

    def counted(action: Callable[..., None]) -> Any:
        @functools.wraps(action)
        def count(self: "Model", *args: Any, **kwargs: Any) -> None:
            self.statistics.steps += 1
            action(self, *args, **kwargs)

        return rule(**draws)(count)

    return counted


class Model(RuleBasedStateMachine):
    """One archive and its Kafka."""

    world_of: ClassVar[Callable[[Callable[[], int]], Any]] = TwinWorld
    directory: ClassVar[Path | None] = None
    statistics: ClassVar[Statistics] = Statistics()

    def __init__(self) -> None:
        super().__init__()
        self.world: World = type(self).world_of(lambda: self.now_ms)
        self.now_ms = self.world.epoch
        self.twin, self.store = self.world.twin, self.world.store
        self.topics: list[str] = []
        self.open: set[str] = set()
        self.strange: set[str] = set()
        self.group_touched = False
        self.moved: dict[TopicPartition, int] = {}
        self.next_hour = 0
        self.produced = 0
        self.intervals: list[Interval] = []
        self.statistics.sequences += 1

    # How a sequence begins, and what producers do.

    @initialize(
        store=STORE,
        source=SOURCE,
        partitions=st.lists(st.integers(1, 2), min_size=1, max_size=2),
        null=st.sampled_from(["archive", "skip"]),
    )
    def begin(self, store: dict[str, Any], source: dict[str, Any], partitions: list[int], null: str) -> None:
        self.topics = [f"{self.world.prefix}t{n}" for n in range(len(partitions))]
        for topic, count in zip(self.topics, partitions, strict=True):
            self.twin.create_topic(topic, count)
        self.source, self.null_value = {**source, "topics": self.topics}, null
        if source["start"] not in ("earliest", "latest"):
            self.source["start"] = from_ms(self.world.epoch - HOUR).isoformat()
        self.store_settings = store
        self.archive_name = "m"
        self.ledger = Ledger(self.store, self.archive_name)
        self.oracle = Oracle(self.twin, self.store, self.ledger)

    def archive(self, policies: str) -> Archive:
        return Archive.model_validate(
            {
                "archive": self.archive_name,
                "source": {"group": f"{self.world.prefix}g", **self.source},
                "store": {
                    "url": self.store.url if self.store.url.startswith("s3") else "memory://m",
                    **self.store_settings,
                },
                "policies": {"null_value": self.null_value, **dict(zip(POLICY_NAMES, policies.split(), strict=True))},
            }
        )

    @property
    def group(self) -> str:
        return f"{self.world.prefix}g"

    def names(self) -> list[TopicPartition]:
        return [name for topic in self.twin.topics(self.topics) for name in topic.names]

    def pick(self, number: int) -> TopicPartition:
        names = self.names()
        return names[number % len(names)]

    @step(topic=st.integers(0, 1), records=RECORDS, transaction=st.sampled_from([None, None, "x", "y"]))
    def produce(
        self, topic: int, records: list[tuple[int, Any, bytes | None, str | None]], transaction: str | None
    ) -> None:
        name = self.topics[topic % len(self.topics)]
        partitions = self.twin.topics([name])[0].partitions
        made = [self._record(p % partitions, when, key, kind) for p, when, key, kind in records]
        self.twin.produce(name, made, transaction)
        self.statistics.records += len(made)
        if transaction:
            self.open.add(transaction)

    def _record(self, partition: int, when: Any, key: bytes | None, kind: str | None) -> Record:
        self.produced += 1
        n = self.produced
        values = {"good": b'{"n": %d}' % n, "two lines": b'{"n":\n%d}' % n, "bad": b"bad\n%d" % n, None: None}
        if kind == "bad":
            self.strange.add("bad")
        timestamp = {"1970": 1, "9999": YEAR_9999}.get(when) or self.now_ms // HOUR * HOUR + when
        return Record(partition, timestamp, values[kind], key, [("h", b"%d" % n), ("h", None)] if n % 3 == 0 else ())

    @precondition(lambda self: self.open)
    @step(which=st.integers(0, 1), commit=st.booleans())
    def end_transaction(self, which: int, commit: bool) -> None:
        transaction = sorted(self.open)[which % len(self.open)]
        self.open.discard(transaction)
        self.twin.end_transaction(transaction, commit)

    # What operators and retention do.

    @step(which=st.integers(0, 3), back=st.integers(0, 4))
    def compact(self, which: int, back: int) -> None:
        name = self.pick(which)
        self.twin.compact(name, self.twin.log(name).high - back)
        self.strange.add("compaction")

    @step(which=st.integers(0, 3), back=st.integers(0, 6))
    def retention(self, which: int, back: int) -> None:
        name = self.pick(which)
        before = self.twin.log(name).end("read_committed") - back
        if before > self.twin.log(name).start:
            self.twin.delete_records(name, before)
            self.strange.add("retention")

    @step(topic=st.integers(0, 1))
    def grow(self, topic: int) -> None:
        name = self.topics[topic % len(self.topics)]
        if self.twin.topics([name])[0].partitions < 3:
            self.twin.add_partition(name)

    @precondition(lambda self: self.produced % 3 == 0)
    @step(topic=st.integers(0, 1), records=st.one_of(st.just([]), RECORDS))
    def recreate(self, topic: int, records: list[Any]) -> None:
        name = self.topics[topic % len(self.topics)]
        for transaction in sorted(self.open):
            self.twin.end_transaction(transaction, False)
        self.open.clear()
        self.twin.delete_topic(name)
        self.twin.create_topic(name, 1)
        self.strange.add("recreated")
        self.group_touched = True
        self.moved = {n: o for n, o in self.moved.items() if n.topic != name}
        if records:
            self.produce(self.topics.index(name), records, None)

    @step(which=st.integers(0, 3), by=st.integers(-4, 4))
    def move_group(self, which: int, by: int) -> None:
        name = self.pick(which)
        stands = self.world.cluster.committed(self.group, [name])[name] or 0
        offset = max(0, min(stands + by, self.twin.log(name).high + 2))
        self.world.cluster.move_group(self.group, {name: offset})
        self._touched(name, offset)

    def _touched(self, name: TopicPartition, offset: int) -> None:
        self.moved[name] = offset
        self.group_touched = True
        self.strange.add("group")

    @precondition(lambda self: self.produced % 3 == 1)
    @step()
    def delete_group(self) -> None:
        self.twin.delete_group(self.group)
        self.moved.clear()
        self.group_touched = True
        self.strange.add("group")

    @step(store=STORE)
    def reconfigure(self, store: dict[str, Any]) -> None:
        self.store_settings = store

    # Runs.

    def interval(self, number: int) -> Interval:
        start = from_ms(self.world.epoch + number * HOUR)
        return Interval(start=start, end=start + timedelta(hours=1))

    @step(
        policies=POLICIES,
        fates=FATES,
        again=st.booleans(),
        give_up=st.booleans(),
        skipped=st.sampled_from([0, 0, 0, 0, 1]),
    )
    def scheduled(self, policies: str, fates: list[Any], again: bool, give_up: bool, skipped: int) -> None:
        interval = self.interval(self.next_hour + skipped)
        self.next_hour += 1 + skipped
        self._go(interval, "scheduled", policies, fates, again, give_up)

    @precondition(lambda self: self.intervals)
    @step(which=st.integers(0, 9), policies=POLICIES, fates=FATES, again=st.booleans(), give_up=st.booleans())
    def clear(self, which: int, policies: str, fates: list[Any], again: bool, give_up: bool) -> None:
        self._go(self.intervals[which % len(self.intervals)], "scheduled", policies, fates, again, give_up)

    @step(back=st.integers(1, 6), policies=POLICIES, fates=FATES, again=st.booleans(), give_up=st.booleans())
    def backfill(self, back: int, policies: str, fates: list[Any], again: bool, give_up: bool) -> None:
        self._go(self.interval(self.next_hour - back), "backfill", policies, fates, again, give_up)

    @precondition(lambda self: self.intervals)
    @step(
        which=st.integers(0, 9),
        hour=st.booleans(),
        keep=st.booleans(),
        policies=POLICIES,
        fates=FATES,
        again=st.booleans(),
        give_up=st.booleans(),
    )
    def rebuild(
        self, which: int, hour: bool, keep: bool, policies: str, fates: list[Any], again: bool, give_up: bool
    ) -> None:
        interval = self.intervals[which % len(self.intervals)]

        def planned(context: Context) -> Work:
            make = (
                (lambda now: rebuild_hour(context, interval.start, now, keep))
                if hour
                else (lambda now: rebuild_run(context, interval.id, now, keep))
            )
            return make(self.now())

        self._go(interval, "scheduled", policies, fates, again, give_up, planned)

    def now(self) -> datetime:
        """Every look at the clock is a second later."""
        self.now_ms += 1000
        return from_ms(self.now_ms)

    def _go(
        self,
        interval: Interval,
        origin: Origin,
        policies: str,
        fates: Sequence[tuple[str, int]],
        again: bool,
        give_up: bool,
        planned: Callable[[Context], Work] | None = None,
    ) -> None:
        """Attempts until one succeeds, each with its fate.

        `again`: a retry begins with the plan, as a cleared run does, else with the step that failed.
        `give_up`: nobody retries once the fates have come true.
        """
        # A minute past the interval's end, or later.
        self.now_ms = max(self.now_ms, (interval.end + MINUTE - from_ms(0)) // timedelta(milliseconds=1))
        archive = self.archive(policies)
        make = planned or (lambda context: plan(context, interval, origin, self.now()))
        progress: list[Any] = []
        for how, at in [*fates, ("none", 0)]:
            if how == "none" and fates and give_up:
                break
            if again:
                progress.clear()
            fate = self._fate(how, at, archive, make, interval)
            try:
                self._attempt(archive, make, fate, progress, interval)
            except Killed:
                self.statistics.kills += 1
                continue
            except ArchiverError as error:
                if isinstance(error, TransientError) and fate.happened and fate.how == "meanwhile":
                    continue
                self._refused(error)
                break
            finally:
                self._check()
            self._settled(archive)
            break

    def _check(self) -> None:
        if "compaction" in self.strange:
            self.twin.refresh()
        self.oracle.check()

    def _fate(self, how: str, at: int, archive: Archive, make: Callable[[Context], Work], interval: Interval) -> Fate:
        def attempt() -> None:
            try:
                self._attempt(archive, make, Fate(), [], interval)
            except TransientError:
                pass
            except ArchiverError as error:
                self._refused(error)

        meanwhile: dict[str, Callable[[], None]] = {
            "attempt": attempt,
            "compact": lambda: self.compact(at, 0),
            "retention": lambda: self.retention(at, 1),
            "produce": lambda: self.produce(0, [(0, 0, b"a", "good"), (1, -HOUR, b"b", "good")], None),
            "recreate": lambda: self.recreate(0, [(0, 0, b"a", "good")] * 6),
        }
        if how in meanwhile:
            return Fate(at, "meanwhile", meanwhile[how])
        return Fate(at, how)  # type: ignore[arg-type]

    def _attempt(
        self, archive: Archive, make: Callable[[Context], Work], fate: Fate, progress: list[Any], interval: Interval
    ) -> None:
        self.statistics.attempts += 1
        store = Interrupted(self.store, fate)
        context = Context(archive, Interrupted(self.world.cluster, fate), store, Ledger(store, archive.archive))
        if not progress:
            progress.append(self._plan(context, make, interval))
        work: Work = progress[0]
        engine = InterruptedEngine(
            self.world.read, store, Limits(upload_threads=1, spill_directory=self.directory), fate
        )
        choice = Choice(archive.policies.lost_offsets, archive.policies.bad_record)
        job = ArchiveJob(context.cluster, store, context.ledger, engine, choice)

        def read() -> None:
            for run in work.archive:
                job.run(run)

        steps = [
            read,
            lambda: verify(context, work.runs),
            lambda: commit(context, work.runs, self.now()),
            lambda: close_hours(context, work.runs),
        ]
        for step in steps[len(progress) - 1 :]:
            step()
            progress.append(step)
        self.statistics.overtaken += fate.happened

    def _plan(self, context: Context, make: Callable[[Context], Work], interval: Interval) -> Work:
        seen = self._snapshot()
        known, moved = set(self.oracle.snapshots), dict(self.moved)
        try:
            return make(context)
        finally:
            for run, found in self.ledger.runs().items():
                if "plan" in found and run not in known and run not in self.oracle.snapshots:
                    self.oracle.snapshots[run] = [s.afterwards() for s in seen]
                    made = self.ledger.plan(run)
                    assert made is not None
                    self._check_beginning(made, seen, moved)
                    if made.moves_group:
                        self.group_touched = False
            if interval not in self.intervals and interval.id in self.oracle.snapshots:
                self.intervals.append(interval)

    def _snapshot(self) -> list[Snapshot]:
        return [
            Snapshot.of(topic.id, number, log)
            for topic in self.twin.topics(self.topics)
            for number, log in enumerate(self.twin.logs[topic.id])
        ]

    def _check_beginning(self, made: Plan, seen: Sequence[Snapshot], moved: dict[TopicPartition, int]) -> None:
        """A scheduled run starts where the one before ended, or where a policy lets it start."""
        if not made.moves_group:
            return
        earlier = [
            p for run in self.oracle.snapshots if run != made.run and (p := self.ledger.plan(run)) and p.moves_group
        ]
        starts = {(s.topic_id, s.partition): s.start for s in seen}
        for now in made.partitions:
            before = [p for e in earlier for p in e.partitions if p.name == now.name]
            log_start = starts.get((now.topic_id, now.partition), 0)
            if not before:
                if not earlier and not moved and not self.strange & {"group", "recreated"}:
                    self._check_first(now, seen)
                continue
            newest = max(p.generation for p in before)
            last = [p for p in before if p.generation == newest]
            where = f"run {made.run}: {now.name} of generation {now.generation} starts at {now.start}"
            assert now.generation >= newest, where
            if now.generation == newest:
                assert {p.topic_id for p in last} == {now.topic_id}, where
                assert now.start == max(p.end for p in last), f"{where}, the run before ended at {last}"
            else:
                allowed = {log_start, now.log_start, moved.get(now.name)}
                assert now.start in allowed, f"{where}, expected one of {allowed}"

    def _check_first(self, now: PartitionPlan, seen: Sequence[Snapshot]) -> None:
        """An archive begins where `source.start` says."""
        [s] = [s for s in seen if (s.topic_id, s.partition) == (now.topic_id, now.partition)]
        expected = {"earliest": now.log_start, "latest": now.log_end}.get(self.source["start"])
        allowed = {now.log_start} if expected is None and self._may_hide(s, now.log_start) else set()
        if expected is None:
            expected = min(s.place(self.world.epoch - HOUR), now.log_end)
        allowed.add(max(expected, now.log_start))
        found = f"{now.name} begins at {now.start} with start: {self.source['start']}, expected one of {allowed}"
        assert now.start in allowed, found

    def _may_hide(self, seen: Snapshot, log_start: int) -> bool:
        """Whether a record that is gone may make the broker look in the wrong segment for the beginning."""
        return any(entry.timestamp >= self.world.epoch - HOUR for entry in seen.log.entries[:log_start])

    def _plans(self) -> dict[str, Plan]:
        return {run: p for run in self.ledger.runs() if (p := self.ledger.plan(run))}

    def _refused(self, error: ArchiverError) -> None:
        """Whether anything has happened that may lead to this error."""
        text = str(error)
        reason = next((reason for pattern, reason in EXCUSES if re.search(pattern, text)), None)
        refusals = self.statistics.refusals
        refusals[reason or "?"] = refusals.get(reason or "?", 0) + 1
        if reason is None or (reason != "always" and not self.strange & set(reason.split("|"))):
            raise AssertionError(f"nothing explains this error ({self.strange}): {text}") from error
        if isinstance(error, IntegrityError) and (found := re.match(r"(\S+) was written by an earlier attempt", text)):
            # What the message says to do.
            self.store.delete(found[1])

    def _settled(self, archive: Archive) -> None:
        """After a run that succeeded, ledger and group say the same."""
        self.statistics.checks += 1
        progress = self.ledger.progress()
        assert progress is not None
        ids = self.twin.topic_ids(self.topics)
        stands = {p.name: p.next for p in progress.partitions if p.topic_id == ids[p.topic] and p.next is not None}
        unfinished = {run for run, p in self._plans().items() if p.supersedes is None} - set(progress.runs)
        if not self.group_touched and not unfinished:
            found = self.world.cluster.committed(self.group, stands)
            assert found == stands, f"the group stands at {found}, the ledger at {stands}"

    def teardown(self) -> None:
        try:
            if self.topics:
                self._finish_everything()
        finally:
            for transaction in sorted(self.open):
                self.twin.end_transaction(transaction, False)
            self.world.close()

    def _finish_everything(self) -> None:
        """One run after the other until nothing is left; then all of every log has been archived or has a reason."""
        for transaction in sorted(self.open):
            self.twin.end_transaction(transaction, True)
        self.open.clear()
        archive = self.archive(ALL_GOES)
        for _ in range(100):
            interval = self.interval(self.next_hour)
            self.next_hour += 1
            self._go(interval, "scheduled", ALL_GOES, [], True, False)
            progress = self.ledger.progress()
            if progress is None or interval.id not in progress.runs:
                continue
            ends = self.world.cluster.log_ends(self.names(), self.source["isolation"])
            stands = {name: p.next if (p := progress.partition(name)) else None for name in ends}
            if stands == ends:
                break
        else:
            raise AssertionError(f"100 runs and not at the end: {stands} instead of {ends}")
        committed = {run for run, found in self.ledger.runs().items() if "commit" in found}
        assert set(progress.runs) == committed
        assert archive.archive == self.archive_name
