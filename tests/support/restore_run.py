"""Restores random archives to a real broker under real kills: `python -m tests.support.restore_run --minutes 30`.

Attempts are killed, stopped, frozen and woken, and run beside each other; the broker is killed and frozen; the progress
group is deleted; other producers write to the target. After each attempt a consumer of the test's own must see a prefix
of what the source has, and at the end all of it; `verified` must be true exactly then. Prints the counts; the exit code
is 1 after a fault.
"""

import argparse
import base64
import random
import signal
import sys
import threading
import time
import traceback
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kafka_archiver.jobs.restore import RestoreJob
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.model.restore import (
    Partitioner,
    PartitionReport,
    RestoreLimits,
    RestoreOptions,
    RestorePlan,
    RestoreSelection,
)
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.spark.failures import PERMANENT_EXIT, TRANSIENT_EXIT
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.restore.plan import plan_restore
from kafka_archiver.work.restore.step import PartitionWork
from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.ports import free_ports
from scripts.stack.process import marked
from scripts.stack.s3 import S3, S3Ports
from tests.support import quick
from tests.support.archiver import Archiver, Services, hour
from tests.support.odd_records import STORES, Consumed, Content, archiver_options, consumed, odd_records
from tests.support.restore_attempts import Attempt, ForkedAttempt, SparkAttempt, Step, send_signal
from tests.support.topics import DAY, Record, new_topic, produce

RESTORES_OF_AN_ARCHIVE = 4
# Of an attempt that nobody disturbs any more; more for each partition of a pass, whose commit may have no answer for
# so long (`kafka.transactional`), one after the other.
PATIENCE, NO_ANSWER = 240.0, 95.0
# By weight.
MOVES = {
    "kill": 6, "terminate": 2, "freeze": 3, "overtake": 6, "run_beside": 2,
    "delete_group": 3, "write_foreign": 1, "abort_foreign": 2, "kill_broker": 1, "freeze_broker": 1,
}  # fmt: skip


class FaultError(AssertionError):
    """A promise of the restore that was broken."""


@dataclass(frozen=True)
class Archived:
    """An archive, and the records of its topic by partition."""

    archiver: Archiver
    records: list[list[Consumed]]

    @property
    def topic(self) -> str:
        """The source topic."""
        return self.archiver.topics[0]


