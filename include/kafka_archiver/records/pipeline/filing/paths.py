"""The paths of one chunk, each with a number, its part; and the stage `layout`, which gives each record its part."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.layouts.form import PathForm, fixed
from kafka_archiver.model.layouts.segment import bucket, segment
from kafka_archiver.model.layouts.tokens import (
    FIXED,
    Field,
    Offsets,
    Own,
    Partition,
    Piece,
    Start,
    TextToken,
    Time,
    TimesToken,
    TopicToken,
)
from kafka_archiver.model.object_keys import ObjectName
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.pipeline.base import HOUR, NONE, PART, TIME, Marks, rows_where
from kafka_archiver.records.pipeline.filing.clock import TimeLabels
from kafka_archiver.records.pipeline.filing.values import Extract, as_texts
from kafka_archiver.records.vectors import numbers
from kafka_archiver.values.columns import Int64s, column
from kafka_archiver.values.intervals import LAST_MS, MS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Mapping

# S3 takes keys of 1,024 bytes. 200 are for the prefix in `store.url`, 64 for the extension and what is appended.
LONGEST_KEY = 760
# The part of a row that is left out.
NOWHERE = -1
# Of each row an index of a label, and the labels; None: the record has none.
Labels = tuple[Int64s, Sequence[str | None]]


class Paths:
    """Numbers the paths of a chunk's records as they come.

    :param most: the most paths that the chunk may have; None: any number.
    """

    def __init__(self, form: PathForm, chunk: Chunk, settings: Settings, most: int | None = None) -> None:
        self._form, self._chunk = form, chunk
        self._most = sys.maxsize if most is None else most
        self._place = ObjectName(chunk.topic, chunk.partition, chunk.start, chunk.generation)
        self._clock = TimeLabels(form)
        self._numbers: dict[str, int] = {}
        self._paths: list[str] = []
        fields = [piece for piece in form.path if isinstance(piece, Field)]
        self.extracts = {piece.field: Extract(piece.field, settings) for piece in fields}
        self._seen: dict[str, set[str]] = {piece.field: set() for piece in fields if not piece.buckets}

    def path(self, part: int) -> str:
        """The path of a part, below the topic's prefix."""
        return self._paths[part]

    def parts(self, batch: pa.RecordBatch, marks: Marks) -> Int64s:
        """The part of each row; any of a record that is marked. `NOWHERE`: leave this row out, its record has others.

        :raises PermanentError: there are more paths than the limit.
        """
        varying = [piece for piece in self._form.path if not isinstance(piece, FIXED)]
        wrong: dict[int, str] = {}
        labels = self._labels(batch, varying, wrong)
        together, places = self._together(labels, batch.num_rows)
        # What is rejected has no path, and counts for no limit.
        filed = np.zeros(len(places), np.bool_)
        filed[np.delete(together, list(wrong)) if wrong else together] = True
        numbers = [
            self._number(dict(zip(varying, place, strict=True))) if is_filed else 0
            for is_filed, place in zip(filed.tolist(), places, strict=True)
        ]
        parts = np.array(numbers, np.int64)
        parts = parts[together] if len(parts) else np.zeros(batch.num_rows, np.int64)
        self._mark(batch, marks, parts, wrong, dict(zip(varying, labels, strict=True)))
        return parts

    def _labels(self, batch: pa.RecordBatch, varying: Sequence[Piece], wrong: dict[int, str]) -> list[Labels]:
        labels: list[Labels] = []
        timed = iter(self._times(batch) if any(isinstance(piece, TimesToken) for piece in varying) else ())
        for piece in varying:
            match piece:
                case TimesToken():
                    labels.append(next(timed))
                case Offsets():
                    starts, rows = np.unique(column(batch, "offset") // piece.size, return_inverse=True)
                    labels.append((rows, [f"{start * piece.size:020d}" for start in starts.tolist()]))
                case Field():
                    labels.append(self._values(batch, piece, wrong))
                case Own():
                    own = list(piece.labels(batch))
                    unique = {text: number for number, text in enumerate(dict.fromkeys(own))}
                    encoded = [None if text is None else self._segment(text) for text in unique]
                    labels.append((np.array([unique[text] for text in own], np.int64), encoded))
                case TextToken() | TopicToken() | Partition() | Start() | Time():
                    raise TypeError(f"{piece} is the same for a whole chunk")
                case _:
                    assert_never(piece)
        return labels

    def _times(self, batch: pa.RecordBatch) -> list[Labels]:
        codes, labels = self._clock.labels(times_of(batch))
        count = sum(isinstance(piece, TimesToken) for piece in self._form.path)
        return [(codes, [None if label is None else label[n] for label in labels]) for n in range(count)]

    def _values(self, batch: pa.RecordBatch, piece: Field, wrong: dict[int, str]) -> Labels:
        extracted = self.extracts[piece.field](batch)
        indices, texts = as_texts(extracted.values)
        for row, what in extracted.wrong.items():
            wrong.setdefault(row, f"{piece.field} is {what}, which has no place in a path")
        codes = np.array(indices.fill_null(len(texts)).to_pylist(), np.int64)
        for number, text in enumerate(texts):
            if text is None:
                for row in np.flatnonzero(codes == number).tolist():
                    wrong.setdefault(row, f"{piece.field} is no UTF-8 text, so it has no place in a path")
        shown = [None if t is None else bucket(t, piece.buckets) if piece.buckets else self._segment(t) for t in texts]
        if piece.field in self._seen and len(self._seen[piece.field]) <= self._most:
            self._seen[piece.field].update(filter(None, shown))
        return codes, [*shown, None]

    def _segment(self, text: str) -> str:
        return segment(text, self._form.also, self._form.null_name, self._form.longest)

    @staticmethod
    def _together(labels: Sequence[Labels], count: int) -> tuple[Int64s, list[tuple[str | None, ...]]]:
        """For each row the index of its labels together, and these, each once."""
        if all(len(texts) == 1 for _, texts in labels):
            return np.zeros(count, np.int64), [tuple(texts[0] for _, texts in labels)]
        codes = np.zeros(count, np.int64)
        for more, texts in labels:
            # Numbered anew each time, so that the product stays small.
            _, codes = np.unique(codes * (len(texts) + 1) + more, return_inverse=True)
        _, first = np.unique(codes, return_index=True)
        return codes, [tuple(texts[int(more[row])] for more, texts in labels) for row in first.tolist()]

    def _number(self, labels: "Mapping[Piece, str | None]") -> int:
        """The part of a path; `NOWHERE` if a label is missing and has no place, or the key would be too long."""
        if None in labels.values() and self._form.missing != "null":
            return NOWHERE
        texts = []
        for piece in self._form.path:
            text = labels.get(piece, "")
            texts.append(fixed(piece, self._place) if isinstance(piece, FIXED) else text or self._form.null_name)
        path = "".join(texts)
        if path not in self._numbers:
            if len(self._form.key(self._place, path, "").encode()) > LONGEST_KEY:
                return NOWHERE - 1
            if len(self._paths) >= self._most:
                raise PermanentError(self._too_many())
            self._numbers[path] = len(self._paths)
            self._paths.append(path)
        return self._numbers[path]

    def _mark(
        self,
        batch: pa.RecordBatch,
        marks: Marks,
        parts: Int64s,
        wrong: dict[int, str],
        labels: "Mapping[Piece, Labels]",
    ) -> None:
        if not wrong and (not len(parts) or parts.min() >= 0):
            return
        offsets = column(batch, "offset")
        missing = np.flatnonzero(parts == NOWHERE).tolist()
        reasons = {int(offsets[row]): reason for row, reason in wrong.items()}
        for row in np.flatnonzero(parts < NOWHERE).tolist():
            reasons.setdefault(int(offsets[row]), f"its key would have more than {LONGEST_KEY} bytes below `store.url`")
        gone = {int(offsets[row]): row for row in missing if int(offsets[row]) not in reasons}
        if self._form.missing == "skip":
            # A record is filtered if none of its rows has a place.
            marks.filter(np.setdiff1d(np.array(list(gone), np.int64), offsets[parts >= 0]))
        else:
            for offset, row in gone.items():
                named = {
                    _name(piece): None for piece, (which, texts) in labels.items() if texts[int(which[row])] is None
                }
                what = f"{' and '.join(named)} {'are' if len(named) > 1 else 'is'} null or missing"
                reasons[offset] = f"it cannot be filed: {what} (`store.layout.missing` was bad_record)"
        marks.reject(reasons)
        parts[parts < NOWHERE] = 0

    def _too_many(self) -> str:
        most = max(self._seen, key=lambda name: len(self._seen[name]), default=None)
        count = f"; {most} has {len(self._seen[most]):,} values among them" if most else ""
        other = f"another field, or buckets: `{{field: {most}, buckets: 64}}`" if most else "another `store.layout`"
        return (
            f"{self._chunk} has more than {self._most:,} paths (`store.max_paths`){count}. Each path is an object. To "
            f"go on with this plan, raise `store.max_paths`. For later plans choose {other}, or a smaller "
            "`store.chunk_records`"
        )


def _name(piece: Piece) -> str:
    return (
        piece.field
        if isinstance(piece, Field)
        else "its time"
        if isinstance(piece, TimesToken)
        else "a part of its path"
    )


def times_of(batch: pa.RecordBatch) -> Int64s:
    """The time of each record in milliseconds since 1970; `NONE` for none."""
    if TIME in batch.schema.names:
        return column(batch, TIME)
    times = column(batch, "timestamp")
    # Kafka says -1 for none.
    return times if not len(times) or times.min() >= 0 else np.where(times < 0, NONE, times)


def hours_of(times: Int64s) -> Int64s:
    """The hours of times; -1 for none."""
    return np.where((times < 0) | (times > LAST_MS), -1, times // MS_PER_HOUR)


class LayoutStage:
    """Adds the columns `PART` and `HOUR`, and marks records without a place.

    :param paths: of the chunk. :param hours: whether to add `HOUR`.
    """

    def __init__(self, paths: Paths, hours: bool) -> None:
        self._paths, self._hours = paths, hours

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        parts = self._paths.parts(batch, marks)
        filed = batch.append_column(PART, numbers(parts))
        if (parts == NOWHERE).any():
            batch = filed = rows_where(filed, parts != NOWHERE)
        return filed.append_column(HOUR, numbers(hours_of(times_of(batch)))) if self._hours else filed
