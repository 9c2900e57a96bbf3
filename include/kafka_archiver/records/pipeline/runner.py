"""Runs the stages on the batches of a chunk, and checks that no stage loses an offset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.pipeline.base import Marks, Stage, rows_where
from kafka_archiver.values.columns import Int64s, column


class Passed(NamedTuple):
    """The result for a batch: the rows to archive, and the reason by rejected offset."""

    kept: pa.RecordBatch
    rejected: Mapping[int, str]


@dataclass(slots=True)
class Counts:
    """The fates of records: how many offsets were archived, filtered and rejected.

    `rows`: those of archived records: a record may become several rows. `unnamed`: the records without all of their
    properties, see `Marks`.
    """

    archived: int = 0
    filtered: int = 0
    rejected: int = 0
    rows: int = 0
    unnamed: int = 0


class Runner:
    """Runs the stages. :param counts: counts the results; None: those of this runner alone."""

    def __init__(self, stages: Sequence[Stage], counts: Counts | None = None) -> None:
        self._stages, self.counts = stages, counts or Counts()

    def run(self, batch: pa.RecordBatch) -> Passed:
        """Run all stages on a batch that is not empty, with strictly increasing offsets.

        :raises IntegrityError: a stage has lost an offset, or returned an unknown one.
        """
        rejected: dict[int, str] = {}
        filtered, kept, counts = 0, batch, self.counts
        for stage in self._stages:
            marks = Marks()
            after = stage(kept, marks)
            counts.unnamed += marks.unnamed
            if after is not kept or marks:
                kept = _settled(stage, kept, after, marks)
                rejected |= marks.rejected
                filtered += len(marks.filtered())
                if not kept.num_rows:
                    break
        counts.rejected += len(rejected)
        counts.filtered += filtered
        counts.archived += batch.num_rows - filtered - len(rejected)
        counts.rows += kept.num_rows
        return Passed(kept, rejected)


def _settled(stage: Stage, before: pa.RecordBatch, after: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
    """The stage's result without the marked offsets, after the check that all other offsets are there, in order."""
    kept = _offsets(stage, after)
    before_offsets = column(before, "offset")
    if not marks and np.array_equal(kept, before_offsets):
        return after
    if len(kept) > 1 and (kept[1:] < kept[:-1]).any():
        raise _fault(stage, "returned rows that are not in offset order")
    try:
        marked = marks.offsets()
    except IntegrityError as error:
        raise _fault(stage, f"failed: {error}") from error
    stays = ~np.isin(kept, marked)
    before_offsets, after_offsets = np.unique(before_offsets), np.union1d(kept, marked)
    if not np.array_equal(before_offsets, after_offsets):
        lost, invented = np.setdiff1d(before_offsets, after_offsets), np.setdiff1d(after_offsets, before_offsets)
        what = f"lost offset {lost[0]} without a mark" if len(lost) else f"returned unknown offset {invented[0]}"
        raise _fault(stage, what)
    return after if stays.all() else rows_where(after, stays)


def _offsets(stage: Stage, batch: pa.RecordBatch) -> Int64s:
    if "offset" not in batch.schema.names or batch.schema.field("offset").type != pa.int64():
        raise _fault(stage, "returned a batch without a column `offset` of 64-bit integers")
    return column(batch, "offset")


def _fault(stage: Stage, what: str) -> IntegrityError:
    name = getattr(stage, "__qualname__", type(stage).__qualname__)
    return IntegrityError(
        f"the stage {name} {what}. Nothing of this chunk is stored; this is a fault of the stage, please report it."
    )
