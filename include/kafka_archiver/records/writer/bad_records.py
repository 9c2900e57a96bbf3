"""Rejected records: the policy `bad_record` decides what happens to them."""

from collections.abc import Mapping
from typing import assert_never

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.actions import Advice, advise
from kafka_archiver.messages.advice import choose
from kafka_archiver.messages.errors import BadRecordError
from kafka_archiver.messages.foreign_text import without_marks
from kafka_archiver.model.layouts.registry import form_of
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats import dead_letter
from kafka_archiver.records.formats.base import COLUMNS
from kafka_archiver.records.pipeline.base import Marks, rows_where
from kafka_archiver.records.pipeline.filing.paths import LayoutStage, Paths
from kafka_archiver.records.pipeline.refusals import unread
from kafka_archiver.records.pipeline.variants import MAIN
from kafka_archiver.records.writer.chunk_objects import ChunkObjects
from kafka_archiver.records.writer.disk import LateDirectory
from kafka_archiver.records.writer.openers import dead_letters
from kafka_archiver.records.writer.result import Limits, WriteJob, WrittenObject
from kafka_archiver.records.writer.upload import Sender
from kafka_archiver.values.columns import column


class BadRecords:
    """Takes the rejected records of a chunk. They stop the run, are left out, or become dead letters."""

    def __init__(self, chunk: Chunk, job: WriteJob, limits: Limits, sender: Sender) -> None:
        self._chunk, self._job = chunk, job
        self._letters: ChunkObjects | None = None
        # Its own: files of waiting records would have the same names as those of archived records.
        self._directory = LateDirectory(limits.spill_directory)
        if job.bad_record == "dead_letter":
            # By the hour of Kafka's time, whatever the layout: what a layout needs may be why a record is rejected.
            self._paths = Paths(form_of(Settings()), chunk, Settings())
            open_ = dead_letters(chunk, job)
            self._letters = ChunkObjects(chunk, job, limits, sender, self._directory, open_, self._paths)

    def take(self, batch: pa.RecordBatch, reasons: Mapping[int, str]) -> None:
        """Take the records at these offsets.

        :param batch: as the reader gave it, with all of `COLUMNS`: a dead letter has everything that Kafka had.
        :param reasons: by offset.
        :raises BadRecordError: the policy is `fail`. The error names all records.
        """
        shows_values = self._job.settings.encryption is None
        reasons = {offset: without_marks(reason, shows_values) for offset, reason in reasons.items()}
        match self._job.bad_record:
            case "fail":
                raise BadRecordError(self._chunk.topic, self._chunk.partition, reasons, *choices(self._job.archive))
            case "skip":
                return
            case "dead_letter":
                self._write(batch, reasons)
            case _:
                assert_never(self._job.bad_record)

    def _write(self, batch: pa.RecordBatch, reasons: Mapping[int, str]) -> None:
        assert self._letters
        rows = rows_where(batch, np.isin(column(batch, "offset"), list(reasons)))
        lacks = unread(rows)
        errors = [
            # The dead letter also names an unreadable column that is not why the record was rejected.
            "; ".join(dict.fromkeys([reasons[offset], *lacks.get(offset, ())[1:]]))
            for offset in rows.column("offset").to_pylist()
        ]
        letters = rows.select(COLUMNS).append_column(dead_letter.ERROR, pa.array(errors, pa.string()))
        letters = LayoutStage(self._paths, hours=False)(letters, Marks())
        self._letters.write(MAIN, None, letters)

    def finish(self) -> tuple[WrittenObject, ...]:
        """The objects of dead letters. All their parts have been sent."""
        return self._letters.finish() if self._letters else ()

    def close(self) -> None:
        """Close the temporary files, also after an error."""
        if self._letters:
            self._letters.close()
        self._directory.close()


def choices(archive: str) -> Advice:
    """Return how to go on after a bad record."""
    return advise(
        "To store such records with the reason below `_dead_letter/` and go on: ",
        choose(archive, "bad_record", "dead_letter"),
        ". To leave them out, counted as filtered: ",
        choose(archive, "bad_record", "skip"),
        " (policies.bad_record: fail)",
    )
