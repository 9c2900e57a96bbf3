"""The model test: random sequences of actions by producers, operators, retention, clocks and kills, and one oracle.

`Model` is a hypothesis state machine. Its world is the environment: twins in memory, or real servers. Attempts are
actors: each may stop before any call, be overtaken by others, continue hours later, or die.
"""

import functools
import itertools
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kafka_archiver.audit.inspection import audit
from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.encryption import Keyring
from kafka_archiver.encryption.masters import LocalMaster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ArchiverError, FencedError, IntegrityError, TransientError
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.set_aside import OffsetsAside
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.values.intervals import Interval, from_ms, to_ms
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.archive.step import ArchiveStep
from kafka_archiver.work.backlog import archive_runs
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.data_keys import rotate_data_keys
from kafka_archiver.work.dead_letters import replay_letters
from kafka_archiver.work.plan import Fill, Origin, PlannedWork, count_left_out, plan
from kafka_archiver.work.rebuild import rebuild_hour, rebuild_run
from kafka_archiver.work.repair import (
    derive_documents,
    find_repairs,
    give_up_offsets,
    record_lost,
    restore_document,
    write_again,
    write_sidecars,
)
from kafka_archiver.work.verify import verify
from tests.support import mapped
from tests.support.actors import Actor, Watched, WatchedEngine
from tests.support.draws import (
    ALL_GOES,
    CHANGES,
    CRASHES,
    FATES,
    MENDED,
    POLICIES,
    POLICY_NAMES,
    RECORDS,
    SKEWS,
    SOURCE,
    STORE,
    TIMES_OF_DAY,
    TIMESTAMPS,
    TRANSFORMS,
    Change,
    fitting,
)
from tests.support.model_restore import WITHOUT_OFFSETS, Restored, request_of
from tests.support.oracle import Oracle
from tests.support.outcomes import is_deadly
from tests.support.topics import HOUR, Record
from tests.support.worlds import TwinWorld, World

MINUTE = timedelta(minutes=1)
# What happens to an attempt, and before which of its calls.
Fate = tuple[str | Change, int]
# What is drawn of an archive, and of what happens to it.
BEGIN: dict[str, Any] = {
    "store": STORE,
    "source": SOURCE,
    "partitions": st.lists(st.integers(1, 2), min_size=1, max_size=2),
    "null": st.sampled_from(["archive", "skip"]),
    "etags": st.sampled_from(["MD5s", "MD5s", "foreign", "neither"]),
    "disorder": st.sampled_from([None, None, "10s", "90m"]),
    "ordered": st.booleans(),
    "timestamp": TIMESTAMPS,
    "transform": TRANSFORMS,
    "crashes": CRASHES,
}
ISOLATION = SOURCE.map(lambda source: source["isolation"])
# A pattern of an error message, and the events of which at least one must have happened before.
EXCUSES = (
    (r"stands at \d+ in .*but the ledger says it is archived up to", "group|recreated"),
    (r"has no offset for .*but the ledger says", "group|recreated"),
    (r"was deleted( and made again)?", "recreated"),
    (r"past the end of the log", "group|recreated"),
    (r"are gone: the archive stands at", "retention|group|recreated"),
    (
        r"retention (removed|overtook)|not have the start|Kafka has removed everything|Kafka has only",
        "retention|recreated|group|leader",
    ),
    (r"Kafka does not have the records of", "retention|recreated"),
    (r"is not one JSON document|contains a newline|contains the separator|cannot be decoded", "bad"),
    (r"no process survives this record", "deadly"),
    (r"Spark raised an error for this record", "sql"),
    (r"raised ValueError|ValueError: no|is null or missing|are null or missing", "always"),
    (r"was written by an earlier attempt", "retention|recreated"),
    (r"is not rebuilt: ", "always"),
    (r"cannot be rebuilt", "retention|compaction|recreated|group|isolation|given up"),
    # A mapper leaves records out, or a format cannot hold them.
    (r"is not rebuilt: [\d,]+ records would be archived in the place of", "reconfigured"),
    (r"has been replaced by another run meanwhile", "always"),
    (r"before the end of|it does not exist", "recreated|isolation|leader"),
    (r"may lead no more|it is the leader no more|brokers knew it a moment ago", "leader"),
    (r"is missing or not what the manifest says|is not what its manifest says|has no manifest", "destroyed"),
    (r"is neither missing nor damaged", "destroyed"),
    (r"was given up by .*, and has replaced nothing", "always"),
    (r"is not final yet, and only a final run|has no final run|was changed by others meanwhile", "always"),
    (r"is gone: another attempt has finished the replay|another attempt has ended run", "always"),
    (r"names another one: add the earlier secret", "rotated"),
    (r"cannot be given up: run \S+ (has|reads nothing)|archive \S+ has no run", "given up"),
    (r"that record ended no process when it was written", "deadly"),
    (r"has changed since the run was planned", "code"),
    (r"and `source.max_value_bytes` was", "reconfigured"),
    (r"`from` of a fill needs records that are filed by Kafka's timestamps", "reconfigured"),
    (r"has no records of hour|run \S+ of archive \S+ does not exist", "always"),
)


