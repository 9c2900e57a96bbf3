"""Search for the records that end a task's process: a crash of a native library, too much memory, or a hang.

A trial works on the task's records in a process of its own, and says before each slice which offsets come. Where it
ends, the next trial takes the records of that slice one by one, and a third the one record alone. Only a record that
ends two processes, the second one by itself, is at fault. What becomes of it: `work/archive/set_aside` freezes it, and
the policy `bad_record` decides (`records/writer/bad_records`).
"""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import Pipe
from typing import Any, NamedTuple

from pyspark import SparkContext, cloudpickle

from kafka_archiver.messages.errors import ArchiverError, Failure, IntegrityError, TransientError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.set_aside import FatalRecordsError, RecordAside
from kafka_archiver.model.settings import Settings
from kafka_archiver.spark.failures import MARK, one_line, out_of_memory
from kafka_archiver.spark.reading import Reads
from kafka_archiver.spark.sink import Sink
from kafka_archiver.spark.trial import Trial

log = logging.getLogger(__name__)
# A search ends after so many records, or seconds; what it has found counts.
MOST, SECONDS = 20, 1800.0
# Without an answer for so long, a trial that reads has failed. The reader itself gives up before.
READING_SECONDS = 1500.0
# To send the trial, and import everything.
START_SECONDS = 300.0
DONE = "done"
PROGRAM = (sys.executable, "-m", "kafka_archiver.spark.trial")


class End(NamedTuple):
    """Where a trial ended, and how. `what`: `work`, or `read` if no record was at work."""

    what: str
    chunk: int
    first: int
    last: int
    how: str


class Search(NamedTuple):
    """`records`: those at fault. `unexplained`: what ended a trial, but no record alone. `failure`: why it stopped
    early.
    """

    records: tuple[RecordAside, ...]
    unexplained: tuple[str, ...] = ()
    failure: Failure | None = None


def search(
    context: SparkContext, chunks: Sequence[Chunk], read: Callable[[Sequence[Chunk]], Reads], sink: Sink
) -> Search:
    """Search the records of a task that has failed, in a Spark task. Writes nothing."""
    own = replace(sink, collected=None)
    log.info("a process that worked on %s ended: looking for the record", ", ".join(map(str, chunks[:3])))

    def task(_: Iterable[int]) -> list[Search]:
        return [Finder(own, read).find(chunks)]

    [result] = context.parallelize([0], 1).mapPartitions(task).collect()
    for record in result.records:
        log.warning("%s", record)
    return result


def explained(search: Search, error: Exception, settings: Settings) -> ArchiverError | None:
    """Return the error for a task whose process has ended.

    :param error: what Spark says of it.
    """
    if search.records:
        return FatalRecordsError(search.records)
    if search.failure:
        return search.failure.error()
    if known := out_of_memory(str(error)):
        return known
    transform = settings.transform
    where = ", or in Spark's SQL, where no record can be told" if transform and transform.sql else ""
    other_ends = f"; {'; '.join(search.unexplained[:3])}" if search.unexplained else ""
    return TransientError(
        "a process of Spark that worked on records ended without a word (killed, out of memory, or its machine is "
        f"gone); no record ends it alone{where}{other_ends}. If it happens again: give Spark's Python processes more "
        "memory (`spark.executor.memoryOverhead` in `spark.conf`), or raise `spark.record_seconds` and "
        f"`spark.record_memory_bytes` ({one_line(error).removeprefix(MARK)[:300]})"
    )


