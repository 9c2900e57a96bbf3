"""`python -m tests.support.growth 10000`: measures a run after few runs, and after so many.

It counts CPU and requests to the store: the real steps on the in-memory store, without brokers, Spark or servers.
"""

import gc
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kafka_archiver.model.object_keys import progress_document
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.backlog import archive_runs
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.plan import plan
from kafka_archiver.work.verify import verify
from tests.support.lake import Lake, hour

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
FEW = 100
# The cheapest of so many runs counts: other work on the machine only adds CPU.
TURNS = 21


@dataclass
class Counted:
    """A store that counts requests by method, and the keys that it lists."""

    inner: MemoryStore
    counts: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, name: str) -> Any:
        answer = getattr(self.inner, name)
        if not callable(answer):
            return answer

        def ask(*arguments: Any, **named: Any) -> Any:
            self.counts[name] += 1
            answered = answer(*arguments, **named)
            return self._listed(answered) if name in ("list", "list_uploads") else answered

        return ask

    def _listed(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.counts["keys listed"] += 1
            yield item


class Growing:
    """An archive of two partitions with one record an hour each, and one run an hour.

    :param late: each run also has a record of the first hour, so that this hour's proof grows.
    """

    def __init__(self, late: bool = False) -> None:
        self.store = Counted(MemoryStore(uuid.uuid4().hex))
        self.lake = Lake(self.store, {P0: Range(0, 1), P1: Range(0, 1)})  # type: ignore[arg-type]
        self.settled = 0
        self.late = late
        # Requests and CPU seconds of the last run, by step.
        self.costs: dict[str, dict[str, int]] = {}
        self.seconds: dict[str, float] = {}

    def run(self) -> None:
        """Run the next hour; record the costs of its steps."""
        moment, self.costs = self.settled, {}
        for name in (P0, P1):
            self.lake.logs[name] = Range(0, moment + 1)
        if self.late:
            self.lake.odd[P1, moment] = {"timestamp": self.lake.brokers.first * 3_600_000}
        self.lake.now = hour(moment + 1).start
        context = self.lake.context
        with self._counted("plan"):
            work = plan(context, hour(moment), "scheduled")
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
        began = time.process_time()
        yield
        self.seconds[step] = time.process_time() - began
        self.costs[step] = dict(self.store.counts)

    def grow(self, settled: int) -> dict[str, dict[str, int]]:
        """The costs of the run after so many settled runs."""
        while self.settled <= settled:
            self.run()
        return self.costs

    def progress(self) -> int:
        """The bytes of progress.json, which planning reads first."""
        data = self.lake.store.get(progress_document(self.lake.name))
        assert data
        return len(data)


def main(settled: int) -> None:
    """Compare both in one process and in turns: a large heap alone makes everything slower."""
    few, many = Growing(), Growing()
    few.grow(FEW)
    many.grow(settled)
    gc.collect()
    gc.freeze()
    timings: list[list[dict[str, float]]] = [[], []]
    for _ in range(TURNS):
        for growing, seconds in zip((few, many), timings, strict=True):
            growing.run()
            seconds.append(dict(growing.seconds))
    print(f"CPU ms, requests   after {FEW} runs   after {settled:,}")
    for step in few.costs:
        cells = [
            f"{min(costs[step] for costs in seconds) * 1e3:8.1f} {sum(growing.costs[step].values()):5}"
            for growing, seconds in zip((few, many), timings, strict=True)
        ]
        print(f"{step:15}", *cells)
    began = time.process_time()
    assert many.lake.audit().verdict == "clean"
    print(f"an audit of all {many.settled:,}: {time.process_time() - began:.1f} CPU s")


if __name__ == "__main__":
    main(int(sys.argv[1]))