class Broker:
    """The broker that all restores of a run share. It is killed only while nobody else but their attempts uses it."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka, self.address = kafka, kafka.bootstrap_servers
        self._users, self._change = 0, threading.Condition()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Use it."""
        with self._change:
            self._users += 1
        try:
            yield
        finally:
            with self._change:
                self._users -= 1
                self._change.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until nobody uses it, and let nobody use it."""
        with self._change:
            self._change.wait_for(lambda: not self._users)
            yield

    def kill(self, seconds: float) -> None:
        """Kill it, and start it again after a while."""
        with self.alone():
            self.kafka.stop(grace=0)
            time.sleep(seconds)
            self.kafka.start()

    def freeze(self, seconds: float) -> None:
        """Freeze it for a while."""
        with self.alone():
            processes = list(marked(self.kafka.directory))
            send_signal(processes, signal.SIGSTOP)
            time.sleep(seconds)
            send_signal(processes, signal.SIGCONT)


def archived(services: Services, draw: random.Random) -> Archived:
    """Archive a topic of records of every kind, in transactions, aborted ones too, and without, in several runs."""
    partitions = draw.randint(1, 3)
    brokers = services.kafka.bootstrap_servers
    topic = new_topic(brokers, partitions)
    store = draw.choice(list(STORES))
    options = archiver_options(store, chunk_records=draw.choice([20, 100, 1000]))
    archiver = services.archive_of(topic, **options)
    for number in range(draw.randint(1, 3)):
        for _ in range(draw.randint(1, 4)):
            records = odd_records(draw.randrange(10**9), partitions, draw.randint(5, 150))
            produce(brokers, topic, records, draw.choice([None, "commit", "abort"]))
        produce(brokers, topic, [Record(n % partitions, DAY + n, b"%d" % n) for n in range(draw.randint(1, 200))])
        archiver.run(hour(3 + number), plain=True)
    return Archived(archiver, [consumed(brokers, topic, partition) for partition in range(partitions)])


def chosen_selection(archive: Archived, draw: random.Random) -> tuple[RestoreSelection, list[list[Consumed]]]:
    """Return a selection, and the records that it takes, by partition."""
    selection = RestoreSelection(topics=(archive.topic,))
    kind = draw.choice(["all", "all", "all", "offsets", "key", "as of"])
    everything = [record for records in archive.records for record in records]
    some = draw.choice(everything)
    if kind == "offsets":
        offsets = sorted(draw.sample(range(max(record.offset for record in everything) + 2), 2))
        changed, takes = {"offsets": (offsets[0], offsets[1])}, lambda r: r.offset in Range(*offsets)
    elif kind == "key" and some.content.key is not None:
        key = some.content.key
        changed, takes = {"keys": (base64.b64encode(key).decode(),)}, lambda r: r.content.key == key  # type: ignore[dict-item]
    elif kind == "as of":
        changed, takes = {"as_of": DAY}, lambda r: r.content.timestamp < DAY  # type: ignore[dict-item]
    else:
        return selection, archive.records
    taken = [[record for record in records if takes(record)] for records in archive.records]
    # A restore of nothing is refused.
    return (selection.model_copy(update=changed), taken) if any(taken) else (selection, archive.records)


def target_partition(partitioner: Partitioner, source: int, key: bytes | None, partitions: int) -> int:
    """Return the target partition of a record."""
    if partitioner == "same":
        return source
    return source % partitions if key is None else zlib.crc32(key) % partitions


@dataclass
class Ordeal:
    """One restore, and what happens to it.

    `keyed`: keys choose the target's partition, and several partitions are written in one pass.
    `foreign`: values of other producers' committed records; `copies`: some of these equal records of the restore.
    `aborts`: other producers wrote and aborted, at which an attempt may stop, too; the next one goes on.
    """

    archive: Archived
    broker: Broker
    draw: random.Random
    counts: Counter[str]
    spark: bool = False
    keyed: bool = False
    foreign: set[bytes | None] = field(default_factory=set)
    copies: bool = False
    aborts: bool = False

    def __post_init__(self) -> None:
        self.archiver, self.brokers = self.archive.archiver, self.broker.address
        self.name = f"r-{uuid.uuid4().hex[:8]}"
        selection, selected = chosen_selection(self.archive, self.draw)
        partitioner: Partitioner = "crc32" if self.keyed else self.draw.choice(["same", "same", "crc32"])
        partitions = len(selected) if partitioner == "same" else self.draw.randint(2, 6 if self.keyed else 4)
        # By target partition: the source partition and the record, in the order of writing.
        self.routed: list[list[tuple[int, Consumed]]] = [[] for _ in range(partitions)]
        for source, records in enumerate(selected):
            for record in records:
                target = target_partition(partitioner, source, record.content.key, partitions)
                self.routed[target].append((source, record))
        self.topic = new_topic(self.brokers, partitions)
        self.before: list[list[Content]] = [[] for _ in range(partitions)]
        append = self.draw.random() < 0.2
        if append:
            produce(self.brokers, self.topic, odd_records(self.draw.randrange(10**9), partitions, 7))
            self.before = [[r.content for r in consumed(self.brokers, self.topic, n)] for n in range(partitions)]
        limits = RestoreLimits(
            transaction_bytes=self.draw.choice([200, 2_000, 20_000, 10**7]),
            transaction_seconds=self.draw.choice([1, 10]),
            records_per_second=self.draw.choice([None, 100, 300, 1_000]),
        )
        request = RestoreRequest(
            self.name,
            selection,
            {self.archive.topic: self.topic},
            partitioner,
            options=RestoreOptions(append=append),
            limits=limits,
        )
        self.plan: RestorePlan = plan_restore(
            self.archiver.context.ledger, Cluster({"bootstrap.servers": self.brokers}), request
        )
        self.expected = [
            [*before, *(record.content for _, record in records)]
            for before, records in zip(self.before, self.routed, strict=True)
        ]

    def run(self) -> None:
        """Disturb some attempts, let one end, and compare.

        :raises FaultError: a promise is broken.
        """
        self.counts["restores"] += 1
        for _ in range(self.draw.randint(0, 1 if self.spark else 4)):
            self.disturbed(depth=0)
            self.require_prefix()
        self.finish()
        self.verify()
        if self.draw.random() < 0.3:
            self.write_foreign(None, 0)
            self.verify()

    # Attempts

    def start(self, step: Step) -> Attempt:
        """Start an attempt at a step."""
        self.counts["attempts" if step == "write" else "verifications"] += 1
        log = self.archiver.directory / f"{self.name}.{uuid.uuid4().hex[:6]}.log"
        if self.spark:
            return SparkAttempt(log, self.archiver, self.name, step)
        endpoints = self.archiver._outside()
        work = PartitionWork(
            archive=self.archiver.archive.archive,
            restore=self.name,
            url=self.archiver.archive.store.url,
            options=RestoreJob.of(self.archiver.archive, [self.name, step]).options(endpoints),
            endpoints=endpoints,
            allow=frozenset(),
        )
        # Attempts that run beside each other may divide the partitions in different ways.
        return ForkedAttempt(log, work, step, self.draw.choice([1, 1, 2]) if self.keyed else 2)

    def disturbed(self, depth: int) -> None:
        """Start an attempt, let something happen to it, and wait for its end."""
        attempt = self.start("write")
        for _ in range(self.draw.choice([1, 1, 2, 3])):
            if attempt.code(self.delay()) is not None:
                break
            weights = {move: weight for move, weight in MOVES.items() if depth < 2 or move not in _NESTED}
            [move] = self.draw.choices(list(weights), list(weights.values()))
            self.counts[move] += 1
            getattr(self, move)(attempt, depth)
        self.code(attempt, is_disturbed=True)

    def delay(self) -> float:
        """Return how long to wait for the next move."""
        if self.spark:
            return self.draw.uniform(0, 25)
        return self.draw.uniform(0, self.draw.choice([0.1, 0.5, 2.0]))

    def code(self, attempt: Attempt, is_disturbed: bool = False) -> int:
        """Return the exit code of an attempt at its end.

        :raises FaultError: it does not end, or ended by something that nobody has done to it.
        """
        code = attempt.code(PATIENCE + NO_ANSWER * (len(self.expected) - 1))
        if code is None:
            send_signal(attempt.processes(), signal.SIGKILL)
            raise self.fault("an attempt that did not end", attempt)
        self.counts[f"code {code}"] += 1
        are_others = bool(self.foreign) or self.copies or self.aborts
        is_fair = code in (0, TRANSIENT_EXIT) or (code == PERMANENT_EXIT and are_others)
        if not is_fair and not (is_disturbed and (code < 0 or self.spark)):
            raise self.fault(f"an attempt that ended with {code}", attempt)
        return code

    def described(self) -> str:
        """Return what is special about the restore."""
        selection = self.plan.selection.model_dump(exclude_defaults=True)
        store = self.archiver.archive.store
        plan = f"{self.plan.topics[0].partitioner} {self.plan.limits} {self.plan.options}"
        options = f"{store.format} {selection} {plan}, on Spark: {self.spark}"
        return f"restore {self.name} of {options}, {self.archiver.archive.archive} to {self.topic}"

    def fault(self, text: str, attempt: Attempt | None = None) -> FaultError:
        """Return the error for a broken promise, with the end of an attempt's log."""
        log = attempt.log.read_text(errors="replace")[-6000:] if attempt and attempt.log.exists() else ""
        return FaultError(f"{self.described()}: {text}\n{log}")

    # Moves

    def kill(self, attempt: Attempt, _: int) -> None:
        """Kill the attempt: all of its processes, or any of them."""
        processes = attempt.processes()
        if self.spark and processes and self.draw.random() < 0.6:
            processes = [self.draw.choice(processes)]
        self.counts["attempts killed"] += bool(processes)
        send_signal(processes, signal.SIGKILL)

    def terminate(self, attempt: Attempt, _: int) -> None:
        """Ask the attempt to end."""
        send_signal(attempt.processes(), signal.SIGTERM)

    def freeze(self, attempt: Attempt, _: int) -> None:
        """Freeze the attempt for a while."""
        processes = attempt.processes()
        self.counts["attempts frozen"] += bool(processes)
        send_signal(processes, signal.SIGSTOP)
        time.sleep(self.delay())
        send_signal(processes, signal.SIGCONT)

    def overtake(self, attempt: Attempt, depth: int) -> None:
        """Freeze the attempt, start another one beside it, and wake the first when that is over."""
        processes = attempt.processes()
        self.counts["attempts frozen"] += bool(processes)
        send_signal(processes, signal.SIGSTOP)
        try:
            self.disturbed(depth + 1)
            self.require_prefix()
        finally:
            send_signal(processes, signal.SIGCONT)

    def run_beside(self, _: Attempt, depth: int) -> None:
        """Start another attempt beside the first, which goes on."""
        self.disturbed(depth + 1)

    def delete_group(self, *_: Any) -> None:
        """Delete the group with the progress."""
        with self.broker.used(), suppress(KafkaException, TimeoutError):
            admin = AdminClient({"bootstrap.servers": self.brokers})
            admin.delete_consumer_groups([self.plan.group])[self.plan.group].result(30)
            self.counts["groups deleted"] += 1

    def write_foreign(self, *_: Any) -> None:
        """Write a record of another producer to the target: any, or one that equals a record of the restore."""
        partition = self.draw.randrange(len(self.expected))
        if self.routed[partition] and self.draw.random() < 0.4:
            copied = self.draw.choice(self.routed[partition])[1].content
            self.copies = True
            record = Record(partition, copied.timestamp, copied.value, copied.key, copied.headers)
        else:
            record = Record(partition, DAY, b"foreign %d" % self.draw.randrange(10**12))
            self.foreign.add(record.value)
        self.counts["foreign writes"] += 1
        with self.broker.used():
            produce(self.brokers, self.topic, [record], self.draw.choice([None, "commit"]))

    def abort_foreign(self, *_: Any) -> None:
        """Let another producer write to the target, and abort."""
        partition, self.aborts = self.draw.randrange(len(self.expected)), True
        with self.broker.used():
            produce(self.brokers, self.topic, [Record(partition, DAY, b"aborted")] * self.draw.randint(1, 3), "abort")

    def kill_broker(self, *_: Any) -> None:
        """Kill the broker, and start it again."""
        self.broker.kill(self.draw.uniform(0, 3))

    def freeze_broker(self, *_: Any) -> None:
        """Freeze the broker for a while."""
        self.broker.freeze(self.draw.uniform(0, 5))

    # Comparison

    def consumed(self) -> list[list[Consumed]]:
        """Return what a consumer of the target sees of committed records."""
        with self.broker.used():
            return [consumed(self.brokers, self.topic, partition) for partition in range(len(self.expected))]

    def require_prefix(self) -> None:
        """Check that the target has a prefix of what is expected, and others' records.

        :raises FaultError: it has not.
        """
        if self.copies:
            return
        for partition, (records, expected) in enumerate(zip(self.consumed(), self.expected, strict=True)):
            restored = [record.content for record in records if record.content.value not in self.foreign]
            if restored != expected[: len(restored)]:
                self.count_differences(restored, expected)
                raise self.fault(
                    f"partition {partition} has {len(restored)} records that are no prefix of the source's"
                )

    def count_differences(self, restored: list[Content], expected: list[Content]) -> None:
        """Count what is wrong with the records of a partition."""
        surplus, missing = Counter(restored) - Counter(expected), Counter(expected[: len(restored)]) - Counter(restored)
        self.counts["lost"] += missing.total()
        self.counts["twice"] += surplus.total()
        self.counts["out of order"] += not surplus and not missing

    def finish(self) -> None:
        """Let attempts run until one ends well, or names what others have written.

        :raises FaultError: none does.
        """
        for _ in range(8):
            attempt = self.start("write")
            code = self.code(attempt)
            if code == PERMANENT_EXIT and (self.foreign or self.copies):
                self.counts["foreign records named"] += 1
                return
            self.require_prefix()
            if code == 0:
                return
            time.sleep(1)
        raise self.fault("no attempt ended well", attempt)

    def verify(self) -> None:
        """Verify, and compare the verdict with what a consumer sees.

        :raises FaultError: the verdict is wrong.
        """
        if self.draw.random() < 0.2 and not self.spark:
            attempt = self.start("verify")
            attempt.code(self.delay() / 5)
            send_signal(attempt.processes(), signal.SIGKILL)
            attempt.code(PATIENCE)
            self.counts["verifications killed"] += 1
        for _ in range(5):
            attempt = self.start("verify")
            code = attempt.code(PATIENCE)
            if code in (0, PERMANENT_EXIT):
                break
            if code != TRANSIENT_EXIT:
                raise self.fault(f"a verification that ended with {code}", attempt)
        report = self.archiver.context.ledger.restore_report(self.name).document
        if report is None:
            raise self.fault("there is no report", attempt)
        consumed = self.consumed()
        is_right = [[record.content for record in records] for records in consumed] == self.expected
        if report.verified != is_right or report.verified != (code == 0):
            self.counts["false verified" if report.verified else "false unverified"] += 1
            raise self.fault(f"verified is {report.verified}, and the records are {is_right}", attempt)
        self.counts["verified" if is_right else "found not verified"] += 1
        if is_right:
            self.require_map(consumed)
            for part in report.partitions:
                self.require_aborted(part)

    def require_map(self, consumed: list[list[Consumed]]) -> None:
        """Check where the map says that each record went.

        :raises FaultError: a record is elsewhere.
        """
        offset_map = self.archiver.context.ledger.restore_map(self.name).document
        assert offset_map
        for log in offset_map.logs:
            restored = consumed[log.target_partition][len(self.before[log.target_partition]) :]
            for (source, record), target in zip(self.routed[log.target_partition], restored, strict=True):
                if source == log.partition and log.translate(record.offset) != target.offset:
                    raise self.fault(f"the map of {log.source} is wrong at {record.offset}: {target.offset} is right")

    def require_aborted(self, part: PartitionReport) -> None:
        """Check the number of aborted records.

        :raises FaultError: another number is in the log.
        """
        with self.broker.used():
            uncommitted = consumed(self.brokers, self.topic, part.partition, "read_uncommitted")
        records = len(uncommitted) - len(self.before[part.partition])
        if records != part.records + part.aborted:
            raise self.fault(f"{records} records are in the log of {part}")

    def close(self) -> None:
        """Remove the target, so that the broker has few topics."""
        with self.broker.used(), suppress(KafkaException, TimeoutError):
            AdminClient({"bootstrap.servers": self.brokers}).delete_topics([self.topic])[self.topic].result(30)
        for log in self.archiver.directory.glob(f"{self.name}.*.log"):
            log.unlink()


