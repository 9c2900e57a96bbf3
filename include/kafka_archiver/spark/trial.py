"""A trial: works on records as a task does, in a process that may end at any of them, and says what comes before it.

Run as a program by `spark/fatal_records`, in a Spark task: with its libraries, and none of its memory. It forks a
process for each trial; it has no threads, and reads nothing itself.
"""

import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, NoReturn

import pyarrow as pa
from pyspark import cloudpickle

from kafka_archiver.messages.errors import ArchiverError, Failure
from kafka_archiver.model.plan import Chunk
from kafka_archiver.records.writer.chunk import variants_of
from kafka_archiver.records.writer.record_limits import watched
from kafka_archiver.spark.feed import SparkInput
from kafka_archiver.spark.reading import Reads, whole_chunk
from kafka_archiver.spark.sink import Sink
from kafka_archiver.values.columns import column

# The most records that are tried together.
TOGETHER = 100
_PDEATHSIG = 1


@dataclass(frozen=True)
class Trial:
    """A trial: the records of chunks, `alone` or some together. `sink`: without its accumulator."""

    sink: Sink
    read: Callable[[Sequence[Chunk]], Reads]
    chunks: Sequence[Chunk]
    alone: bool = False

    def run(self, tell: Callable[..., None]) -> None:
        """Try all records. `tell`: takes what comes next, the number of its chunk, the first and the last offset."""
        places = {(chunk.name, chunk.range): number for number, chunk in enumerate(self.chunks)}
        memory = self.sink.limits.record_memory_bytes
        with closing(self.read(self.chunks)) as reads:
            for chunk, batches in reads:
                number = places[chunk.name, chunk.range]
                work = self._work(chunk)
                tell("read", number, chunk.start, chunk.end - 1)
                for piece in self._pieces(batches):
                    offsets = column(piece, "offset")
                    tell("work", number, int(offsets[0]), int(offsets[-1]))
                    with watched(0, memory):
                        work(piece)
                    tell("read", number, int(offsets[-1]) + 1, chunk.end - 1)

    def _pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 1 if self.alone else TOGETHER
        for batch in batches:
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    def _work(self, chunk: Chunk) -> Callable[[pa.RecordBatch], object]:
        """Return what a task makes of records before they are encoded, or with SQL, before Spark gets them."""
        plan, job = self.sink.plan, self.sink.job
        whole = whole_chunk(plan, chunk.name, chunk.start)
        if plan.settings.transform and plan.settings.transform.sql:
            reading = SparkInput(self.sink, chunk.topic)
            return lambda batch: reading.batch(0, whole, batch)
        return variants_of(job, whole).run


def main(requests: IO[bytes], answers: Connection) -> None:
    """Run each trial that is given, in a process of its own, which has imported everything already.

    Says each thing before it comes, and when the process has ended.
    """

    def tell(what: str, *values: object) -> None:
        answers.send_bytes(json.dumps([what, *values]).encode())

    while True:
        try:
            trial: Any = cloudpickle.load(requests)
        except EOFError:
            return
        pid = os.fork()
        if not pid:
            _run(trial, tell)
        tell("started", pid)
        _, status = os.waitpid(pid, 0)
        tell("ended", os.waitstatus_to_exitcode(status))


def _run(trial: Any, tell: Callable[..., None]) -> NoReturn:
    """Run a trial, and end this process."""
    try:
        os.setpgid(0, 0)
        # The first process to end when memory is short; and none that is left behind.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        try:
            trial.run(tell)
            tell("done")
        except MemoryError:
            tell("memory")
        except ArchiverError as error:
            tell("failed", Failure.of(error).to_json())
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - the process ends, and its code says how
        traceback.print_exc()
        os._exit(1)
    # Threads of somebody's code must not keep it alive.
    os._exit(0)


if __name__ == "__main__":
    descriptor = int(sys.argv[1])
    # No program that a mapper starts keeps it open.
    os.set_inheritable(descriptor, False)
    # What decoders and mappers print is for the log.
    os.dup2(2, 1)
    main(sys.stdin.buffer, Connection(descriptor, readable=False))
