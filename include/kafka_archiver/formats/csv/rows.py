"""The rows of a CSV file, as vectors."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import VALUE, Buffer, Target
from kafka_archiver.formats.csv import CsvOptions
from kafka_archiver.formats.csv.columns import Column, columns_of
from kafka_archiver.formats.shared.records import held, kafkas, normalised, some_rows
from kafka_archiver.formats.shared.utf8 import utf8_and_others
from kafka_archiver.formats.vectors import Piece, joined, large_binary, text_of

_LINE_END = b"\n"


class Rows:
    """Makes the rows of one object.

    `header`: the first line; empty without one.
    """

    def __init__(self, target: Target, options: CsvOptions) -> None:
        self._columns = columns_of(target.schema)
        self._held = pa.schema([f for f in held(target.schema) if any(f.name == c.source.name for c in self._columns)])
        # Columns of bytes, of which each is two columns of the file.
        self._raw = [f.name for f in self._held if kafkas(f) in ("key", "value") and not target.schema.equals(VALUE)]
        self._place = {"topic": target.topic, "partition": target.partition}
        self._delimiter, self._quote, self._null = (
            text.encode() for text in (options.delimiter, options.quote, options.null)
        )
        names = [self._name(column.name.encode()) for column in self._columns]
        self.header = self._delimiter.join(names) + _LINE_END if options.header else b""

    def of(self, batch: pa.RecordBatch, _target: Target) -> Iterator[Buffer]:
        """The rows of a batch, some at a time.

        :raises IntegrityError: the batch does not fit the object's schema.
        """
        for some in some_rows(normalised(batch, self._held)):
            arrays = dict(zip(some.schema.names, some.columns, strict=True))
            for name in self._raw:
                arrays[name], arrays[f"{name}_base64"] = utf8_and_others(arrays[name])
            pieces: list[Piece] = []
            for column in self._columns:
                pieces += [*self._cells(arrays.get(column.name), column), self._delimiter]
            pieces[-1] = _LINE_END
            text, _ = text_of(joined(some.num_rows, pieces))
            yield text.tobytes()

    def _cells(self, values: pa.Array | None, column: Column) -> list[Piece]:
        source = column.source
        if values is None:
            value = str(self._place[kafkas(source) or ""]).encode()
            return [self._quoted(value) if column.cells.is_text else value]
        if values.null_count and not source.nullable:
            raise IntegrityError(f"the records do not fit the object's schema: found nulls in {source.name}")
        values = column.cells.text(values, source)
        if not column.cells.is_text:
            return [values.fill_null(large_binary(self._null)) if values.null_count else values]
        values = self._doubled(values.cast(pa.large_binary()))
        if not values.null_count:
            return [self._quote, values, self._quote]
        if values.null_count == len(values):
            return [self._null]
        valid, quote, nothing = values.is_valid(), large_binary(self._quote), large_binary(b"")
        return [pc.if_else(valid, quote, large_binary(self._null)), values, pc.if_else(valid, quote, nothing)]

    def _doubled(self, values: pa.Array) -> pa.Array:
        """The values with each quote twice."""
        text, ends = text_of(values)
        places = np.flatnonzero(text == self._quote[0])
        if not len(places):
            return values
        ends = ends - ends[0]
        more = text.tobytes().replace(self._quote, self._quote * 2)
        nulls = values.is_valid().buffers()[1] if values.null_count else None
        wider = ends + np.searchsorted(places, ends)
        return pa.Array.from_buffers(pa.large_binary(), len(values), [nulls, pa.py_buffer(wider), pa.py_buffer(more)])

    def _name(self, name: bytes) -> bytes:
        special = {self._delimiter[0], self._quote[0], *b"\r\n"}
        return self._quoted(name) if not name or special & set(name) else name

    def _quoted(self, value: bytes) -> bytes:
        return self._quote + value.replace(self._quote, self._quote * 2) + self._quote
