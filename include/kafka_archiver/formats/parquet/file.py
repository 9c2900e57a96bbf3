"""A Parquet file that is handed out row group by row group while it is written."""

from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_archiver.errors import ConfigError, IntegrityError
from kafka_archiver.formats.base import RECORD, Buffer
from kafka_archiver.formats.shared.records import COLUMNS, is_kafkas

# Kafka's columns as they are stored.
_KAFKAS = {
    field.name: field
    for field in (
        RECORD.field("partition"),
        *COLUMNS,
        # One value in all rows: a dictionary of one, so that it takes a byte a row while it waits.
        pa.field("topic", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
    )
}
# Those that do not repeat. Keys and values seldom do, and a dictionary that is given up has cost its CPU.
_VARIED = frozenset({"offset", "timestamp", "key", "value"})
_ASCENDING = ("offset", "timestamp")
# Nobody looks for a range of them.
_UNSORTED = frozenset({"value", "headers"})
# Instead of the library's name and version, which would make other bytes of every upgrade.
_CREATED_BY = b"kafka-archiver version 1"
# Level 1 is pyarrow's own for zstd. Its 9 for gzip takes seven times the CPU of 4, for files 14 % smaller.
_LEVELS = {"gzip": 4, "zstd": 1}
_TAIL = len(b"\0\0\0\0PAR1")


def stored(schema: pa.Schema) -> pa.Schema:
    """A schema as its file has it."""
    return pa.schema([_KAFKAS[field.name] if is_kafkas(field) else field for field in schema])


@cache
def _options(schema: pa.Schema) -> dict[str, Any]:
    """How the columns of a schema are written: typed ones in the library's own way."""
    kafkas = {field.name for field in schema if is_kafkas(field)}
    sink = pa.BufferOutputStream()
    try:
        pq.ParquetWriter(sink, stored(schema)).close()
    except pa.ArrowNotImplementedError as error:
        raise ConfigError(f"store.format: parquet cannot store a column as it is: {error}") from error
    leaves = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    paths = [leaves.column(number).path for number in range(len(leaves))]

    def without(names: frozenset[str]) -> list[str]:
        return [path for path in paths if path.partition(".")[0] not in kafkas & names]

    return {
        "use_dictionary": without(_VARIED),
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name in _ASCENDING if name in kafkas},
        "write_statistics": without(_UNSORTED),
    }


class _Sink:
    """A file object for pyarrow; keeps what it writes until it is taken."""

    closed = False

    def __init__(self) -> None:
        self._written: list[Buffer] = []

    def write(self, data: bytes) -> int:
        self._written.append(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is between this and the writer."""

    def take(self) -> list[Buffer]:
        taken, self._written = self._written, []
        return taken


class RowGroups:
    """A new file; every table of `stored(schema)` that is added becomes one row group."""

    def __init__(self, schema: pa.Schema, codec: str) -> None:
        self._sink = _Sink()
        self._writer = pq.ParquetWriter(
            self._sink,
            stored(schema),
            compression=codec,
            compression_level=_LEVELS.get(codec),
            write_page_checksum=True,
            store_schema=False,
            **_options(schema),
        )

    def add(self, table: pa.Table) -> list[Buffer]:
        """Write a row group; return the file's bytes so far that were not returned before.

        :raises IntegrityError: a column that has no nulls by its schema has some.
        """
        try:
            self._writer.write_table(table, row_group_size=len(table))
        except pa.ArrowInvalid as error:
            raise IntegrityError(f"the records are not of the object's schema: {error}") from error
        return self._sink.take()

    def finish(self) -> list[Buffer]:
        """End the file; return the rest of its bytes."""
        before = self._sink.take()
        self._writer.close()
        footer = b"".join(self._sink.take())[:-_TAIL]
        # A Thrift string: its length, then the characters. Nothing but fixed structures comes behind it.
        library = self._writer.writer.metadata.created_by.encode()
        at = footer.rindex(bytes([len(library)]) + library)
        footer = footer[:at] + bytes([len(_CREATED_BY)]) + _CREATED_BY + footer[at + 1 + len(library) :]
        return [*before, footer, len(footer).to_bytes(4, "little"), b"PAR1"]
