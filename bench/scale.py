"""What a run costs beside its records, by partitions and objects: `python -m bench.scale`

Planning, the driver's finish, verify, commit and close_hours, without brokers, Spark or a server: the steps' own code
on the store's twin in memory and on partitions that are made up. One object a chunk, each of one byte, so that only
what grows with partitions and objects counts.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar, cast

from bench.processes import memory
from kafka_archiver.config import Archive
from kafka_archiver.intervals import Interval
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.keys import Place, hour_path, object_key
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import ChunkAccount
from kafka_archiver.plan import Chunk, Plan
from kafka_archiver.planning import plan_forward
from kafka_archiver.policy import Seen, beginnings
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.spark.finish import Choice, finish
from kafka_archiver.steps.close_hours import close_hours
from kafka_archiver.steps.commit import commit
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.verify import verify
from kafka_archiver.store.base import PendingUpload, Store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.writer.result import ChunkResult, WrittenObject

SIZES = ((50, 100), (500, 100), (500, 1000))
_CHUNK = 1000
_FORGET_PEAK = Path("/proc/self/clear_refs")
_START = datetime(2026, 11, 21, tzinfo=UTC)
_INTERVAL = Interval(start=_START, end=_START + timedelta(hours=1))
_FIRST_MS = int(_START.timestamp() * 1000)
Done = TypeVar("Done")


@dataclass
class _Group:
    """What `commit` asks of the brokers."""

    offsets: dict[TopicPartition, int | None]

    def topic_ids(self, topics: set[str]) -> dict[str, str]:
        return dict.fromkeys(topics, "id")

    def committed(self, _group: str, names: list[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {name: self.offsets.get(name) for name in names}

    def move_group(self, _group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self.offsets |= offsets


@dataclass
class Costs:
    """CPU seconds by part, the most memory this process had in it, and bytes of documents."""

    partitions: int
    chunks: int
    seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def objects(self) -> int:
        """One a chunk."""
        return self.partitions * self.chunks

    def measure(self, part: str, work: Callable[[], Done]) -> Done:
        """Run it, and note its CPU time, that of its threads included, and its memory."""
        gc.collect()
        _FORGET_PEAK.write_text("5")
        began = time.process_time()
        done = work()
        self.seconds[part] = time.process_time() - began
        self.peaks[part] = memory("self").peak
        return done


def simulate(partitions: int, chunks: int) -> Costs:
    """One run of this size, from the brokers' answers to the proofs."""
    costs = Costs(partitions, chunks)
    archive = Archive.model_validate(
        {
            "archive": "scale",
            "source": {"topics": ["scale"], "max_records_per_run": partitions * chunks * _CHUNK},
            "store": {"url": f"memory://scale-{partitions}-{chunks}", "chunk_records": _CHUNK},
        }
    )
    store = MemoryStore(f"scale-{partitions}-{chunks}")
    ledger = Ledger(store, archive.archive)
    context = Context(archive, cast(Cluster, _Group({})), store, ledger)

    plan = costs.measure("plan: ranges", lambda: _plan(archive, partitions, chunks * _CHUNK))
    plan = costs.measure("plan: write", lambda: ledger.create_plan(plan))
    plan = costs.measure("plan: read", lambda: ledger.plan(plan.run) or plan)
    results = [_written(chunk, store) for chunk in costs.measure("plan: chunks", lambda: list(plan.chunks()))]
    logs = {p.name: Range(p.log_start, p.log_end) for p in plan.partitions}
    costs.measure("finish", lambda: finish(plan, None, results, logs, Choice(), store, ledger))
    results.clear()
    costs.measure("manifest: read", lambda: ledger.manifest(plan.run))
    costs.measure("verify", lambda: verify(context, [plan.run]))
    costs.measure("commit", lambda: commit(context, [plan.run], _INTERVAL.end))
    costs.measure("close_hours", lambda: close_hours(context, [plan.run]))
    for stat in store.list("_ledger/"):
        name = stat.key.rsplit("/", 1)[1] if "/runs/" in stat.key else "hours" if "/hours/" in stat.key else "progress"
        costs.sizes[name] = costs.sizes.get(name, 0) + stat.size
    return costs


def _plan(archive: Archive, partitions: int, end: int) -> Plan:
    seen = [
        Seen(
            name=TopicPartition("scale", number),
            topic_id="id",
            committed=None,
            log_start=0,
            log_end=end,
            high=end,
            interval_start=0,
            interval_end=end,
            passed=end,
            begin=0,
        )
        for number in range(partitions)
    ]
    limit = archive.source.max_records_per_run
    return Plan(
        archive=archive.archive,
        interval=_INTERVAL,
        origin="scheduled",
        planned_at=_INTERVAL.end,
        cluster_id="scale",
        group=archive.group,
        settings=archive.settings,
        policies=archive.policies.model_dump(),
        partitions=tuple(plan_forward(limit, seen, {}, beginnings(archive, seen, {}), {})),
    )


def _written(chunk: Chunk, store: Store) -> ChunkResult:
    """What a task hands to the driver."""
    path = hour_path(_FIRST_MS // 3_600_000)
    key = object_key(Place(chunk.topic, chunk.partition, chunk.start, chunk.generation), path, ".jsonl.gz")
    upload_id = store.start_upload(key)
    count = chunk.end - chunk.start
    written = WrittenObject(
        chunk=chunk,
        path=path,
        rows=count,
        first_offset=chunk.start,
        last_offset=chunk.end - 1,
        min_timestamp=_FIRST_MS,
        max_timestamp=_FIRST_MS + 1,
        upload=PendingUpload(key, upload_id, (store.upload_part(key, upload_id, 1, b"x"),)),
    )
    return ChunkResult(account=ChunkAccount(**chunk.model_dump(), archived=count), objects=(written,))


def table(costs: list[Costs]) -> str:
    """A column a size; behind each figure, in microseconds or bytes, what it is an object, and the peak of memory."""
    rows: list[list[str]] = [["partitions × chunks", *(f"{c.partitions} × {c.chunks}" for c in costs)]]
    rows += [
        [f"{part}, CPU s", *(f"{_each(c.seconds[part], c, 'µs')} {c.peaks[part] >> 20:6,} MiB" for c in costs)]
        for part in costs[0].seconds
    ]
    rows += [[f"{name}, MB", *(_each(c.sizes[name] / 1e6, c, "B") for c in costs)] for name in costs[0].sizes]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([title.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(cells, widths[1:], strict=True))])
        for title, *cells in rows
    )


def _each(value: float, costs: Costs, unit: str) -> str:
    return f"{value:.2f} ({value * 1e6 / costs.objects:.1f} {unit})"


def main(arguments: list[str]) -> None:
    """Print the table; each size has a process of its own, so that its memory is its own."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description="Cost of a run beside its records.")
    parser.add_argument("sizes", nargs="*", metavar="PARTITIONSxCHUNKS", help="default: 50x100 500x100 500x1000")
    wanted = [tuple(map(int, size.split("x"))) for size in parser.parse_args(arguments).sizes] or list(SIZES)
    with ProcessPoolExecutor(1, max_tasks_per_child=1) as pool:
        print(table(list(pool.map(simulate, *zip(*wanted, strict=True)))))


if __name__ == "__main__":
    main(sys.argv[1:])
