"""All objects of one chunk: which ones are open, and which data moves from memory to disk."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from kafka_archiver.formats.base import HasSidecar
from kafka_archiver.layouts.registry import layout_of
from kafka_archiver.plan import Chunk, Settings
from kafka_archiver.writer.disk import disk
from kafka_archiver.writer.open_object import OpenObject
from kafka_archiver.writer.openers import Open
from kafka_archiver.writer.part_stream import PartStream
from kafka_archiver.writer.result import Limits, WrittenObject
from kafka_archiver.writer.split import blocks, by_part
from kafka_archiver.writer.upload import Sender
from kafka_archiver.writer.waiting import Waiting


class ChunkObjects:
    """Writes every record to the object of its part, and keeps memory below the limit."""

    def __init__(
        self, chunk: Chunk, settings: Settings, limits: Limits, sender: Sender, directory: Path, opener: Open
    ) -> None:
        self._chunk = chunk
        self._settings = settings
        self._limits = limits
        self._sender = sender
        self._directory = directory
        self._opener = opener
        self._open: dict[int, OpenObject] = {}
        self._finished: list[OpenObject] = []
        self._layout = layout_of(settings)
        self._waiting = Waiting(directory, limits.block_bytes, self._layout)
        self._held = 0

    def write(self, part: int | None, batch: pa.RecordBatch) -> None:
        """Take records of one part, or of several (None)."""
        self._sender.check()
        if part is not None and self._has(part):
            self._encode(part, batch)
        elif part is not None:
            self._waiting.add(batch)
        else:
            records, parts, starts = by_part(batch, self._layout)
            late = []
            for some, low, high in zip(parts.tolist(), starts.tolist(), starts[1:].tolist(), strict=False):
                if self._has(some):
                    self._encode(some, records.slice(low, high - low))
                else:
                    late.append(np.arange(low, high))
            if late:
                # take() copies: a slice of a few rows would keep the whole batch in memory.
                self._waiting.add(records.take(np.concatenate(late)))

    def finish(self) -> tuple[WrittenObject, ...]:
        """Finish the open objects, then the objects of waiting records: at most `open_objects` at a time."""
        self._finish_all()
        parts, step = self._waiting.parts(), self._limits.open_objects
        for some in (parts[i : i + step] for i in range(0, len(parts), step)):
            waited = self._waiting.read(some[0], some[-1])
            for part, batch in blocks(waited, self._limits.block_bytes, self._layout):
                self.write(part, batch)
            self._finish_all()
        written = (w for o in self._finished for w in o.written(self._chunk))
        return tuple(sorted(written, key=lambda w: (w.path, w.sidecar_of or "")))

    def close(self) -> None:
        """Close the temporary files, also after an error."""
        for output in self._open.values():
            output.close()

    def _has(self, part: int) -> bool:
        """Whether the part has an encoder; opens one if the limit allows. If not, all records of the part wait: an
        encoder cannot begin in the middle of an object."""
        if part not in self._open and len(self._open) < self._limits.open_objects:
            self._start(part)
        return part in self._open

    def _start(self, part: int) -> None:
        path = self._layout.path(part)
        key, encoder = self._opener(path)
        sidecar = self._parts(key + encoder.sidecar_extension) if isinstance(encoder, HasSidecar) else None
        self._open[part] = OpenObject(path, encoder, self._parts(key), sidecar)

    def _parts(self, key: str) -> PartStream:
        return PartStream(self._sender.new(key), self._settings.part_bytes, self._directory)

    def _encode(self, part: int, batch: pa.RecordBatch) -> None:
        output = self._open[part]
        before = output.held
        output.write(batch)
        self._held += output.held - before
        if self._held > self._limits.memory_bytes:
            self._make_room()

    def _finish_all(self) -> None:
        for output in self._open.values():
            output.finish()
            self._finished.append(output)
        self._open.clear()
        self._held = 0

    def _make_room(self) -> None:
        """Move the largest pieces to disk until half of the limit is free: few large writes, not one per batch."""
        sizes = [(output.encoder.pending, True, part) for part, output in self._open.items()]
        sizes += [(output.parts.buffer.held, False, part) for part, output in self._open.items()]
        for size, rows, part in sorted(sizes, reverse=True):
            if self._held <= self._limits.memory_bytes // 2:
                break
            output = self._open[part]
            if rows:
                with disk(self._directory):
                    output.encoder.spill(self._directory)
            else:
                output.parts.buffer.spill()
            self._held -= size
        self._held = sum(output.held for output in self._open.values())
