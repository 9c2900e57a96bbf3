"""All objects of one chunk: which ones are open, and which data moves from memory to disk."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafka_archiver.model.object_keys import sidecar_key
from kafka_archiver.model.plan import Chunk
from kafka_archiver.records.formats.base import HasSidecar
from kafka_archiver.records.pipeline.filing.paths import Paths
from kafka_archiver.records.writer.disk import LateDirectory, disk
from kafka_archiver.records.writer.open_object import OpenObject
from kafka_archiver.records.writer.openers import OpenObjectOf
from kafka_archiver.records.writer.result import Limits, WriteJob, WrittenObject
from kafka_archiver.records.writer.split import blocks, by_part
from kafka_archiver.records.writer.upload import PartStream, Sender
from kafka_archiver.records.writer.waiting import Waiting

# If records wait: the most bytes that open objects hold, those of waiting records that are read at once, and of these
# those of one part; and how many finished objects may have parts on their way.
_OPEN, _RANGE, _PIECE, _UNSENT = 4 << 20, 2 << 20, 1 << 20, 64
# How many times the number of encoders are so many paths in one block that none gets an encoder.
_MANY = 4


class _Slot(NamedTuple):
    """The rows and parts that one object has of a chunk."""

    variant: int
    part: int


class ChunkObjects:
    """Writes every record to the object of its variant and part, and keeps memory below the limit."""

    def __init__(
        self,
        chunk: Chunk,
        job: WriteJob,
        limits: Limits,
        sender: Sender,
        directory: LateDirectory,
        opener: OpenObjectOf,
        paths: Paths,
    ) -> None:
        self._chunk = chunk
        self._job = job
        self._limits = limits
        self._sender = sender
        self._directory = directory
        self._opener = opener
        self._open: dict[_Slot, OpenObject] = {}
        # Finished objects whose last parts may be on their way, and what is known of the others.
        self._finished: list[OpenObject] = []
        self._written: list[WrittenObject] = []
        self._paths = paths
        self._waiting: dict[int, Waiting] = {}
        self._memory = 0
        self._most = limits.memory_bytes
        # Whether waiting records are read.
        self._reading = False

    def write(self, variant: int, part: int | None, batch: pa.RecordBatch) -> None:
        """Take records of one variant, and of one part or of several (None)."""
        self._sender.check()
        if part is not None and self._has(variant, part):
            self._encode(variant, part, batch)
        elif part is not None:
            self._wait(variant, batch)
        else:
            records, parts, starts = by_part(batch)
            new = sum((variant, part) not in self._open for part in parts.tolist())
            if new == len(parts) > _MANY * self._limits.open_objects:
                # None of so many paths gets an encoder: most records would have to wait anyway.
                self._wait(variant, records, sorted_=True)
                return
            late = []
            for some, low, high in zip(parts.tolist(), starts.tolist(), starts[1:].tolist(), strict=False):
                if self._has(variant, some):
                    self._encode(variant, some, records.slice(low, high - low))
                else:
                    late.append(np.arange(low, high))
            if late:
                # take() copies: a slice of a few rows would keep the whole batch in memory.
                self._wait(variant, records.take(np.concatenate(late)), sorted_=True)

    def finish(self) -> tuple[WrittenObject, ...]:
        """Finish the open objects, then the objects of waiting records, one after the other."""
        self._finish_all()
        self._reading = True
        for variant, waiting in self._waiting.items():
            for first, last in waiting.ranges(min(_RANGE, self._limits.block_bytes)):
                if first == last:
                    # It may be larger than memory.
                    for _, part, batch in blocks(((variant, b) for b in waiting.read(first, last)), _PIECE):
                        self.write(variant, part, batch)
                else:
                    records, parts, starts = by_part(pa.concat_batches(waiting.read(first, last)))
                    for some, low, high in zip(parts.tolist(), starts.tolist(), starts[1:].tolist(), strict=False):
                        self.write(variant, some, records.slice(low, high - low))
                        self._finish_all(_UNSENT)
                self._finish_all(_UNSENT)
        self._collect()
        return tuple(sorted(self._written, key=lambda w: (w.path, w.sidecar_of or "", w.upload.key)))

    def close(self) -> None:
        """Close the temporary files, also after an error."""
        for output in self._open.values():
            output.close()

    def _wait(self, variant: int, batch: pa.RecordBatch, sorted_: bool = False) -> None:
        if not self._waiting:
            # There are many paths: the open ones shall not take more memory than a single one would.
            self._most = min(_OPEN, self._most)
        if variant not in self._waiting:
            self._waiting[variant] = Waiting(self._directory.path, self._limits.block_bytes, variant)
        self._waiting[variant].add(batch, sorted_)
        if sum(waiting.held_bytes for waiting in self._waiting.values()) >= self._limits.block_bytes:
            for waiting in self._waiting.values():
                waiting.store()

    def _has(self, *slot: int) -> bool:
        """Return True if it has an encoder; open one if the limit allows, and none waits. If not, all its records wait:
        an encoder cannot begin in the middle of an object.
        """
        room = not self._waiting or self._reading
        if slot not in self._open and room and len(self._open) < self._limits.open_objects:
            self._start(_Slot(*slot))
        return slot in self._open

    def _start(self, slot: "_Slot") -> None:
        path = self._paths.path(slot.part)
        key, encoder = self._opener(path, slot.variant)
        beside = encoder.sidecar_extension if isinstance(encoder, HasSidecar) else None
        sidecar = self._parts(sidecar_key(key, beside)) if beside else None
        self._open[slot] = OpenObject(path, encoder, self._parts(key), sidecar)

    def _parts(self, key: str) -> PartStream:
        part_bytes, sealer = self._job.settings.part_bytes, self._job.sealer(key)
        return PartStream(self._sender.new(key), part_bytes, self._directory, sealer)

    def _encode(self, variant: int, part: int, batch: pa.RecordBatch) -> None:
        output = self._open[_Slot(variant, part)]
        before = output.memory
        output.write(batch)
        self._memory += output.memory - before
        if self._memory > self._most:
            self._make_room()

    def _finish_all(self, unsent: int = 0) -> None:
        """Finish the open objects. If more than `unsent` are finished, wait until all their parts are sent."""
        for output in self._open.values():
            output.finish()
            self._finished.append(output)
        self._open.clear()
        self._memory = 0
        if len(self._finished) > unsent:
            self._collect()

    def _collect(self) -> None:
        # A finished object takes kilobytes, for its futures and locks; what is known of it takes few.
        for output in self._finished:
            self._written += output.written(self._chunk)
        self._finished.clear()

    def _make_room(self) -> None:
        """Move the largest pieces to disk until half of the limit is free: few large writes, not one per batch."""
        sizes = [(output.encoder.pending, True, slot) for slot, output in self._open.items()]
        sizes += [(output.parts.buffer.memory, False, slot) for slot, output in self._open.items()]
        for size, rows, slot in sorted(sizes, reverse=True):
            if self._memory <= self._most // 2:
                break
            output = self._open[slot]
            if rows:
                with disk(self._directory.path):
                    output.encoder.spill(self._directory.path)
            else:
                output.parts.buffer.spill()
            self._memory -= size
        self._memory = sum(output.memory for output in self._open.values())
