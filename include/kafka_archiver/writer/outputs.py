"""All objects of one chunk: which are open, and what has to leave memory."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_archiver.advice import choose
from kafka_archiver.errors import BadRecordError
from kafka_archiver.formats import dead_letter
from kafka_archiver.formats.base import RECORD, VALUE, Encoder, Target
from kafka_archiver.formats.registry import get_format
from kafka_archiver.keys import Place, hour_path, object_key
from kafka_archiver.plan import Chunk
from kafka_archiver.writer.disk import disk
from kafka_archiver.writer.output import Output
from kafka_archiver.writer.result import Limits, WriteJob, WrittenObject
from kafka_archiver.writer.split import NO_HOUR, blocks, by_hour, column, unread
from kafka_archiver.writer.upload import Uploads
from kafka_archiver.writer.waiting import Waiting


class Outputs:
    """Gives every record to the object of its hour, and keeps memory below the limit."""

    def __init__(
        self,
        chunk: Chunk,
        job: WriteJob,
        limits: Limits,
        uploads: Uploads,
        directory: Path,
        dead_letter: bool = False,
    ) -> None:
        self.skipped = 0
        self._chunk = chunk
        self._job = job
        self._limits = limits
        self._uploads = uploads
        self._directory = directory
        self._dead_letter = dead_letter
        self._dead_letters: Outputs | None = None
        self._open: dict[int, Output] = {}
        self._finished: list[Output] = []
        self._waiting = Waiting(directory, limits.block_bytes)
        self._held = 0

    def write(self, hour: int | None, batch: pa.RecordBatch) -> None:
        """Take records, all of one hour or (None) of several."""
        self._uploads.check()
        if hour is not None and self._has(hour):
            self._encode(hour, batch)
        elif hour is not None:
            self._waiting.add(batch)
        else:
            records, hours, starts = by_hour(batch)
            late = []
            for some, low, high in zip(hours.tolist(), starts.tolist(), starts[1:].tolist(), strict=False):
                if self._has(some):
                    self._encode(some, records.slice(low, high - low))
                else:
                    late.append(np.arange(low, high))
            if late:
                # Copied: a slice of a few rows that waits would keep the whole batch in memory.
                self._waiting.add(records.take(np.concatenate(late)))

    def finish(self) -> tuple[WrittenObject, ...]:
        """End every object: first the open ones, then those whose records waited, as many at a time as may be."""
        self._finish_all()
        hours, step = self._waiting.hours(), self._limits.open_objects
        for some in (hours[i : i + step] for i in range(0, len(hours), step)):
            for hour, batch in blocks(self._waiting.read(some[0], some[-1]), self._limits.block_bytes):
                self.write(hour, batch)
            self._finish_all()
        written = sorted((o.written(self._chunk) for o in self._finished), key=lambda o: o.path)
        # Last, for records that waited may have been bad too.
        return (*written, *(self._dead_letters.finish() if self._dead_letters else ()))

    def close(self) -> None:
        """Close the temporary files, whatever has happened."""
        for output in self._open.values():
            output.part.close()
        if self._dead_letters:
            self._dead_letters.close()

    def _has(self, hour: int) -> bool:
        """Whether the hour has an encoder or still gets one. First come, first served: records of an hour
        that came too late all wait, since an encoder cannot begin in the middle."""
        if hour not in self._open and len(self._open) < self._limits.open_objects:
            self._start(hour)
        return hour in self._open

    def _start(self, hour: int) -> None:
        path = hour_path(None if hour == NO_HOUR else hour)
        settings, chunk = self._job.settings, self._chunk
        place = Place(chunk.topic, chunk.partition, chunk.start, chunk.generation, self._job.revision)
        if self._dead_letter:
            key = object_key(place, path, dead_letter.EXTENSION, dead_letter=True)
            encoder: Encoder = dead_letter.encoder(chunk.topic, chunk.partition, key)
        else:
            chosen = get_format(settings.format)
            key = object_key(place, path, chosen.extensions[settings.codec])
            target = Target(topic=chunk.topic, partition=chunk.partition, key=key, settings=settings)
            encoder = chosen.encoder(target)
        self._open[hour] = Output(path, encoder, self._uploads.new(key), settings.part_bytes, self._directory)

    def _encode(self, hour: int, batch: pa.RecordBatch) -> None:
        output = self._open[hour]
        before = output.held
        # What is bad for another reason is found only among the rest.
        reasons = {} if self._dead_letter else self._unreadable(batch)
        good = self._others(batch, reasons)
        while good.num_rows and (found := _refused(output, good)):
            reasons.update(found)
            good = self._others(batch, reasons)
        if reasons:
            self._reject(batch, reasons)
        self._held += output.held - before
        if self._held > self._limits.memory_bytes:
            self._make_room()

    def _unreadable(self, batch: pa.RecordBatch) -> dict[int, str]:
        """The records of which a column could not be read that the object needs, and why."""
        needed = VALUE if self._job.settings.content == "value" else RECORD
        return {offset: reason for offset, (name, reason) in unread(batch).items() if name in needed.names}

    def _others(self, batch: pa.RecordBatch, reasons: Mapping[int, str]) -> pa.RecordBatch:
        """The records that are not bad.

        :raises BadRecordError: some are, and may not be left out.
        """
        if reasons and (self._job.bad_record == "fail" or self._dead_letter):
            choices = _choices(self._job.archive)
            raise BadRecordError(self._chunk.topic, self._chunk.partition, reasons, choices)
        return batch.filter(pa.array(~_among(batch, reasons))) if reasons else batch

    def _reject(self, batch: pa.RecordBatch, reasons: Mapping[int, str]) -> None:
        """Give away the records at these offsets: all at once, for dead letters are in offset order too."""
        if self._job.bad_record == "dead_letter":
            if self._dead_letters is None:
                # Files of its own: what waits has the same names in both.
                directory = self._directory / "dead-letters"
                with disk(directory):
                    directory.mkdir()
                self._dead_letters = Outputs(
                    self._chunk, self._job, self._limits, self._uploads, directory, dead_letter=True
                )
            rows = batch.filter(pa.array(_among(batch, reasons)))
            lacks = unread(rows)
            errors = pa.array(
                # What is no reason to reject a record, but stands in for something of it, is said beside.
                [
                    "; ".join(dict.fromkeys([reasons[o], *lacks.get(o, ())[1:]]))
                    for o in rows.column("offset").to_pylist()
                ],
                pa.string(),
            )
            self._dead_letters.write(None, rows.append_column(dead_letter.ERROR, errors))
        else:
            self.skipped += len(reasons)

    def _finish_all(self) -> None:
        for output in self._open.values():
            # All that an hour has may be bad records.
            if output.rows:
                output.finish()
                self._finished.append(output)
            else:
                output.part.close()
        self._open.clear()
        self._held = 0

    def _make_room(self) -> None:
        """Move the largest to disk, until half of the limit is free: few large writes, not one for every batch."""
        sizes = [(output.encoder.pending, True, hour) for hour, output in self._open.items()]
        sizes += [(output.part.held, False, hour) for hour, output in self._open.items()]
        for size, rows, hour in sorted(sizes, reverse=True):
            if self._held <= self._limits.memory_bytes // 2:
                break
            output = self._open[hour]
            if rows:
                with disk(self._directory):
                    output.encoder.spill(self._directory)
            else:
                output.part.spill()
            self._held -= size
        self._held = sum(output.held for output in self._open.values())


def _refused(output: Output, batch: pa.RecordBatch) -> Mapping[int, str]:
    """The records that the format cannot hold, and why; then none is taken."""
    try:
        output.write(batch)
    except BadRecordError as error:
        return error.records
    return {}


def _among(batch: pa.RecordBatch, offsets: Iterable[int]) -> npt.NDArray[np.bool_]:
    """Which records are those at these offsets."""
    return np.isin(column(batch, "offset"), list(offsets))


def _choices(archive: str) -> str:
    return (
        "To store such records below `_dead_letter/`, with the reason, and go on: "
        f"{choose(archive, 'bad_record', 'dead_letter')}. To leave them out, counted as filtered: "
        f"{choose(archive, 'bad_record', 'skip')} (policies.bad_record: fail)"
    )
