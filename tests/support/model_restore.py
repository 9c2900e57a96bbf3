"""Restores of the model's archive, into a Kafka of their own, whatever happens to the archive and attempts meanwhile.

The oracle says at the plan of a restore what it has to write.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.restore import RestoreLimits, RestoreOptions, RestorePlan, RestoreSelection
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.restore.lane import Lane
from kafka_archiver.work.restore.pace import Pace
from kafka_archiver.work.restore.partition_writer import PartitionWriter
from kafka_archiver.work.restore.plan import plan_restore
from kafka_archiver.work.restore.verify import PartitionReader
from tests.support.actors import Actor, Watched
from tests.support.kafka_twin import Entry, KafkaTwin
from tests.support.oracle import SIDECAR, Oracle, has_no_null
from tests.support.outcomes import Row
from tests.support.restore_twin import TwinTarget

ALLOWED = frozenset({"values_only", "rows", "lost", "timestamps", "headers"})
# Why nothing is planned: nothing is selected, or what was stored has no bytes.
NOT_PLANNED = re.compile("is selected: no committed run|has no topic|has decoded columns")
# Of lines, whose place among those of other objects nobody knows.
WITHOUT_OFFSETS = "has values without their offsets"
LIMITS = RestoreLimits(transaction_bytes=30)


@dataclass(frozen=True)
class Expected:
    """A record that a restore writes. `is_whole`: not its value alone."""

    offset: int
    entry: Entry
    row: Row
    is_whole: bool

    def is_as(self, entry: Entry) -> bool:
        """Return True if the target has it."""
        record = entry.record
        assert record
        if not self.is_whole:
            return _line(record.value) == _line(self.row.value)
        mine = (self.row.key, self.row.value, [tuple(header) for header in self.row.headers], self.entry.timestamp or 1)
        return mine == (record.key, record.value, [tuple(header) for header in record.headers], entry.timestamp)


def _line(value: bytes | None) -> bytes:
    """The value as formats of lines have it, in which null and the empty value may be the same."""
    return (value or b"null").replace(b"\n", b" ")


class WatchedTarget(Watched):
    """A target whose writers are watched, too."""

    def writer(self, transactional_id: str, name: TopicPartition) -> Any:
        return Watched("kafka", self._inner.writer(transactional_id, name), self._actor)


@dataclass
class Restored:
    """A restore of one topic, planned."""

    plan: RestorePlan
    twin: KafkaTwin
    target: TwinTarget
    expected: Mapping[int, list[Expected]]
    # The runs that it reads, and may be replaced later.
    runs: frozenset[str]

    @classmethod
    def planned(cls, ledger: Ledger, oracle: Oracle, request: RestoreRequest, partitions: int) -> "Restored | None":
        """Plan it. None: there is nothing to restore."""
        twin = KafkaTwin(lambda: 0)
        [topic] = request.selection.topics
        twin.create_topic(topic, partitions)
        expected, runs = expected_of(oracle, request.selection)
        try:
            cluster: Any = twin
            plan = plan_restore(ledger, cluster, request)
        except ConfigError as error:
            if not NOT_PLANNED.search(str(error)) or ("no committed run" in str(error) and any(expected.values())):
                raise
            return None
        return cls(plan, twin, TwinTarget(twin), expected, runs)

    def attempt(self, ledger: Callable[[Actor], Ledger]) -> Actor:
        """Begin an attempt."""

        def work(actor: Actor) -> None:
            target: Any = WatchedTarget("kafka", self.target, actor)
            for name in self.plan.targets():
                PartitionWriter(target, self.lane(ledger(actor), name), Pace(), sleep=lambda _: None).run()

        return Actor(work)

    def lane(self, ledger: Ledger, name: TopicPartition) -> Lane:
        plan = ledger.restore_plan(self.plan.restore)
        assert plan == self.plan
        return Lane(ledger, plan, name, ALLOWED)  # type: ignore[arg-type]

    def check(self) -> bool:
        """Check that the target has the first of the expected records. Return True if it has all of them."""
        is_all = True
        for name in self.plan.targets():
            entries = [e for e in self.twin.log(name).entries if e.record and e.visible("read_committed")]
            expected = self.expected.get(name.partition, [])
            where = f"restore {self.plan.restore} of {name}: {[e.record for e in entries]} instead of {expected}"
            assert len(entries) <= len(expected), where
            # The rows of one record are in any order.
            left = list(expected)
            for entry in entries:
                same = next((e for e in left if e.is_as(entry)), None)
                assert same, where
                assert same.offset == left[0].offset, where
                left.remove(same)
            is_all &= not left
        return is_all

    def finish(self, ledger: Ledger, is_damaged: Callable[["Restored"], bool]) -> None:
        """Let an attempt end, and check what it and a verification say.

        :param is_damaged: whether the archive may not have the objects any more.
        """
        try:
            self.attempt(lambda _: ledger).advance()
            assert self.check(), f"restore {self.plan.restore} has ended without some of {self.expected}"
            for name in self.plan.targets():
                assert PartitionReader(self.target, self.lane(ledger, name), lambda _: None).run().report.verified
        except (IntegrityError, ConfigError) as error:
            if not is_damaged(self) and WITHOUT_OFFSETS not in str(error):
                raise
            self.check()


def request_of(name: str, topic: str, **selection: Any) -> RestoreRequest:
    options = RestoreOptions(allow=tuple(sorted(ALLOWED)))  # type: ignore[arg-type]
    return RestoreRequest(name, RestoreSelection(topics=(topic,), **selection), options=options, limits=LIMITS)


def expected_of(oracle: Oracle, selection: RestoreSelection) -> tuple[dict[int, list[Expected]], frozenset[str]]:
    """Return what a restore that is planned now has to write, by partition; and the runs that have it."""
    plans = oracle.plans()
    committed = [run for run in plans if (end := oracle.ledger.commit(run)) and end.outcome == "committed"]
    manifests = {run: m for run in committed if (m := oracle.ledger.manifest(run))}
    expected: dict[int, list[Expected]] = {}
    offsets = range(*(selection.offsets or (0, 1 << 62)))
    for run in oracle._current(plans, committed).values():
        plan, manifest = plans[run], manifests[run]
        partitions = {(p.topic, p.partition): p for p in plan.partitions}
        writers = oracle._writers(plan, manifest, plans, manifests)
        gone = {o.key for o in manifest.lost_objects}
        for account in manifest.chunks:
            if account.topic not in selection.topics or account.generation != (selection.generation or 0):
                continue
            partition = partitions[account.topic, account.partition]
            objects = oracle._expected(writers, plan, manifest, partition, account)
            for key, rows in objects.items():
                if key in gone or SIDECAR in key:
                    continue
                revision = re.search(r"\+r(\d+)\.", key)
                [by] = [w for w, _ in writers if w.revision == int(revision[1] if revision else 0)]
                has_values = by.settings.content == "value" or has_no_null(by.settings)
                is_whole = key.startswith("_dead_letter/") or not has_values
                expected.setdefault(account.partition, []).extend(
                    Expected(offset, entry, row, is_whole) for offset, entry, row in rows if offset in offsets
                )
    for of_partition in expected.values():
        of_partition.sort(key=lambda e: e.offset)
    return expected, frozenset(oracle._current(plans, committed).values())
