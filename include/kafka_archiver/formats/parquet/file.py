"""Writes a Parquet file and returns its bytes after each row group."""

from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_archiver.errors import ConfigError, IntegrityError
from kafka_archiver.formats.base import RECORD, Buffer
from kafka_archiver.formats.shared.records import COLUMNS, is_kafkas

# Kafka's columns as Parquet stores them.
_KAFKAS = {
    field.name: field
    for field in (
        RECORD.field("partition"),
        *COLUMNS,
        # The same value in all rows: as a dictionary it takes one byte a row in memory.
        pa.field("topic", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
    )
}
# No dictionary: these values seldom repeat, and a dictionary that pyarrow gives up costs CPU.
_VARIED = frozenset({"offset", "timestamp", "key", "value"})
_ASCENDING = ("offset", "timestamp")
# No statistics: queries do not filter by ranges of these columns.
_UNSORTED = frozenset({"value", "headers"})
# Replaces the library's name and version, which would change the bytes with every upgrade.
_CREATED_BY = b"kafka-archiver version 1"
# zstd 1 is pyarrow's default. Its default of 9 for gzip takes seven times the CPU of 4, for files 14 % smaller; its
# default for Brotli is 8.
_LEVELS = {"gzip": 4, "zstd": 1, "brotli": 4}
_TAIL = len(b"\0\0\0\0PAR1")


def stored(schema: pa.Schema) -> pa.Schema:
    """The schema with Kafka's columns as Parquet stores them."""
    return pa.schema([_KAFKAS[field.name] if is_kafkas(field) else field for field in schema])


@cache
def _options(schema: pa.Schema) -> dict[str, Any]:
    """The writer's options for a schema. Typed columns keep pyarrow's defaults."""
    kafkas = {field.name for field in schema if is_kafkas(field)}
    sink = pa.BufferOutputStream()
    try:
        pq.ParquetWriter(sink, stored(schema)).close()
    except pa.ArrowNotImplementedError as error:
        raise ConfigError(f"store.format: parquet cannot store a column of this type: {error}") from error
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
    """A file object for pyarrow; keeps the written bytes until `take`."""

    closed = False

    def __init__(self) -> None:
        self._written: list[Buffer] = []

    def write(self, data: bytes) -> int:
        self._written.append(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def take(self) -> list[Buffer]:
        taken, self._written = self._written, []
        return taken


class RowGroups:
    """A new file. Every added table, of `stored(schema)`, becomes one row group."""

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
        """Write a row group; return the new bytes of the file.

        :raises IntegrityError: a column that is not nullable has nulls.
        """
        try:
            self._writer.write_table(table, row_group_size=len(table))
        except pa.ArrowInvalid as error:
            raise IntegrityError(f"the records do not fit the object's schema: {error}") from error
        return self._sink.take()

    def finish(self) -> list[Buffer]:
        """End the file; return the rest of its bytes."""
        before = self._sink.take()
        self._writer.close()
        footer = b"".join(self._sink.take())[:-_TAIL]
        # created_by is a Thrift string: its length, then the characters. Only fixed structures follow it.
        library = self._writer.writer.metadata.created_by.encode()
        at = footer.rindex(bytes([len(library)]) + library)
        footer = footer[:at] + bytes([len(_CREATED_BY)]) + _CREATED_BY + footer[at + 1 + len(library) :]
        return [*before, footer, len(footer).to_bytes(4, "little"), b"PAR1"]