_NESTED = ("overtake", "run_beside")


@contextmanager
def servers(directory: Path) -> Iterator[Services]:
    """A broker that may be killed, and an S3 server."""
    s3 = S3(directory / "s3", free_ports(S3Ports))
    kafka = Kafka(directory / "kafka", free_ports(KafkaPorts), java=quick.JAVA)
    with ExitStack() as stack:
        for server in (s3, kafka):
            stack.callback(server.stop, grace=0)
            server.start()
        yield Services(kafka, s3, directory)


@dataclass
class Run:
    """Restores, one after the other. `spark_share`: of the time, for jobs on Spark. `keyed`: as of `Ordeal`."""

    services: Services
    broker: Broker
    draw: random.Random
    spark_share: float
    keyed: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    spark_seconds: float = 0.0

    def until(self, end: float, stopped: threading.Event) -> None:
        """Restore until a time, or until it is stopped."""
        began = time.monotonic()
        while time.monotonic() < end and not stopped.is_set():
            try:
                with self.broker.used():
                    archive = archived(self.services, self.draw)
            except TransientError:
                # The broker is starting again.
                self.counts["archives not made"] += 1
                continue
            self.counts["archives"] += 1
            for _ in range(RESTORES_OF_AN_ARCHIVE):
                start = time.monotonic()
                if start > end or stopped.is_set():
                    break
                spark = self.spark_seconds < self.spark_share * (start - began)
                self.restore(archive, spark)
                if spark:
                    self.spark_seconds += time.monotonic() - start
                    self.counts["restores on Spark"] += 1

    def restore(self, archive: Archived, spark: bool) -> None:
        """Restore once; print a fault."""
        try:
            with self.broker.used():
                ordeal = Ordeal(archive, self.broker, self.draw, self.counts, spark, self.keyed)
        except TransientError:
            self.counts["restores not planned"] += 1
            return
        try:
            with closing(ordeal):
                ordeal.run()
        except Exception:  # noqa: BLE001 - print every failure
            self.counts["faults"] += 1
            print(traceback.format_exc(), flush=True)


