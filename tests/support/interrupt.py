"""A store, a cluster and an engine of one attempt, which may be killed or overtaken at any of its calls."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import pyarrow as pa

from kafka_archiver.plan import BadRecord, Chunk, Plan, Settings
from kafka_archiver.store import Store
from kafka_archiver.writer.chunk import write_chunk
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.result import ChunkResult, Limits, WriteJob

Answer = TypeVar("Answer")
Read = Callable[[Chunk, Settings], Iterator[pa.RecordBatch]]
_WRITES = {"put", "create", "delete", "start_upload", "upload_part", "complete_upload", "abort_upload", "move_group"}


class Killed(BaseException):
    """The process is dead: nothing of it runs on, no `except Exception` sees it."""


@dataclass
class Fate:
    """What happens to an attempt, at its `at`th call of one sort (from 1).

    `before`, `after`: it dies right before or after that write. `meanwhile`: something else happens right before
    that call, be it a write or a question, and the attempt goes on.
    """

    at: int = 0
    how: Literal["none", "before", "after", "meanwhile"] = "none"
    meanwhile: Callable[[], None] | None = None
    happened: bool = False
    dead: bool = False
    calls: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def around(self, name: str, call: Callable[[], Answer]) -> Answer:
        with self.lock:
            if self.dead:
                raise Killed
            counts = self.how == "meanwhile" or name in _WRITES
            self.calls += counts
            now = counts and self.calls == self.at and not self.happened
            self.happened |= now
            if now and self.how == "meanwhile" and self.meanwhile:
                self.meanwhile()
            elif now and self.how != "none":
                self.dead = True
                if self.how == "after":
                    call()
                raise Killed
        return call()


class Interrupted:
    """A store or a cluster whose calls go through a fate."""

    def __init__(self, inner: Any, fate: Fate) -> None:
        self._inner, self._fate = inner, fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        # A list is asked for when it is read; that is soon enough.
        return lambda *args, **kwargs: self._fate.around(name, lambda: found(*args, **kwargs))


@dataclass(frozen=True)
class InterruptedEngine:
    """What `SparkEngine` does in tasks, chunk by chunk."""

    read: Read
    store: Store
    limits: Limits
    fate: Fate

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
        batches = self.fate.around("read", lambda: self.read(chunk, settings))
        while (batch := self.fate.around("read", lambda: next(batches, None))) is not None:
            yield batch
