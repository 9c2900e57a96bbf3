"""What a stage is, and what it may say of records that it leaves out."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa

from kafka_archiver.columns import Int64s
from kafka_archiver.errors import IntegrityError


class Marks:
    """The offsets that a stage leaves out of one batch. There is no other way to leave one out."""

    def __init__(self) -> None:
        self._filtered: list[Int64s] = []
        self.rejected: dict[int, str] = {}
        """Why of each rejected offset."""

    def filter(self, offsets: Int64s) -> None:
        """Leave these records out: nobody wants them. They are counted, and stored nowhere."""
        if len(offsets):
            self._filtered.append(offsets)

    def reject(self, reasons: Mapping[int, str]) -> None:
        """Leave these records out: they cannot be archived. The policy `bad_record` decides what becomes of them.

        :param reasons: by offset, for the person who has to mend it.
        """
        self.rejected.update(reasons)

    def __bool__(self) -> bool:
        return bool(self._filtered or self.rejected)

    def filtered(self) -> Int64s:
        """The filtered offsets, ascending, each once."""
        return np.unique(np.concatenate(self._filtered)) if self._filtered else np.empty(0, np.int64)

    def offsets(self) -> Int64s:
        """All marked offsets, ascending.

        :raises IntegrityError: one is filtered and rejected.
        """
        filtered, rejected = self.filtered(), np.array(sorted(self.rejected), np.int64)
        both = np.intersect1d(filtered, rejected)
        if len(both):
            raise IntegrityError(f"offset {both[0]} is both filtered and rejected")
        return np.union1d(filtered, rejected)


class Stage(Protocol):
    """One step between a reader and an encoder: a function, or an object that is called like one.

    A batch has at least the columns `offset` and `timestamp`; its other columns are what the stages before it left. A
    stage gives the same columns for every batch, whatever is in it. It may make several rows of a record: `offset` is
    repeated then, and the rows stay in the order of their offsets. Rows whose offset it marks need not be left out of
    what it gives: the runner does that. What it does to a record must not depend on the others of the batch, since
    batches are cut anew in every attempt.
    """

    def __call__(self, batch: pa.RecordBatch, marks: Marks, /) -> pa.RecordBatch:
        """The batch that the next stage gets. `batch` itself where there is nothing to do: that costs nothing."""