@dataclass
class Finder:
    """Finds records at fault by trials."""

    sink: Sink
    read: Callable[[Sequence[Chunk]], Reads]
    records: list[RecordAside] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    _program: "Program | None" = None

    def find(self, chunks: Sequence[Chunk]) -> Search:
        """Find the records of chunks at fault."""
        until = time.monotonic() + SECONDS
        left = list(self.sink.job.aside.readable(chunks) if self.sink.job.aside else chunks)
        try:
            while left and len(self.records) < MOST and time.monotonic() < until:
                end = self._try(left)
                if end is None:
                    break
                if end.what == "read":
                    self.unexplained.append(f"{left[end.chunk]}, read from offset {end.first} on: {end.how}")
                    break
                left = _behind(left, end.chunk, self._last_at_fault(left[end.chunk], end) + 1)
        except ArchiverError as error:
            return Search(tuple(self.records), tuple(self.unexplained), Failure.of(error))
        finally:
            if self._program:
                self._program.close()
        return Search(tuple(self.records), tuple(self.unexplained))

    def _last_at_fault(self, chunk: Chunk, slice_: End) -> int:
        """Try the records of a slice one by one. Returns the one at fault; if none is, the last one of the slice."""
        place = slice_.first
        while place <= slice_.last:
            end = self._try([_part(chunk, place, slice_.last)], alone=True)
            if end is None or end.what == "read":
                break
            again = self._try([_part(chunk, end.first, end.first)], alone=True)
            if again is not None and again.what == "work":
                reason = f"no process survives this record: {again.how}"
                self.records.append(
                    RecordAside(topic=chunk.topic, partition=chunk.partition, offset=end.first, reason=reason)
                )
                return end.first
            place = end.first + 1
        self.unexplained.append(f"{_part(chunk, slice_.first, slice_.last)}: {slice_.how} (none of them alone)")
        return slice_.last

    def _try(self, chunks: Sequence[Chunk], alone: bool = False) -> End | None:
        """Try the records of chunks. None: all is well.

        :raises ArchiverError: they cannot be read.
        """
        if self._program is None:
            self._program = Program()
        return self._end(self._program, Trial(self.sink, self.read, chunks, alone))

    def _end(self, program: "Program", trial: Trial) -> End | None:
        what, chunk, first, last = "read", 0, trial.chunks[0].start, trial.chunks[0].end - 1
        seconds, limit = self.sink.limits.record_seconds, START_SECONDS
        how: str | None = None
        program.start(trial)
        while True:
            try:
                answer = program.next(limit)
            except TimeoutError:
                how = how or f"it took more than {limit:g} s"
                program.kill()
                limit = START_SECONDS
                continue
            match answer:
                case None:
                    self._program = None
                    return End(what, chunk, first, last, how or program.ended())
                case ["ended", code]:
                    return None if how == DONE else End(what, chunk, first, last, how or _ended(code))
                case ["started", pid]:
                    program.pid = pid
                case ["done"]:
                    how = DONE
                case ["failed", str() as failure]:
                    self._program = None
                    program.close()
                    raise Failure.from_json(failure).error()
                case ["memory"]:
                    more = self.sink.limits.record_memory_bytes
                    how = f"it needed more than {more:,} bytes of memory" if more else "there was too little memory"
                case [str() as what, int() as chunk, int() as first, int() as last]:
                    limit = (seconds or READING_SECONDS) if what == "work" else READING_SECONDS
                case _:
                    raise IntegrityError(f"a trial of records answered {answer!r}: no answer of this release")


class Program:
    """The program that runs trials, one after the other. `pid`: of the process that runs the present one."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._answers, answering = Pipe(duplex=False)
        with answering:
            number = answering.fileno()
            self._process = subprocess.Popen(
                [*PROGRAM, str(number)],
                pass_fds=[number],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        self.pid: int | None = None

    def start(self, trial: Trial) -> None:
        assert self._process.stdin
        self._end()
        with suppress(BrokenPipeError):
            self._process.stdin.write(cloudpickle.dumps(trial))  # type: ignore[no-untyped-call]
            self._process.stdin.flush()

    def next(self, seconds: float) -> list[Any] | None:
        """Return the next answer; None at the end.

        :raises TimeoutError: there is none within so many seconds.
        """
        if not self._answers.poll(seconds):
            raise TimeoutError
        try:
            answer: list[Any] = json.loads(self._answers.recv_bytes())
        except EOFError:
            return None
        return answer

    def kill(self) -> None:
        """End the process that runs the trial; or the program, if it has not started one."""
        if self.pid is None:
            self._process.kill()
        self._end()

    def _end(self) -> None:
        """End the process of the last trial, also those that a mapper has started."""
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.pid = None

    def ended(self) -> str:
        """Return how the program itself has ended."""
        self.close()
        return _ended(self._process.returncode)

    def close(self) -> None:
        self._end()
        self._process.kill()
        self._process.wait()
        self._answers.close()
        if self._process.stdin:
            with suppress(BrokenPipeError):
                self._process.stdin.close()


def _ended(code: int) -> str:
    if code >= 0:
        return f"it ended the process with exit code {code}"
    try:
        return f"it ended the process by {signal.Signals(-code).name}"
    except ValueError:
        return f"it ended the process by signal {-code}"


def _part(chunk: Chunk, first: int, last: int) -> Chunk:
    return chunk.model_copy(update={"start": first, "end": last + 1})


def _behind(chunks: Sequence[Chunk], number: int, start: int) -> list[Chunk]:
    """Return the rest of chunks from an offset of one of them on."""
    later = chunks[number + 1 :]
    return [_part(chunks[number], start, chunks[number].end - 1), *later] if start < chunks[number].end else list(later)
