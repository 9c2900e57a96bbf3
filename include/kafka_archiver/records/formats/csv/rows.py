"""The rows of a CSV file, as vectors."""

from collections.abc import Iterator

import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import VALUE, Buffer, Target
from kafka_archiver.records.formats.csv import CsvOptions
from kafka_archiver.records.formats.csv.cells import CsvColumn, Style, columns_of
from kafka_archiver.records.formats.shared.records import encoder_schema, kafkas, normalised, some_rows
from kafka_archiver.records.formats.shared.utf8 import utf8_and_others
from kafka_archiver.records.vectors import Piece, joined, text_of

_LINE_END = b"\n"


class Rows:
    """Makes the rows of one object.

    `header`: the first line; empty without one.
    """

    def __init__(self, target: Target, options: CsvOptions) -> None:
        self._columns = columns_of(target.schema)
        self._batch_schema = pa.schema(
            [f for f in encoder_schema(target.schema) if any(f.name == c.source.name for c in self._columns)]
        )
        # Columns of bytes, of which each is two columns of the file.
        self._raw = [
            f.name for f in self._batch_schema if kafkas(f) in ("key", "value") and not target.schema.equals(VALUE)
        ]
        self._place: dict[str, str | int] = {"topic": target.topic, "partition": target.partition}
        self._delimiter, self._style = options.delimiter.encode(), Style(options.quote.encode(), options.null.encode())
        names = [self._name(column.name.encode()) for column in self._columns]
        self.header = self._delimiter.join(names) + _LINE_END if options.header else b""

    def of(self, batch: pa.RecordBatch, _target: Target) -> Iterator[Buffer]:
        """The rows of a batch, some at a time.

        :raises IntegrityError: the batch does not fit the object's schema.
        """
        for some in some_rows(normalised(batch, self._batch_schema)):
            arrays = dict(zip(some.schema.names, some.columns, strict=True))
            for name in self._raw:
                arrays[name], arrays[f"{name}_base64"] = utf8_and_others(arrays[name])
            pieces: list[Piece] = []
            for column in self._columns:
                pieces += [*self._cells(arrays.get(column.name), column), self._delimiter]
            pieces[-1] = _LINE_END
            text, _ = text_of(joined(some.num_rows, pieces))
            yield text.data

    def _cells(self, values: pa.Array | None, column: CsvColumn) -> list[Piece]:
        source = column.source
        if values is None:
            place = self._place[kafkas(source) or ""]
            return [self._style.text(place.encode()) if isinstance(place, str) else b"%d" % place]
        if values.null_count and not source.nullable:
            raise IntegrityError(f"the records do not fit the object's schema: found nulls in {source.name}")
        if values.null_count == len(values):
            return [self._style.null]
        return column.cells.pieces(values, source, self._style)

    def _name(self, name: bytes) -> bytes:
        special = {self._delimiter[0], self._style.quote[0], *b"\r\n"}
        return self._style.text(name) if not name or special & set(name) else name
