"""Attempts that live side by side: each in a thread of its own that makes a call only when it is told to.

An attempt can stop before any call to the store or the brokers, for as long as one likes, while others do whatever
they do; then it goes on, or dies. One thread runs at a time, so a sequence is the same each time.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from kafka_archiver.errors import ArchiverError
from kafka_archiver.plan import BadRecord, Chunk, Plan, Settings
from kafka_archiver.store import Store
from kafka_archiver.writer.chunk import write_chunk
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.result import ChunkResult, Limits, WriteJob

Answer = TypeVar("Answer")
Read = Callable[[Chunk, Settings], Iterator[pa.RecordBatch]]
SECONDS = 120.0


class Killed(BaseException):
    """The process is dead: nothing of it runs on, no `except Exception` sees it."""


class Actor:
    """Someone at work, stopped before its next call.

    :ivar calls: how many it has made. :ivar error: what it failed with.
    """

    def __init__(self, work: Callable[["Actor"], None]) -> None:
        self.calls = 0
        self.error: BaseException | None = None
        self.done = False
        self._dead = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        # The threads of a pool come one after the other.
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
        assert self._stopped.acquire(timeout=SECONDS), "an attempt neither ends nor calls anybody"

    def around(self, call: Callable[[], Answer]) -> Answer:
        """Wait for leave, then make the call."""
        with self._turn:
            if not self._dead:
                self._stopped.release()
                assert self._go.acquire(timeout=SECONDS), "nobody lets this attempt go on"
            if self._dead:
                raise Killed
            self.calls += 1
            return call()

    def advance(self, calls: int = 1 << 30) -> None:
        """Let it make so many calls, or go on to its end. The error it ends with is raised, unless it was killed."""
        while calls > 0 and not self.done:
            calls -= 1
            self._go.release()
            self._wait()
        if self.done and self.error is not None and not isinstance(self.error, Killed):
            error, self.error = self.error, None
            raise error

    def kill(self) -> None:
        """It makes no further call."""
        self._dead = True
        while not self.done:
            self._go.release()
            self._wait()
        self._thread.join(SECONDS)
        if self.error is not None and not isinstance(self.error, Killed | ArchiverError):
            raise self.error


class Watched:
    """A store or a cluster whose calls are an actor's."""

    def __init__(self, inner: Any, actor: Actor) -> None:
        self._inner, self._actor = inner, actor

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        # A list is asked for when it is read; that is soon enough.
        return lambda *args, **kwargs: self._actor.around(lambda: found(*args, **kwargs))


@dataclass(frozen=True)
class WatchedEngine:
    """What `SparkEngine` does in tasks, chunk by chunk."""

    read: Read
    store: Store
    limits: Limits
    actor: Actor

    def write(self, plan: Plan, chunks: Sequence[Chunk], bad_record: BadRecord) -> list[ChunkResult]:
        job = WriteJob.of(plan, bad_record)
        settings = plan.settings.model_copy(update={"content": "record"} if bad_record == "dead_letter" else {})
        results: list[ChunkResult] = []
        try:
            for chunk in chunks:
                whole = plan.chunk_of(chunk.name, chunk.start)
                assert whole is not None
                results.append(write_chunk(whole, self._batches(chunk, settings), job, self.store, self.limits))
        except Exception:
            abort(results, self.store)
            raise
        return results

    def _batches(self, chunk: Chunk, settings: Settings) -> Iterator[pa.RecordBatch]:
        batches = self.actor.around(lambda: self.read(chunk, settings))
        while (batch := self.actor.around(lambda: next(batches, None))) is not None:
            yield batch
