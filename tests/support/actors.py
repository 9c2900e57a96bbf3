"""Concurrent attempts: each runs in its own thread, and makes a call only when the test lets it.

An attempt can stop before any call to the store or the brokers while others go on; later it continues, or dies. One
thread runs at a time, so a sequence is reproducible.
"""

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from kafka_archiver.messages.errors import ArchiverError, TransientError
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.model.set_aside import FatalRecordsError, RecordAside
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.dead_letter_reader import read_letters
from kafka_archiver.records.writer.finish_uploads import abort
from kafka_archiver.records.writer.result import ChunkResult, Limits, WriteJob
from kafka_archiver.store import Store

Answer = TypeVar("Answer")
Read = Callable[[Chunk, Settings], Iterator[pa.RecordBatch]]
ChunkRecords = tuple[Chunk, Iterable[pa.RecordBatch]]
SECONDS = 300.0


class Killed(BaseException):
    """The process is dead: its code stops, and `except Exception` does not catch this."""


class Actor:
    """An attempt, stopped before its next call.

    :ivar calls: the calls so far: whose, the name, the key if it has one, and `nothing` if that was the answer.
    :ivar error: the error that ended it.
    """

    def __init__(self, work: Callable[["Actor"], None]) -> None:
        self.calls: list[str] = []
        self.error: BaseException | None = None
        self.done = False
        # How the next call fails: `refuse`, not made; `forget`, made, but its answer is lost.
        self.fail_next = ""
        self._dead = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        # The threads of a pool take turns.
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()
        self._wait()

    def _run(self, work: Callable[["Actor"], None]) -> None:
        try:
            work(self)
        except BaseException as error:  # noqa: BLE001 - whatever it was, the model looks at it
            self.error = error
        finally:
            self.done = True
            self._stopped.release()

    def _wait(self) -> None:
        assert self._stopped.acquire(timeout=SECONDS), "an attempt neither ends nor makes a call"

    def around(self, name: str, call: Callable[[], Answer]) -> Answer:
        """Wait for permission, then make the call."""
        with self._turn:
            if not self._dead:
                self._stopped.release()
                assert self._go.acquire(timeout=SECONDS), "the test does not let this attempt continue"
            if self._dead:
                raise Killed
            self.calls.append(name)
            fault, self.fail_next = self.fail_next, ""
            if fault == "refuse":
                raise TransientError(f"{name}: no answer, and nothing is done")
            answer = call()
            if fault == "forget":
                raise TransientError(f"{name}: no answer, though it is done")
            if answer is None:
                self.calls[-1] += " nothing"
            return answer

    def advance(self, calls: int = 1 << 30) -> None:
        """Let it make so many calls, or continue to its end. Raises the error that ended it, unless it was killed."""
        while calls > 0 and not self.done:
            calls -= 1
            self._go.release()
            self._wait()
        if self.done and self.error is not None and not isinstance(self.error, Killed):
            error, self.error = self.error, None
            raise error

    def kill(self) -> None:
        """Stop it for good."""
        self._dead = True
        while not self.done:
            self._go.release()
            self._wait()
        self._thread.join(SECONDS)
        if self.error is not None and not isinstance(self.error, Killed | ArchiverError):
            raise self.error


class Watched:
    """A store or a cluster whose calls wait for an actor's permission. :param kind: comes before a call's name."""

    def __init__(self, kind: str, inner: Any, actor: Actor) -> None:
        self._kind, self._inner, self._actor = kind, inner, actor

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if not callable(attribute):
            return attribute

        def call(*args: Any, **kwargs: Any) -> Any:
            key = f" {args[0]}" if args and isinstance(args[0], str) else ""
            # Generators run when they are read, after the permission: that is precise enough.
            return self._actor.around(f"{self._kind} {name}{key}", lambda: attribute(*args, **kwargs))

        return call


@dataclass(frozen=True)
class WatchedEngine:
    """Does the work of `SparkEngine`'s tasks, chunk by chunk."""

    read: Read
    store: Store
    limits: Limits
    actor: Actor

    # Evaluates a plan's SQL: takes the records of each chunk, and gives them back with Spark's results.
    sql: Callable[[Plan, WriteJob, Sequence[ChunkRecords]], Sequence[ChunkRecords]] | None = None
    # Why records end this process, by offset; of their values.
    fatal: Callable[[Mapping[int, bytes | None]], Mapping[int, str]] = lambda values: {}

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        settings = plan.settings.model_copy(update={"content": "record"} if job.bad_record == "dead_letter" else {})
        results: list[ChunkResult] = []
        try:
            records = ((chunk, self._records(plan, chunk, settings, job)) for chunk in chunks)
            transform = plan.settings.transform
            if transform and transform.sql:
                assert self.sql, "a plan with SQL, and no Spark"
                records = iter(self.sql(plan, job, [(chunk, list(batches)) for chunk, batches in records]))
            for chunk, batches in records:
                whole = plan.chunk_of(chunk.name, chunk.start)
                assert whole is not None
                results.append(write_chunk(whole, batches, job, self.store, self.limits))
        except Exception:
            abort(results, self.store)
            raise
        return results

    def _records(self, plan: Plan, chunk: Chunk, settings: Settings, job: WriteJob) -> Iterator[pa.RecordBatch]:
        letters = plan.letters_of(chunk)
        assert letters or not job.aside or job.aside.readable([chunk]), "Spark has no result of such a chunk"
        if letters:
            return self._decoded(chunk, read_letters(self.store, chunk, letters, job.data_keys), job)
        return self._decoded(chunk, self._batches(chunk, settings, job), job)

    def _batches(self, chunk: Chunk, settings: Settings, job: WriteJob) -> Iterator[pa.RecordBatch]:
        for part in job.aside.readable([chunk]) if job.aside else [chunk]:
            batches = self.actor.around("kafka read", functools.partial(self.read, part, settings))
            while (batch := self.actor.around("kafka read", functools.partial(next, batches, None))) is not None:
                yield batch

    def _decoded(self, chunk: Chunk, batches: Iterable[pa.RecordBatch], job: WriteJob) -> Iterator[pa.RecordBatch]:
        """Yield the batches, until one has a record that ends the process that decodes it."""
        for batch in batches:
            values = zip(batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True)
            if fatal := self.fatal({o: value for o, value in values if o not in job.set_aside(chunk)}):
                raise FatalRecordsError(
                    RecordAside(topic=chunk.topic, partition=chunk.partition, offset=offset, reason=reason)
                    for offset, reason in sorted(fatal.items())
                )
            yield batch
