"""What a run costs beside its records: `python -m bench.scale --settled 100000 --audit`, by how many runs came before
it, and what an audit of them costs; `python -m bench.scale --transactions 1000000`, of so many transactions of one
record each.

Planning, the driver's finish, verify, commit and close_hours, without brokers, Spark or a server: the steps' own code
on the store's twin in memory and on partitions that are made up. One object a chunk, each of one byte. Runs that came
before are written as documents, and settled by the code that `close_hours` settles with.
"""

import argparse
import gc
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from bench.processes import memory
from kafka_archiver.checksum import crc32
from kafka_archiver.config import Archive
from kafka_archiver.formats.base import VALUE
from kafka_archiver.intervals import Interval, hour_start, to_hour, to_ms
from kafka_archiver.kafka.cluster import Cluster, Position, Topic
from kafka_archiver.kafka.first import LogEnd
from kafka_archiver.keys import Place, object_key
from kafka_archiver.layouts.hourly import hour_path
from kafka_archiver.ledger import Ledger, Stored
from kafka_archiver.manifest import ChunkAccount, Commit, Intent, Manifest
from kafka_archiver.plan import BadRecord, Chunk, Plan
from kafka_archiver.progress import Progress
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.settling import Settling
from kafka_archiver.steps.archive.finish import finish
from kafka_archiver.steps.archive.policies import ReadPolicies
from kafka_archiver.steps.archive.step import ArchiveStep
from kafka_archiver.steps.auditing import audit
from kafka_archiver.steps.close_hours import close_hours
from kafka_archiver.steps.commit import commit
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.plan import plan, propose
from kafka_archiver.steps.stamp import stamp
from kafka_archiver.steps.verify import verify
from kafka_archiver.store.base import Store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.writer.chunk import write_chunk
from kafka_archiver.writer.commit import complete
from kafka_archiver.writer.result import ChunkResult, Limits, WriteJob, WrittenObject

_CHUNK = 1000
_FORGET_PEAK = Path("/proc/self/clear_refs")
_LAST = to_hour(datetime(2026, 11, 21, tzinfo=UTC))
# Runs of which the cheapest counts: other work on the machine only adds.
_RUNS = 21
_FEW = 100
Done = TypeVar("Done")


