"""The interface of a stage, and the marks with which a stage leaves records out."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.values.columns import Int64s

# Columns that stages add for the writer; no encoder gets them. TIME: the record's time in milliseconds since 1970, or
# `NONE`, if it is not Kafka's. PART: which path the record has. HOUR: whole hours since 1970, -1 for none; only if the
# manifest counts hours.
TIME, PART, HOUR = "_time", "_part", "_hour"
NONE = -(2**63)


class Marks:
    """The offsets of one batch that a stage leaves out. A stage cannot leave out an offset without a mark."""

    def __init__(self) -> None:
        self._filtered: list[Int64s] = []
        self.rejected: dict[int, str] = {}
        """The reason, by rejected offset."""
        self.unnamed = 0
        """The number of records from which a decoder left out properties that their schema does not name."""

    def filter(self, offsets: Int64s) -> None:
        """Leave these records out because they are not wanted. The account counts them; no object stores them."""
        if len(offsets):
            self._filtered.append(offsets)

    def reject(self, reasons: Mapping[int, str]) -> None:
        """Leave these records out because they cannot be archived. The policy `bad_record` decides what happens then.

        :param reasons: the reason by offset, for the person who corrects the producer or the YAML.
        """
        self.rejected.update(reasons)

    def __bool__(self) -> bool:
        return bool(self._filtered or self.rejected)

    def filtered(self) -> Int64s:
        """The filtered offsets, ascending, each once."""
        return np.unique(np.concatenate(self._filtered)) if self._filtered else np.empty(0, np.int64)

    def offsets(self) -> Int64s:
        """All marked offsets, ascending.

        :raises IntegrityError: an offset is both filtered and rejected.
        """
        filtered, rejected = self.filtered(), np.array(sorted(self.rejected), np.int64)
        marked_twice = np.intersect1d(filtered, rejected)
        if len(marked_twice):
            raise IntegrityError(f"offset {marked_twice[0]} is both filtered and rejected")
        return np.union1d(filtered, rejected)


class Stage(Protocol):
    """One step between a reader and an encoder: a function or a callable object.

    - A batch has at least the columns `offset` and `timestamp`, and the columns that earlier stages left.
    - A stage returns the same columns for every batch.
    - It may turn a record into several rows: they repeat `offset` and stay in offset order.
    - It may return rows of marked offsets: the runner removes them.
    - Its result for a record must not depend on other records: each attempt cuts the batches differently.
    """

    def __call__(self, batch: pa.RecordBatch, marks: Marks, /) -> pa.RecordBatch:
        """Return the batch for the next stage; `batch` itself, at no cost, if nothing changes."""


def rows_where(batch: pa.RecordBatch, mask: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """The rows at which `mask` is true."""
    # pa.array() would import pandas: half a CPU second a process.
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return batch.filter(pa.Array.from_buffers(pa.bool_(), len(mask), [None, bits]))
