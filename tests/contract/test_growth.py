"""The cost of a run does not depend on how many came before it: counted in requests to the store, not timed."""

import uuid
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.model.plan import PartitionPlan
from kafka_archiver.state.status.condition import observe, waits
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.backlog import unsettled_runs
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.plan import plan
from tests.support.counted import Counted as Asked
from tests.support.growth import Growing
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.timeout(120)
# The plan and its copy; an object a partition; the end; a proof, and what settling did.
WRITES = (("plan", "create"), ("archive", "complete_upload"), ("commit", "create"), ("close_hours", "create"))


def test_a_run_asks_the_store_for_no_more_after_300_runs_than_after_10() -> None:
    growing = Growing()
    few, short = growing.grow(10), growing.progress()
    many, longer = growing.grow(300), growing.progress()
    assert many == few
    # What it asks for is no longer either, but for the digits of its numbers.
    assert longer - short < 50
    # It is a run: it writes documents, objects and proofs.
    assert [few[step][verb] for step, verb in WRITES] == [2, 2, 1, 2]
    assert not any("list" in few[step] for step in ("plan", "archive", "commit", "close_hours"))


def test_a_plan_looks_at_each_partition_as_often_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Counter[str]()
    real = PartitionProgress.name.fget
    assert real

    def name(self: PartitionProgress) -> TopicPartition:
        looks["name"] += 1
        return real(self)

    def planned(partitions: int) -> int:
        logs = {TopicPartition("orders", number): Range(0, 1) for number in range(partitions)}
        lake = Lake(MemoryStore(uuid.uuid4().hex), logs)
        lake.run(0)
        lake.now = hour(2).start
        looks.clear()
        assert plan(lake.context, hour(1), "scheduled").idle
        return looks["name"]

    monkeypatch.setattr(PartitionProgress, "name", property(name))
    assert planned(40) <= 4 * planned(10)


def test_an_interval_without_a_record_costs_few_requests_however_old_the_archive() -> None:
    """docs/howto/capacity.md has these figures, for 500 archives."""

    def idle(runs: int) -> tuple[Counter[str], int]:
        growing = Growing()
        growing.grow(runs)
        lake, brokers = growing.lake, Asked(growing.lake.context.cluster)
        lake.now = hour(runs + 2).start
        context: Any = replace(lake.context, cluster=brokers)
        growing.store.counts.clear()
        work = plan(context, hour(runs + 1), "scheduled")
        assert (work.archive, work.idle) == ((), True), "no Spark, nothing to verify"
        commit(context, unsettled_runs(context, work.runs))
        close_hours(context, work.runs)
        assert lake.ledger.settled(work.runs[-1]), "it is a run, and it is done"
        return growing.store.counts, len(brokers.asked)

    requests, asked = idle(10)
    assert (requests, asked) == idle(100)
    writes = requests["create"] + requests["replace"]
    assert writes <= 7
    assert sum(requests.values()) - writes <= 36
    assert not requests["list"]
    assert asked <= 18


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