@dataclass
class _Cluster:
    """What the steps ask of the brokers: one topic, all of whose logs end at `end`."""

    partitions: int
    end: int = 0
    stands: dict[TopicPartition, Position] = field(default_factory=dict)

    def cluster_id(self) -> str:
        return "scale"

    def topics(self, _wanted: object) -> list[Topic]:
        return [Topic("scale", "id", self.partitions)]

    def topic_ids(self, topics: set[str]) -> dict[str, str]:
        return dict.fromkeys(topics, "id")

    def members(self, _group: str) -> list[str]:
        return []

    def positions(self, _group: str, names: list[TopicPartition]) -> dict[TopicPartition, Position | None]:
        return {name: self.stands.get(name) for name in names}

    def log_starts(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(names, 0)

    def log_ends(self, names: Iterable[TopicPartition], _isolation: str) -> dict[TopicPartition, int]:
        return dict.fromkeys(names, self.end)

    def high_watermarks(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        return dict.fromkeys(names, LogEnd(self.end, 0))

    def truncated(self, ends: Mapping[TopicPartition, LogEnd]) -> dict[TopicPartition, None]:
        return dict.fromkeys(ends)

    def first_records(self, starts: Mapping[TopicPartition, int]) -> dict[TopicPartition, None]:
        return dict.fromkeys(starts)

    def latest_times(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(names, 0)

    def move_group(self, _group: str, offsets: Mapping[TopicPartition, int], stamp: str) -> None:
        self.stands |= {name: Position(offset, stamp) for name, offset in offsets.items()}


class _Counted:
    """A store that counts requests."""

    def __init__(self, inner: Store) -> None:
        self._inner, self.requests = inner, 0
        self.clock = hour_start(_LAST)

    def now(self) -> datetime:
        """The hour that the run is of, not today's."""
        self.requests += 1
        return self.clock

    def __getattr__(self, name: str) -> Any:
        answer = getattr(self._inner, name)
        self.requests += callable(answer)
        return answer


@dataclass
class Costs:
    """By part: CPU seconds, the most memory this process had in it, how much that was more than before, requests to
    the store."""

    title: str
    seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    more: dict[str, int] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)


@dataclass
class _Archive:
    """One archive, a run an hour: `number` is the next one's."""

    partitions: int
    chunks: int
    chunk_records: int = _CHUNK
    number: int = 1

    def __post_init__(self) -> None:
        name = uuid.uuid4().hex
        self.archive = Archive.model_validate(
            {
                "archive": "scale",
                "source": {"topics": ["scale"], "max_records_per_run": self.partitions * self._records},
                "store": {"url": f"memory://{name}", "chunk_records": self.chunk_records},
            }
        )
        self.cluster = _Cluster(self.partitions)
        self.store = _Counted(MemoryStore(name))
        self.ledger = Ledger(cast(Store, self.store), self.archive.archive)
        self.context = Context(
            self.archive, cast(Cluster, self.cluster), cast(Store, self.store), self.ledger, lambda: self.now
        )
        self.at(_LAST)

    @property
    def _records(self) -> int:
        """What a run takes of a partition."""
        return self.chunks * self.chunk_records

    def at(self, hour: int) -> None:
        """The run of this hour is next."""
        self.interval = Interval(start=hour_start(hour), end=hour_start(hour + 1))
        self.now = self.interval.end + timedelta(seconds=4)
        self.store.clock = self.now
        self.cluster.end = self.number * self._records

    def settle(self, count: int) -> None:
        """So many runs that are over: their documents, and what `close_hours` makes of them."""
        progress, made = Progress(archive=self.archive.archive), None
        for self.number in range(1, count + 1):
            self.at(_LAST - count + self.number - 1)
            made = _next(made, self) if made else propose(self.context, self.interval, "scheduled")
            progress = self._settled(made, progress)
        if made:
            self.ledger.put_progress(progress, Stored(None, None))
            ends = {p.name: p.end for p in made.partitions}
            self.cluster.move_group(made.group, ends, stamp(made.archive, made.number))
        self.number = count + 1

    def _settled(self, made: Plan, before: Progress) -> Progress:
        """Everything that is written for a run; what is settled with it."""
        ledger, run, name = self.ledger, made.run, made.archive
        ledger.append(made)
        ledger.file_plan(made)
        results = [_written(chunk, self.interval, self.context.store) for chunk in made.chunks()]
        entries = complete(results, self.context.store, threads=1)
        manifest = Manifest.of(made, entries, [result.account for result in results])
        keys = tuple(o.key for o in manifest.objects)
        ledger.put_intent(Intent(archive=name, run=run, attempt=1, done=True, keys=keys), Stored(None, None))
        ledger.create_manifest(manifest)
        ledger.create_commit(
            Commit(
                archive=name,
                run=run,
                plan_digest=made.digest,
                manifest_digest=manifest.digest,
                committed_at=self.now,
            )
        )
        one = Settling(before, made, "committed", manifest, None, self.now)
        proofs = [one.prove(hour, ledger.hour(hour), None) for hour in one.hours]
        for proof in proofs:
            ledger.put_hour(proof, ledger.stored_hour(proof.hour))
        ledger.create_settled(one.done(proofs))
        return one.after

    def run(self) -> Costs:
        """The next run, from the brokers' answers to the proofs."""
        costs = Costs("")
        context, ledger, store = self.context, self.ledger, self.context.store
        measure = partial(self.measure, costs)
        work = measure("plan", lambda: plan(context, self.interval, "scheduled"))
        [run] = work.runs
        made = measure("plan: read", lambda: ledger.plan(run))
        assert made
        chunks = measure("plan: chunks", lambda: list(made.chunks()))
        results = [_written(chunk, self.interval, store) for chunk in chunks]
        logs = {p.name: Range(p.log_start, p.log_end) for p in made.partitions}
        measure("finish", lambda: finish(made, None, results, logs, ReadPolicies(), store, ledger))
        results.clear()
        measure("manifest: read", lambda: ledger.manifest(run))
        measure("commit", lambda: commit(context, [run]))
        measure("close_hours", lambda: close_hours(context, [run]))
        # It lists folders, for which the twin looks at all its keys; behind that nothing is in the CPU's caches.
        measure("verify", lambda: verify(context, [run]))
        return costs

    def audit(self, costs: Costs) -> None:
        """All of it against its ledger."""
        report = self.measure(costs, "audit", lambda: audit(self.archive, self.context.store, self.now))
        assert report.verdict == "clean", report.findings[:3]

    def measure(self, costs: Costs, part: str, work: Callable[[], Done]) -> Done:
        """Run it, and note its CPU time, that of its threads included, its memory and its requests."""
        gc.collect()
        _FORGET_PEAK.write_text("5")
        was, asked, began = memory(os.getpid()).peak, self.store.requests, time.process_time()
        done = work()
        costs.seconds[part] = time.process_time() - began
        costs.peaks[part] = memory(os.getpid()).peak
        costs.more[part] = costs.peaks[part] - was
        costs.requests[part] = self.store.requests - asked
        return done


def grow(settled: int, audited: bool = False) -> list[Costs]:
    """A run of four partitions after few runs, and one after so many: in one process and in turns, since a large heap
    alone makes everything slower. Of each the cheapest of several; and an audit of all of them."""
    archives = [_Archive(4, 1), _Archive(4, 1)]
    for archive, count in zip(archives, (_FEW, settled), strict=True):
        archive.settle(count)
    # What the twin holds is no part of it, so nobody searches it for cycles.
    gc.collect()
    gc.freeze()
    runs: list[list[Costs]] = [[], []]
    for number in range(_RUNS):
        for archive, done in zip(archives, runs, strict=True):
            archive.at(_LAST + number)
            done.append(archive.run())
            archive.number += 1
    found = [Costs(f"{_FEW} settled"), Costs(f"{settled:,} settled")]
    for archive, costs, of in zip(archives, found, runs, strict=True):
        for name in ("seconds", "peaks", "more", "requests"):
            getattr(costs, name).update({part: min(getattr(one, name)[part] for one in of) for part in of[0].seconds})
        if audited:
            archive.audit(costs)
    gc.unfreeze()
    return found


class _Transactions:
    """Writes chunks of a log of which every second offset is a transaction's marker."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, plan: Plan, chunks: Sequence[Chunk], bad_record: BadRecord) -> list[ChunkResult]:
        """Of each chunk a record an hour's 200 ms."""
        job = WriteJob.of(plan, bad_record)
        return [write_chunk(chunk, self._batches(plan, chunk), job, self._store, Limits()) for chunk in chunks]

    def _batches(self, plan: Plan, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        first = to_ms(plan.interval.start)
        for start in range(chunk.start, chunk.end, 10_000):
            offsets = np.arange(start, min(start + 10_000, chunk.end), 2)
            values = [b'{"order": %d, "note": "%s"}' % (offset, b"x" * 100) for offset in offsets.tolist()]
            arrays = {"offset": offsets, "timestamp": first + offsets // 1000, "value": values}
            yield pa.RecordBatch.from_arrays([pa.array(arrays[f.name], f.type) for f in VALUE], schema=VALUE)


def transactions(count: int) -> Costs:
    """A run of so many transactions of one record each, in chunks of a million offsets."""
    chunks = max(1, count // 500_000)
    archive = _Archive(1, chunks, 2 * count // chunks)
    costs, context = Costs(f"{count:,} transactions"), archive.context
    measure = partial(archive.measure, costs)
    runs = measure("plan", lambda: plan(context, archive.interval, "scheduled")).runs
    job = ArchiveStep(context.cluster, context.store, archive.ledger, _Transactions(context.store), ReadPolicies())
    measure("archive", lambda: job.run(runs[0]))
    measure("verify", lambda: verify(context, runs))
    measure("commit", lambda: commit(context, runs))
    measure("close_hours", lambda: close_hours(context, runs))
    archive.audit(costs)
    return costs


def _next(plan: Plan, archive: _Archive) -> Plan:
    """The plan of the run that follows, as `plan` would make it."""
    end = archive.cluster.end
    moved = {"log_end": end, "high": end, "end": end}
    return plan.model_copy(
        update={
            "number": archive.number,
            "interval": archive.interval,
            "planned_at": archive.now,
            "partitions": tuple(
                p.model_copy(update={**moved, "start": p.end, "ranges": (Range(p.end, end),)}) for p in plan.partitions
            ),
        }
    )


def _written(chunk: Chunk, interval: Interval, store: Store) -> ChunkResult:
    """What a task hands to the driver."""
    first = to_ms(interval.start)
    path = hour_path(to_hour(interval.start))
    key = object_key(Place(chunk.topic, chunk.partition, chunk.start, chunk.generation), path, ".jsonl.gz")
    begun = store.start_upload(key)
    count = chunk.end - chunk.start
    written = WrittenObject(
        chunk=chunk,
        path=path,
        rows=count,
        first_offset=chunk.start,
        last_offset=chunk.end - 1,
        min_timestamp=first,
        max_timestamp=first + 1,
        records=count,
        upload=begun._replace(parts=(store.upload_part(begun, 1, b"x", crc32(b"x")),)),
    )
    return ChunkResult(account=ChunkAccount(**chunk.model_dump(), archived=count), objects=(written,))


def growth(costs: list[Costs]) -> str:
    """A column a number of runs: CPU milliseconds, requests, how much memory was needed besides what was there, and the
    most that the process had."""
    rows = [["CPU ms, requests, MiB more, MiB", *(c.title for c in costs)]]
    rows += [[part, *(_figures(c, part) for c in costs)] for part in costs[0].seconds]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([title.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(cells, widths[1:], strict=True))])
        for title, *cells in rows
    )


def _figures(costs: Costs, part: str) -> str:
    more, peak = costs.more[part] / 2**20, costs.peaks[part] >> 20
    return f"{costs.seconds[part] * 1e3:,.1f} {costs.requests[part]:9,} {more:8,.1f} {peak:7,}"


def main(arguments: list[str]) -> None:
    """Print the table; each figure asked for has a process of its own, so that its memory is its own."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description="Cost of a run beside its records.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--settled", nargs="+", type=int, default=(), metavar="RUNS", help="after so many runs")
    what.add_argument("--transactions", nargs="+", type=int, default=(), metavar="COUNT", help="of one record each")
    parser.add_argument("--audit", action="store_true", help="with --settled: audit all of them, too")
    given = parser.parse_args(arguments)
    with ProcessPoolExecutor(1, max_tasks_per_child=1) as pool:
        for settled in given.settled:
            print(growth(pool.submit(grow, settled, given.audit).result()))
        if given.transactions:
            print(growth(list(pool.map(transactions, given.transactions))))


if __name__ == "__main__":
    main(sys.argv[1:])
