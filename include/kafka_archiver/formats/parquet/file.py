"""A Parquet file that is handed out row group by row group while it is written."""

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_archiver.formats.base import Buffer
from kafka_archiver.formats.shared.records import COLUMNS

SCHEMA = pa.schema(
    [
        # One value in all rows: a dictionary of one, so that it takes a byte a row while it waits.
        pa.field("topic", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        COLUMNS.field("offset"),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        *[COLUMNS.field(name) for name in ("timestamp_type", "key", "value", "headers")],
    ]
)
# Instead of the library's name and version, which would make other bytes of every upgrade.
_CREATED_BY = b"kafka-archiver version 1"
# Level 1 is pyarrow's own for zstd. Its 9 for gzip takes seven times the CPU of 4, for files 14 % smaller.
_LEVELS = {"gzip": 4, "zstd": 1}
_OPTIONS = {
    # Those that repeat. Keys and values seldom do, and a dictionary that is given up has cost its CPU.
    "use_dictionary": [
        "topic",
        "partition",
        "timestamp_type",
        "headers.list.element.key",
        "headers.list.element.value",
    ],
    "column_encoding": {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
    # Not of values and headers: nobody looks for a range of them.
    "write_statistics": ["topic", "partition", "offset", "timestamp", "timestamp_type", "key"],
    "write_page_checksum": True,
    "store_schema": False,
}
_TAIL = len(b"\0\0\0\0PAR1")


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
    """A new file; every table of `SCHEMA` that is added becomes one row group."""

    def __init__(self, codec: str) -> None:
        self._sink = _Sink()
        self._writer = pq.ParquetWriter(
            self._sink, SCHEMA, compression=codec, compression_level=_LEVELS.get(codec), **_OPTIONS
        )

    def add(self, table: pa.Table) -> list[Buffer]:
        """Write a row group; return the file's bytes so far that were not returned before."""
        self._writer.write_table(table, row_group_size=len(table))
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
