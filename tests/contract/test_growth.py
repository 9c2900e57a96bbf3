"""What a run costs does not depend on how many came before it: counted in requests to the store, not timed."""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from kafka_archiver.keys import progress_document
from kafka_archiver.plan import PartitionPlan
from kafka_archiver.progress import PartitionProgress
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.steps.backlog import archive_runs
from kafka_archiver.steps.close_hours import close_hours
from kafka_archiver.steps.commit import commit
from kafka_archiver.steps.plan import plan
from kafka_archiver.steps.status.condition import observe, waits
from kafka_archiver.steps.verify import verify
from kafka_archiver.store.memory import MemoryStore
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.timeout(120)
# The plan and its copy; an object a partition; the end; a proof, and what settling did.
WRITES = (("plan", "create"), ("archive", "complete_upload"), ("commit", "create"), ("close_hours", "create"))
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@dataclass
class Counted:
    """A store that counts what is asked of it: requests by their verb, the keys that it lists, and bytes."""

    inner: MemoryStore
    counts: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, name: str) -> Any:
        answer = getattr(self.inner, name)
        if not callable(answer):
            return answer

        def ask(*arguments: Any, **named: Any) -> Any:
            self.counts[name] += 1
            found = answer(*arguments, **named)
            return self._listed(found) if name in ("list", "list_uploads") else found

        return ask

    def _listed(self, found: Iterable[Any]) -> Iterator[Any]:
        for item in found:
            self.counts["keys listed"] += 1
            yield item


class Growing:
    """An archive of two partitions, each of which gets a record an hour; a run an hour."""

    def __init__(self, late: bool) -> None:
        self.store = Counted(MemoryStore(uuid.uuid4().hex))
        self.lake = Lake(self.store, {P0: Range(0, 1), P1: Range(0, 1)})  # type: ignore[arg-type]
        self.settled = 0
        # Else each run has a record of the first hour as well, whose proof gets longer with each of them.
        self.late = late
        self.costs: dict[str, dict[str, int]] = {}

    def run(self) -> None:
        """The next run; notes what its steps ask."""
        now, self.costs = self.settled, {}
        for name in (P0, P1):
            self.lake.logs[name] = Range(0, now + 1)
        if self.late:
            self.lake.odd[P1, now] = {"timestamp": self.lake.brokers.first * 3_600_000}
        self.lake.now = hour(now + 1).start
        context = self.lake.context
        with self._counted("plan"):
            work = plan(context, hour(now), "scheduled")
        with self._counted("archive"):
            archive_runs(context, work, self.lake.job().run)
        with self._counted("verify"):
            verify(context, work.runs)
        with self._counted("commit"):
            commit(context, work.runs)
        with self._counted("close_hours"):
            close_hours(context, work.runs)
        self.settled += 1

    @contextmanager
    def _counted(self, step: str) -> Iterator[None]:
        self.store.counts.clear()
        yield
        self.costs[step] = dict(self.store.counts)

    def grow(self, settled: int) -> dict[str, dict[str, int]]:
        """What the run costs that comes after so many."""
        while self.settled <= settled:
            self.run()
        return self.costs

    def progress(self) -> int:
        """How long the document is from which planning begins."""
        data = self.lake.store.get(progress_document(self.lake.name))
        assert data
        return len(data)


def test_a_run_asks_the_store_for_no_more_after_300_runs_than_after_10() -> None:
    growing = Growing(late=False)
    few, short = growing.grow(10), growing.progress()
    many, longer = growing.grow(300), growing.progress()
    assert many == few
    # What it asks for is no longer either, but for the digits of its numbers.
    assert longer - short < 50
    # It is a run: it writes documents, objects and proofs.
    assert [few[step][verb] for step, verb in WRITES] == [2, 2, 1, 2]
    assert not any("list" in few[step] for step in ("plan", "archive", "commit", "close_hours"))


def test_neither_does_an_hour_to_which_every_run_adds() -> None:
    growing = Growing(late=True)
    few, many = growing.grow(10), growing.grow(100)
    for step in ("plan", "archive", "commit", "close_hours"):
        assert many[step] == few[step], step
    # `verify` lists the folder of each hour that the run has objects in: a stranger among them would be read.
    assert many["verify"] | {"keys listed": 0} == few["verify"] | {"keys listed": 0}


def test_ten_times_as_many_partitions_are_looked_at_ten_times_as_often(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: Counter[int] = Counter()

    def look(partitions: int) -> int:
        """Two runs, of which the second begins before the first has moved the group, and what `status` sees between."""

        def name(self: Any) -> TopicPartition:
            looked[partitions] += 1
            return TopicPartition(self.topic, self.partition)

        monkeypatch.setattr(PartitionPlan, "name", property(name))
        monkeypatch.setattr(PartitionProgress, "name", property(name))
        store = MemoryStore(uuid.uuid4().hex)
        lake = Lake(store, {TopicPartition("orders", number): Range(0, 1) for number in range(partitions)})
        lake.run(0, until="planned")
        lake.logs.update(dict.fromkeys(lake.logs, Range(0, 2)))
        observed = observe(lake.context)
        assert sum(r.size for r in waits(lake.context, observed).values()) == 2 * partitions
        lake.run(1)
        return looked[partitions]

    few, many = look(5), look(50)
    assert many < 12 * few