@dataclass
class Statistics:
    """Counts over all sequences of a model run."""

    sequences: int = 0
    steps: int = 0
    attempts: int = 0
    kills: int = 0
    frozen: int = 0
    woken: int = 0
    refusals: dict[str, int] = field(default_factory=dict)
    records: int = 0
    complete: int = 0
    written_again: int = 0
    lost: int = 0
    replayed: int = 0
    restores: int = 0


def step(**draws: Any) -> Callable[[Callable[..., None]], Any]:
    """A counted rule."""

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
        self.now_ms = 0
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
        self.destroyed: set[str] = set()
        self.intervals: list[Interval] = []
        self.frozen: list[Actor] = []
        self.restores: list[Restored] = []
        self.restoring: dict[Actor, Restored] = {}
        # The names of the last attempt's calls.
        self.calls: list[str] = []
        self.statistics.sequences += 1

    # The begin of a sequence, and actions of producers.

    @initialize(**BEGIN)
    def begin(
        self,
        store: dict[str, Any],
        source: dict[str, Any],
        partitions: list[int],
        null: str,
        etags: str = "MD5s",
        disorder: str | None = None,
        ordered: bool = False,
        timestamp: dict[str, Any] | None = None,
        transform: dict[str, Any] | None = None,
        crashes: Sequence[int] = (0,),
    ) -> None:
        self.crashes = itertools.cycle(crashes)
        self.world.choose_etags(etags)
        self.timestamp, self.transform = timestamp or {}, transform or {}
        if disorder and not self.timestamp:
            self.timestamp = {"max_disorder": disorder}
        # Whether what the archive declares is true.
        self.most_late = {"10s": 10_000, "90m": 90 * 60_000}.get(str(disorder)) if ordered else None
        self.topics = [f"{self.world.prefix}t{n}" for n in range(len(partitions))]
        for topic, count in zip(self.topics, partitions, strict=True):
            self.twin.create_topic(topic, count)
        self.source, self.null_value, self.changed_code = {**source, "topics": self.topics}, null, "fail"
        mapped.put_code("")
        if source["start"] not in ("earliest", "latest"):
            self.source["start"] = from_ms(self.world.epoch - HOUR).isoformat()
        self.store_settings = store
        self.archive_name = "m"
        self.masters = [b"1" * 32]
        self.ledger = Ledger(self.store, self.archive_name)
        self.oracle = Oracle(self.twin, self.store, self.ledger, master=self.masters[0])

    def archive(self, policies: str, chosen: Mapping[str, str] | None = None) -> Archive:
        """The YAML. `policies`: of most of them. `chosen`: other choices."""
        archive = fitting(self.store_settings, self.source["value"], self.timestamp, self.transform)
        return Archive.model_validate(
            {
                "archive": self.archive_name,
                "source": {**self.source, "group": self.group, "settle": 0, "value": archive["value"]},
                "timestamp": archive["timestamp"],
                "transform": archive["transform"],
                "store": {
                    "url": self.store.url if self.store.url.startswith("s3") else "memory://m",
                    **archive["store"],
                },
                "policies": {
                    "null_value": self.null_value,
                    "changed_code": self.changed_code,
                    **dict(zip(POLICY_NAMES, policies.split(), strict=True)),
                    **(chosen or {}),
                },
            }
        )

    @property
    def group(self) -> str:
        return str(self.source.get("group") or f"{self.world.prefix}g")

    def names(self) -> list[TopicPartition]:
        return [name for topic in self.twin.topics(self.topics) for name in topic.names]

    def pick(self, number: int) -> TopicPartition:
        names = self.names()
        return names[number % len(names)]

    @step(topic=st.integers(0, 1), records=RECORDS, transaction=st.sampled_from([None, None, "x", "y"]))
    def produce(
        self, topic: int, records: list[tuple[int, Any, bytes | None, str | None]], transaction: str | None
    ) -> None:
        self.tick()
        name = self.topics[topic % len(self.topics)]
        partitions = self.twin.topics([name])[0].partitions
        batch = [self._record(p % partitions, when, key, kind) for p, when, key, kind in records]
        self.twin.produce(name, batch, transaction)
        self.statistics.records += len(batch)
        if transaction:
            self.open.add(transaction)

    def _record(self, partition: int, when: Any, key: bytes | None, kind: str | None) -> Record:
        self.produced += 1
        n = self.produced
        timestamp = TIMES_OF_DAY.get(when) or self.now_ms // HOUR * HOUR + when
        if self.most_late:
            timestamp = self.now_ms - abs(timestamp - self.now_ms) % (self.most_late + 1)
        earlier = max(timestamp - HOUR, 0)
        more = [b', "g": "x"', b', "g": "a/b", "t": %d' % earlier, b', "g": ""', b', "g": null, "t": %d' % earlier][
            n % 4
        ]
        values = {
            "good": b'{"n": %d%b}' % (n, more),
            "two lines": b'{"n":\n%d%b}' % (n, more),
            "bad": b"bad\n%d" % n,
            "deadly": b'{"n": %d, "g": "deadly"}' % n,
            None: None,
        }
        if kind in ("bad", "two lines"):
            self.strange.add("bad")
        if kind == "deadly":
            self.strange |= {"bad", "deadly"}
        headers = [[("h", b"%d" % n), ("h", None)], [("h", None), ("h", b"a b")], []][n % 3]
        return Record(partition, timestamp, values[kind], key, [*headers, *[("t", b"%d" % earlier)] * (n % 2)])

    @precondition(lambda self: self.open)
    @step(which=st.integers(0, 1), commit=st.booleans())
    def end_transaction(self, which: int, commit: bool) -> None:
        self.tick()
        transaction = sorted(self.open)[which % len(self.open)]
        self.open.discard(transaction)
        self.twin.end_transaction(transaction, commit)

    # Actions of operators and retention.

    @step(which=st.integers(0, 3), back=st.integers(0, 4))
    def compact(self, which: int, back: int) -> None:
        self.tick()
        name = self.pick(which)
        self.twin.compact(name, self.twin.log(name).high - back)
        self.strange.add("compaction")

    @step(which=st.integers(0, 3), back=st.integers(0, 6))
    def retention(self, which: int, back: int) -> None:
        self.tick()
        name = self.pick(which)
        before = self.twin.log(name).end("read_committed") - back
        if before > self.twin.log(name).start:
            self.twin.delete_records(name, before)
            self.strange.add("retention")

    @step(which=st.integers(0, 3))
    def elect(self, which: int) -> None:
        self.twin.elect(self.pick(which))

    @precondition(lambda self: self.twin.can_cut_leaders)
    @step(
        which=st.integers(0, 3),
        stale=st.one_of(st.just([True]), st.lists(st.booleans(), min_size=1, max_size=9)),
        majority=st.booleans(),
    )
    def cut_leader_off(self, which: int, stale: Sequence[bool] = (True,), majority: bool = False) -> None:
        """A leader is cut off: producers go on at another one, and the archive hears the old one, or either.

        `majority`: of several brokers most know the new one.
        """
        self.tick()
        self.twin.stale, self.twin.has_majority = itertools.cycle(stale), majority
        self.twin.cut_leader_off(self.pick(which))
        self.strange.add("leader")

    @precondition(lambda self: self.twin.can_cut_leaders)
    @step()
    def heal(self) -> None:
        self.twin.heal()

    @step(topic=st.integers(0, 1))
    def grow(self, topic: int) -> None:
        name = self.topics[topic % len(self.topics)]
        if self.twin.topics([name])[0].partitions < 3:
            self.twin.add_partition(name)

    @precondition(lambda self: self.produced % 3 == 0)
    @step(topic=st.integers(0, 1), records=st.one_of(st.just([]), RECORDS))
    def recreate(self, topic: int, records: list[Any]) -> None:
        self.tick()
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

    @step(store=STORE, isolation=ISOLATION, transform=TRANSFORMS)
    def reconfigure(self, store: dict[str, Any], isolation: str, transform: dict[str, Any] | None = None) -> None:
        self.store_settings, self.transform = store, transform or {}
        self.strange.add("reconfigured")
        if isolation != self.source["isolation"]:
            self.source = {**self.source, "isolation": isolation}
            self.strange.add("isolation")

    @step(change=st.sampled_from(CHANGES))
    def change(self, change: Change) -> None:
        """Change a few keys of the YAML, or its topics or code."""
        self.strange.add("reconfigured")
        [(section, keys)] = change.items()
        if section == "policies":
            self.null_value = keys.get("null_value", self.null_value)
            self.changed_code = keys.get("changed_code", self.changed_code)
        elif section == "source":
            self.source = {**self.source, **keys}
            self.strange |= {"isolation", "group"} & keys.keys()
            self.group_touched |= "group" in keys
        elif section == "store":
            self.store_settings = {**self.store_settings, **keys}
        elif section == "timestamp":
            self.timestamp = keys
        elif section == "transform":
            self.transform = keys
        elif section == "topics":
            self.name_topics(keys)
        elif not self._sql:
            # Spark's workers have the code itself.
            self.strange.add("code")
            mapped.put_code(f"{self.now_ms:064x}"[::-1])

    @step(timestamp=TIMESTAMPS)
    def retime(self, timestamp: dict[str, Any]) -> None:
        """File by another time from now on."""
        self.timestamp = timestamp
        self.strange.add("reconfigured")

    @step(numbers=st.sampled_from([(0,), (1,), (0, 1, 2), ()]))
    def name_topics(self, numbers: tuple[int, ...]) -> None:
        """Other topics in the YAML: those of some numbers, or a pattern."""
        names = [topic for number, topic in enumerate(self.topics) if number in numbers]
        named: dict[str, Any] = {"topics": names} if names else {"pattern": f"{self.world.prefix}t[0-9]"}
        self.source = {key: value for key, value in self.source.items() if key not in ("topics", "pattern")} | named

    @precondition(lambda self: len(self.topics) < 3)
    @step(partitions=st.integers(1, 2))
    def add_topic(self, partitions: int) -> None:
        """A topic that the YAML's pattern may match, and its list may name later."""
        self.topics.append(f"{self.world.prefix}t{len(self.topics)}")
        self.twin.create_topic(self.topics[-1], partitions)

    @precondition(lambda self: not self.timestamp.get("from"))
    @step(disorder=st.sampled_from([None, "10s", "90m"]))
    def declare(self, disorder: str | None) -> None:
        """Declare an order of times, true or not, or none any more."""
        self.timestamp = {"max_disorder": disorder} if disorder else {}

    @step()
    def rotate(self) -> None:
        """A new master key. Frozen attempts have the old one only."""
        self.masters.insert(0, bytes([ord("1") + len(self.masters)]) * 32)
        rotate_data_keys(self._ledger(self.store))
        self.oracle.master = self.masters[0]
        self.strange.add("rotated")

    def _ledger(self, store: Any) -> Ledger:
        return Ledger(store, self.archive_name, Keyring([LocalMaster(secret) for secret in self.masters]))

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
        skew=SKEWS,
    )
    def scheduled(self, policies: str, fates: list[Any], again: bool, give_up: bool, skipped: int, skew: int) -> None:
        interval = self.interval(self.next_hour + skipped)
        self.next_hour += 1 + skipped
        self._go(interval, "scheduled", policies, fates, again, skew, give_up=give_up)

    @precondition(lambda self: self.intervals)
    @step(which=st.integers(0, 9), policies=POLICIES, fates=FATES, again=st.booleans(), skew=SKEWS)
    def clear(self, which: int, policies: str, fates: list[Any], again: bool, skew: int) -> None:
        self._go(self.intervals[which % len(self.intervals)], "scheduled", policies, fates, again, skew)

    def clear_first(self, fates: list[Fate]) -> None:
        """Clear the first hour's run, also if it has no plan yet."""
        self._go(self.interval(0), "scheduled", ALL_GOES, fates, True, 0)

    @step(
        back=st.integers(1, 6),
        policies=POLICIES,
        fates=FATES,
        again=st.booleans(),
        give_up=st.booleans(),
        skew=SKEWS,
    )
    def backfill(self, back: int, policies: str, fates: list[Any], again: bool, give_up: bool, skew: int) -> None:
        self._go(self.interval(self.next_hour - back), "backfill", policies, fates, again, skew, give_up=give_up)

    @step(topic=st.integers(0, 1), when=st.sampled_from(["2090", "1970", HOUR]), order=st.permutations(range(1, 5)))
    def backfill_behind_a_wrong_clock(self, topic: int, when: Any, order: list[int]) -> None:
        """Every hour, in any order; a record with a wrong clock is among those of the right times."""
        for hour in range(-4, 0):
            self.produce(topic, [(n % 2, hour * HOUR + n, None, "good") for n in range(4)], None)
            self.produce(topic, [(hour % 2, when, None, "good")], None)
        for back in order:
            self._go(self.interval(self.next_hour - back), "backfill", ALL_GOES, [], True, 0)

    @step(fates=FATES, again=st.booleans(), give_up=st.booleans(), hours=st.sampled_from([None, None, 1, 3]))
    def fill(self, fates: list[Any], again: bool, give_up: bool, hours: int | None) -> None:
        """A run that takes what others have left out."""
        self.tick()
        some = hours is not None and not self.timestamp.get("from")
        since = from_ms(self.now_ms // HOUR * HOUR - (hours or 0) * HOUR) if some else None
        end = self.now_ms // 1000 * 1000 - 7000
        # No interval of the schedule starts then.
        end -= 1000 * (end % 60_000 == 1000)
        interval = Interval(start=from_ms(end - 1000), end=from_ms(end))

        def planned(context: Context) -> PlannedWork:
            return plan(context, interval, "backfill", Fill(since))

        self._go(interval, "backfill", ALL_GOES, fates, again, 0, planned, give_up=give_up)

    @precondition(lambda self: self.intervals)
    @step(
        which=st.integers(0, 9),
        hour=st.booleans(),
        keep=st.booleans(),
        policies=POLICIES,
        fates=FATES,
        again=st.booleans(),
        fewer=st.booleans(),
    )
    def rebuild(
        self, which: int, hour: bool, keep: bool, policies: str, fates: list[Any], again: bool, fewer: bool = False
    ) -> None:
        interval = self.intervals[which % len(self.intervals)]

        def planned(context: Context) -> PlannedWork:
            if hour:
                return rebuild_hour(context, interval.start, keep, fewer)
            return rebuild_run(context, interval.id, keep, fewer)

        self._go(interval, "scheduled", policies, fates, again, 0, planned)

    @precondition(lambda self: self.intervals and "bad" in self.strange)
    @step(
        which=st.integers(-3, 9),
        mend=st.sampled_from([*MENDED, None]),
        policies=POLICIES,
        fates=FATES,
        again=st.booleans(),
        give_up=st.booleans(),
    )
    def replay(
        self,
        which: int,
        mend: dict[str, Any] | None,
        policies: str,
        fates: list[Any],
        again: bool,
        give_up: bool = False,
    ) -> None:
        """Mend the cause, and archive the dead letters of a run, or of all."""
        if mend:
            self.store_settings = {**self.store_settings, "options": {}, **mend}
            self.source, self.transform = {**self.source, "value": {}}, {}
            self.strange.add("reconfigured")
        interval = self.intervals[which % len(self.intervals)]

        def planned(context: Context) -> PlannedWork:
            work = replay_letters(context, None if which < 0 else [interval.id])
            self.statistics.replayed += len(work.archive)
            return work

        self._go(interval, "scheduled", policies, fates, again, 0, planned, give_up)

    @step(
        which=st.integers(0, 20),
        count=st.integers(0, 2),
        derived=st.sampled_from(["", "", "hours", "progress", "settled"]),
        fates=FATES,
    )
    def destroy(self, which: int, count: int, derived: str, fates: list[Any]) -> None:
        """Remove objects, or a derived document, and repair the archive."""
        self.tick()
        keys = [s.key for s in self.store.list("")]
        # What an unfinished rebuild or replay has written is no final run's yet, and no repair looks for it.
        begun = {
            run: p
            for run, p in self.oracle.plans().items()
            if p.supersedes and not p.takes_over and not self._ended(run)
        }
        objects = [k for k in keys if not k.startswith("_ledger/") and not self.oracle.of_pending(k, begun, ())]
        for n in range(min(count, len(objects))):
            key = objects[(which + 7 * n) % len(objects)]
            self.destroyed.add(key)
            self.strange.add("destroyed")
            self.store.delete(key)
        documents = [key for key in keys if derived and derived in key and key.startswith("_ledger/")]
        if documents:
            self.store.delete(documents[which % len(documents)])
        if documents or (count and objects):
            self._repair(fates)

    def _ended(self, run: str) -> bool:
        return self.ledger.commit(run) is not None

    @step(
        which=st.integers(0, 3),
        run=st.integers(0, 3),
        begin=st.integers(0, 9),
        size=st.integers(1, 4),
        calls=st.one_of(st.just(1 << 30), st.integers(1, 12)),
    )
    def give_up(self, which: int, run: int, begin: int, size: int, calls: int) -> None:
        """An operator gives up offsets that an unfinished run reads; maybe too late, or sleeping meanwhile."""
        self.tick()
        plans = [p for p in self.oracle.plans().values() if not self._ended(p.run) and p.count]
        if not plans:
            return
        plan = plans[-1 - run % len(plans)]
        chunks = [*plan.chunks()]
        chunk = chunks[which % len(chunks)]
        start = chunk.start + begin % (chunk.end - chunk.start)
        end = min(start + size, chunk.end)
        topic_id = next(p.topic_id for p in plan.partitions if p.name == chunk.name)
        self.oracle.unread |= {(topic_id, chunk.partition, offset) for offset in range(start, end)}
        aside = OffsetsAside(topic=chunk.topic, partition=chunk.partition, start=start, end=end)
        self.strange.add("given up")
        actor = Actor(lambda actor: give_up_offsets(self._ledger(Watched("store", self.store, actor)), plan.run, aside))
        self._advance(actor, calls)
        if not actor.done:
            self.frozen.append(actor)

    # Restores, into a Kafka of their own.

    @step(
        topic=st.integers(0, 2),
        generation=st.integers(0, 1),
        offsets=st.sampled_from([None, None, (1, 4)]),
        how=st.sampled_from(["kill", "freeze", "end"]),
        at=st.integers(0, 60),
    )
    def restore(self, topic: int, generation: int, offsets: tuple[int, int] | None, how: str, at: int) -> None:
        """Plan a restore, and begin it."""
        self.tick()
        selection = {"offsets": offsets, "generation": generation}
        request = request_of(f"r{len(self.restores)}", self.topics[topic % len(self.topics)], **selection)
        if restored := Restored.planned(self._ledger(self.store), self.oracle, request, partitions=3):
            self.restores.append(restored)
            self.go_on_with_restore(-1, how, at)

    @precondition(lambda self: self.restores)
    @step(which=st.integers(0, 3), how=st.sampled_from(["kill", "freeze", "end"]), at=st.integers(0, 60))
    def go_on_with_restore(self, which: int, how: str, at: int) -> None:
        """Begin another attempt at a restore."""
        restored = self.restores[which % len(self.restores)]
        self.statistics.restores += 1
        if how == "end":
            restored.finish(self._ledger(self.store), self._is_damaged)
            return
        actor = restored.attempt(lambda actor: self._ledger(Watched("store", self.store, actor)))
        self._advance(actor, at, restored)
        if how == "freeze" and not actor.done:
            self.frozen.append(actor)
            self.restoring[actor] = restored
        else:
            actor.kill()
        restored.check()

    def _is_damaged(self, restored: Restored) -> bool:
        """Return True if somebody has replaced a run since a restore was planned, or destroyed its objects."""
        ended = [self.ledger.superseded_by(run) for run in restored.runs]
        return bool(self.destroyed) or any(ended)

    # Frozen attempts.

    @precondition(lambda self: self.frozen)
    @step(which=st.integers(0, 3), calls=st.sampled_from([1, 2, 3, 5, 8, 1 << 30]))
    def wake(self, which: int, calls: int) -> None:
        """A frozen worker continues: for some calls, or to the end."""
        actor = self.frozen[which % len(self.frozen)]
        self.statistics.woken += 1
        self.tick()
        self._advance(actor, calls, self.restoring.get(actor))
        if actor.done:
            self.frozen.remove(actor)
        self._check()

    @precondition(lambda self: self.frozen)
    @step(which=st.integers(0, 3))
    def never_wake(self, which: int) -> None:
        """A frozen worker dies."""
        self.statistics.kills += 1
        self.frozen.pop(which % len(self.frozen)).kill()

    def tick(self) -> int:
        """The time. Every call is one second later."""
        self.now_ms += 1000
        return self.now_ms

    def _go(
        self,
        interval: Interval,
        origin: Origin,
        policies: str,
        fates: Sequence[Fate],
        again: bool,
        skew: int,
        planned: Callable[[Context], PlannedWork] | None = None,
        give_up: bool = False,
    ) -> None:
        """Run attempts until one succeeds, each with its fate.

        `again`: a retry starts with the plan, like a cleared run; else with the failed step.
        `give_up`: no retry after the fates.
        `skew`: minutes by which this planner's clock is ahead.
        """
        # At least one minute after the interval's end by the planner's clock.
        due = (interval.end + MINUTE - timedelta(minutes=skew) - from_ms(0)) // timedelta(milliseconds=1)
        self.now_ms = max(self.now_ms, due)
        chosen: dict[str, str] = {}

        def clock() -> datetime:
            return from_ms(self.tick()) + timedelta(minutes=skew)

        make = planned or (lambda context: plan(context, interval, origin))
        progress: list[Any] = []
        for how, at in [*fates, ("none", 0)]:
            if how == "none" and fates and give_up:
                break
            if again:
                progress.clear()
            self.statistics.attempts += 1
            archive = self.archive(policies, chosen)
            actor = Actor(functools.partial(self._attempt, archive, make, progress, clock))
            self.calls = actor.calls
            try:
                if how != "none":
                    actor.advance(at)
                if how != "none" and not actor.done and self._interrupted(actor, how, at):
                    # The retry does not know unfinished steps.
                    progress = list(progress)
                    chosen |= how.get("policies", {}) if isinstance(how, dict) else {}
                    continue
                actor.advance()
            except TransientError as error:
                if how in ("none", "kill", "freeze") or isinstance(how, dict):
                    self._refused(error)
                    break
                continue
            except ArchiverError as error:
                self._refused(error)
                break
            finally:
                self._check()
            self.intervals += [interval] * (interval not in self.intervals)
            self._settled(archive)
            break

    def _interrupted(self, actor: Actor, how: str | Change, at: int) -> bool:
        """Apply a fate to an attempt before its next call. Returns whether the attempt has stopped."""
        if how == "kill":
            self.statistics.kills += 1
            actor.kill()
        elif how == "freeze":
            self.statistics.frozen += 1
            self.frozen.append(actor)
        elif isinstance(how, dict):
            self.statistics.frozen += 1
            self.frozen.append(actor)
            self.change(how)
        elif how in ("refuse", "forget"):
            actor.fail_next = how
        else:
            happens: dict[str, Callable[[], None]] = {
                "compact": lambda: self.compact(at, 0),
                "retention": lambda: self.retention(at, 1),
                "produce": lambda: self.produce(0, [(0, 0, b"a", "good"), (1, -HOUR, b"b", "good")], None),
                "recreate": lambda: self.recreate(0, [(0, 0, b"a", "good")] * 6),
                "elect": lambda: self._elect_and_produce(at),
            }
            happens[how]()
        return how in ("kill", "freeze") or isinstance(how, dict)

    def _elect_and_produce(self, which: int) -> None:
        """Another leader, under whose epoch the log goes on."""
        name = self.pick(which)
        self.twin.elect(name)
        self.produce(self.topics.index(name.topic), [(name.partition, 0, None, "good")] * 2, None)

    def _advance(self, actor: Actor, calls: int, restored: Restored | None = None) -> None:
        """Let an overtaken attempt continue. It may fail because it is too late."""
        try:
            actor.advance(calls)
        except TransientError:
            pass
        except ArchiverError as error:
            if restored is None:
                self._refused(error)
            elif not (isinstance(error, FencedError) or WITHOUT_OFFSETS in str(error) or self._is_damaged(restored)):
                raise
        if restored:
            restored.check()

    def _check(self) -> None:
        if "compaction" in self.strange:
            self.twin.refresh()
        self.oracle.check()

    def _attempt(
        self,
        archive: Archive,
        make: Callable[[Context], PlannedWork],
        progress: list[Any],
        clock: Callable[[], datetime],
        actor: Actor,
    ) -> None:
        store: Any = Watched("store", self.store, actor)
        cluster: Any = Watched("kafka", self.world.cluster, actor)
        context = self._context(archive, cluster, store, clock)
        if not progress:
            progress.append(make(context))
        work: PlannedWork = progress[0]
        for step in self._steps(context, work, actor)[len(progress) - 1 :]:
            step()
            progress.append(step)

    def _context(self, archive: Archive, cluster: Any, store: Any, clock: Callable[[], datetime]) -> Context:
        return Context(archive, cluster, store, self._ledger(store), clock)

    # `SqlModel` has Spark.
    _sql: Any = None

    def _steps(self, context: Context, work: PlannedWork, actor: Actor) -> list[Callable[[], object]]:
        """The tasks after `plan`."""
        limits = Limits(upload_threads=1, spill_directory=self.directory)
        fatal = self._fatal(next(self.crashes))
        engine = WatchedEngine(self.world.read, context.store, limits, actor, fatal=fatal, sql=self._sql)
        choice = ReadPolicies.of(context.archive.policies.model_dump())
        job = ArchiveStep(context.cluster, context.store, context.ledger, engine, choice)
        return [
            lambda: archive_runs(context, work, job.run),
            lambda: verify(context, work.runs),
            lambda: commit(context, work.runs),
            lambda: close_hours(context, work.runs),
        ]

    @staticmethod
    def _fatal(most: int) -> Callable[[Mapping[int, bytes | None]], dict[int, str]]:
        """Return what finds the first deadly records: as many as end the process of this attempt."""

        def fatal(values: Mapping[int, bytes | None]) -> dict[int, str]:
            deadly = (offset for offset, value in sorted(values.items()) if is_deadly(value))
            return dict.fromkeys(itertools.islice(deadly, most), f"no process survives this record: {most}")

        return fatal

    def _repair(self, fates: Sequence[Fate], given_up: str = "") -> None:
        """Run `airflow archive repair` until it succeeds."""
        gone, complaint = {given_up} if given_up else set[str](), ""
        for how, at in [*fates, *[("none", 0)] * 8]:
            actor = Actor(functools.partial(self._repair_once, frozenset(gone)))
            try:
                if how != "none":
                    actor.advance(at)
                if how != "none" and not actor.done and self._interrupted(actor, how, at):
                    continue
                actor.advance()
            except TransientError as error:
                complaint = str(error)
                if re.search("may lead no more|before the end of", complaint) and self.twin.can_cut_leaders:
                    # The message's advice; or each repair reads from the leader that is cut off, whose log ends before.
                    self.twin.heal()
                continue
            except ArchiverError as error:
                complaint = str(error)
                # Give up objects that cannot be written again by name, as the message advises.
                gone |= {shlex.split(key)[0] for key in re.findall(r"--lost ([^`]+)`", str(error))}
                if match := re.search(r"the plan's is (\w+)…", complaint):
                    # The message's advice.
                    mapped.put_back(match[1])
                if "not have the start" in complaint and self.twin.can_cut_leaders:
                    # A leader that is cut off lacks the run's offsets at each repair.
                    self.twin.heal()
                self._excused(error)
                continue
            self._check()
            return
        raise AssertionError(f"still not repaired after eight repairs: {complaint}")

    def _repair_once(self, given_up: frozenset[str], actor: Actor) -> None:
        archive = self.archive(ALL_GOES)
        store: Any = Watched("store", self.store, actor)
        cluster: Any = Watched("kafka", self.world.cluster, actor)
        context = self._context(archive, cluster, store, self._moment)
        report = audit(archive, store, self._moment())
        damage = find_repairs(context, report, given_up & {f.subject for f in report.damage})
        for entries in damage.lost.values():
            for entry in entries:
                assert entry.key in self.destroyed, f"{entry.key} is called lost, but was not destroyed"
                self.oracle.given_up.add(entry.key)
                self.statistics.lost += 1
        for key in damage.to_restore:
            restore_document(context.ledger, key)
        if damage.to_derive:
            derive_documents(context.ledger)
        for run, entries in damage.lost.items():
            record_lost(context, run, [entry.key for entry in entries], given_up)
        for run, entries in damage.sidecars.items():
            write_sidecars(context, run, [entry.key for entry in entries])
        for run in damage.to_replan:
            self._execute(context, rebuild_run(context, run), actor)
        self.statistics.written_again += sum(map(len, damage.to_rewrite.values()))
        if damage.to_rewrite:
            self._execute(context, write_again(context, list(damage.to_rewrite)), actor)

    def _moment(self) -> datetime:
        return from_ms(self.tick())

    def _execute(self, context: Context, work: PlannedWork, actor: Actor) -> None:
        for step in self._steps(context, work, actor):
            step()

    def _refused(self, error: ArchiverError) -> None:
        """Check that an event explains this error, then do what its message advises."""
        self._excused(error)
        if match := re.search(r"`airflow archive repair \S+?(?: --lost ([^`]+))?`", str(error)):
            self._repair([], shlex.split(match[1])[0] if match[1] else "")

    def _excused(self, error: ArchiverError) -> None:
        """Check that an event explains this error."""
        text = str(error)
        reason = next((reason for pattern, reason in EXCUSES if re.search(pattern, text)), None)
        refusals = self.statistics.refusals
        refusals[reason or "?"] = refusals.get(reason or "?", 0) + 1
        if reason is None or (reason != "always" and not self.strange & set(reason.split("|"))):
            raise AssertionError(f"no event explains this error ({self.strange}): {text}") from error
        if isinstance(error, IntegrityError) and (match := re.match(r"(\S+) was written by an earlier attempt", text)):
            # The message's advice.
            self.store.delete(match[1])

    def _settled(self, archive: Archive) -> None:
        """Check after a successful run that ledger and group agree."""
        progress = self.ledger.progress()
        assert progress is not None
        ids = self.twin.topic_ids(self.topics)
        stands = {p.name: p.next for p in progress.partitions if p.topic_id == ids[p.topic] and p.next is not None}
        if not self.frozen and not self.group_touched and not self.oracle.unfinished():
            positions = self.world.cluster.committed(self.group, stands)
            assert positions == stands, f"the group is at {positions}, the ledger at {stands}"

    def teardown(self) -> None:
        try:
            if self.topics:
                self._finish_everything()
                # The remaining frozen attempts continue when all is done, and must do no harm.
                for actor in list(self.frozen):
                    self._advance(actor, 1 << 30, self.restoring.get(actor))
                    self._check()
                for restored in self.restores:
                    restored.finish(self._ledger(self.store), self._is_damaged)
                self.frozen.clear()
                self._finish_everything()
                self._fill_everything()
                self.oracle.check_filled()
                self._close_future_hours()
                self.oracle.check_lookup(self._ledger(self.store))
        finally:
            for actor in self.frozen:
                actor.kill()
            for transaction in sorted(self.open):
                self.twin.end_transaction(transaction, False)
            self.world.close()

    def _fill_everything(self) -> None:
        """Fill the archive until it has everything that Kafka still has; five runs in a row bring something."""
        least, without_progress = sys.maxsize, 0
        while left := self._left_out():
            total = sum(left.values())
            without_progress = 0 if total < least else without_progress + 1
            assert without_progress < 5, f"five runs have brought nothing: {left} are left out"
            least = min(least, total)
            self.fill([], True, False, None)

    def _close_future_hours(self) -> None:
        """Check that nothing that is gone keeps hours from being complete that have not begun."""
        if self._incomplete_until() > self.now_ms:
            self._finish_everything()
        # Clocks differ by minutes.
        assert self._incomplete_until() <= self.now_ms + 2 * HOUR, f"nothing completes hours: {self.ledger.progress()}"

    def _incomplete_until(self) -> int:
        progress = self.ledger.progress()
        moments = (progress.whole_from, progress.unsure and progress.unsure.until) if progress else ()
        return max((to_ms(moment) for moment in moments if moment), default=0)

    def _left_out(self) -> Mapping[TopicPartition, int]:
        context = self._context(self.archive(ALL_GOES), self.world.cluster, self.store, self._moment)
        return count_left_out(context, None)

    def _finish_everything(self) -> None:
        """Run until no run is unfinished and every log is archived to its end."""
        self.crashes = itertools.cycle([0])
        self.changed_code = "plan_anew"
        self.name_topics((0, 1, 2))
        if self.twin.can_cut_leaders:
            self.twin.heal()
        for transaction in sorted(self.open):
            self.tick()
            self.twin.end_transaction(transaction, True)
        self.open.clear()
        stands: Any = "nowhere"
        ends: Any = None
        # Runs that may be small, and clocks that may be behind; then each of three brings something.
        left, patience = sys.maxsize, 100
        while patience:
            interval = self.interval(self.next_hour)
            self.next_hour += 1
            self._go(interval, "scheduled", ALL_GOES, [], True, 0)
            progress = self.ledger.progress()
            if progress is None or self.oracle.unfinished():
                patience -= 1
                continue
            ends = self.world.cluster.log_ends(self.names(), self.source["isolation"])
            stands = {name: p.next if (p := progress.partition(name)) else None for name in ends}
            if stands == ends:
                break
            total = sum(end - (stands[name] or 0) for name, end in ends.items())
            patience = patience - 1 if total >= left else max(patience - 1, 3)
            left = min(left, total)
        else:
            raise AssertionError(f"runs bring nothing more: {stands} instead of {ends}")
        # Every record that planners saw is archived, known to be gone, or known to be older than some hour.
        assert progress is not None
        assert not progress.marks, f"hours stay open for ever: {progress}"
        self.statistics.complete += self.oracle.complete