def run_for(minutes: float, seed: int, at_once: int, spark_share: float, keyed: bool = False) -> Counter[str]:
    """Restore for some time, so many at once, of which the first also runs jobs on Spark. Return the counts."""
    with TemporaryDirectory(prefix="restores-") as directory, servers(Path(directory)) as services:
        end, broker = time.monotonic() + minutes * 60, Broker(services.kafka)
        runs = [
            Run(services, broker, random.Random(seed + number), spark_share * (number == 0), keyed)
            for number in range(at_once)
        ]
        with ThreadPoolExecutor(at_once) as pool:
            stopped = threading.Event()
            ends = [pool.submit(run.until, end, stopped) for run in runs]
            try:
                while wait(ends, timeout=60).not_done:
                    print(shown(counts_of(runs)), flush=True)
            finally:
                stopped.set()
            for ended in ends:
                ended.result()
    return counts_of(runs)


def counts_of(runs: Sequence[Run]) -> Counter[str]:
    """Return the counts of all runs."""
    return sum((run.counts for run in runs), Counter())


def shown(counts: Counter[str]) -> str:
    """Return counts as a line."""
    return f"restores: {counts['faults']} faults, {dict(sorted(counts.items()))}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, help="of the moves; the moments of a kill are never the same")
    parser.add_argument("--at-once", type=int, default=4, help="restores; they wait most of the time")
    parser.add_argument("--spark-share", type=float, default=0.5, help="of the first one's time, for jobs on Spark")
    parser.add_argument("--keyed", action="store_true", help="keys choose all partitions: several in one pass")
    options = parser.parse_args()
    # So that what it has started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    counts = run_for(options.minutes, seed, options.at_once, options.spark_share, options.keyed)
    print(f"seed {seed}, {shown(counts)}", flush=True)
    return counts["faults"] > 0


if __name__ == "__main__":
    sys.exit(main())
