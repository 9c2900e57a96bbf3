"""Writes a Parquet file and returns its bytes after each row group."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.records.formats.base import RECORD, Buffer
from kafka_archiver.records.formats.parquet import ParquetOptions
from kafka_archiver.records.formats.shared.columns import SOURCE
from kafka_archiver.records.formats.shared.plain_types import bare, seen_as
from kafka_archiver.records.formats.shared.records import COLUMNS, kafkas, kafkas_as
from kafka_archiver.records.vectors import entries

# Values of a leaf, and the share of distinct ones from which it has no dictionary: about 12,000 values, evenly mixed,
# have this share in such a sample.
_SAMPLE, _SHARE = 4096, 0.85
# The key of the metadata with what a schema says of its columns besides their types.
_ABOUT = b"kafka_archiver.columns"
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
# The distinct values that a bloom filter expects in a row group: it takes 128 KiB, and finds 95 % of what is not there.
_DISTINCT = 128 << 10
_TAIL = len(b"\0\0\0\0PAR1")


def varied(table: pa.Table, leaves: Sequence[str | None]) -> set[str]:
    """The paths of the leaves that get no dictionary: their first values are mostly distinct.

    There, pyarrow fills a dictionary up to a megabyte and then gives it up. That costs half of the CPU of such a
    column, and makes it larger.

    :param table: has rows, and each column as one chunk.
    :param leaves: the path of each leaf of the table, in Parquet's order; None: not asked for.
    """
    sample = table.slice(0, _SAMPLE).to_batches()[0]
    columns = seen_as(sample, bare(table.schema)).columns
    values = (leaf for column in columns for leaf in _leaves(column))
    return {path for path, some in zip(leaves, values, strict=True) if path and _is_varied(some)}


def _is_varied(values: pa.Array) -> bool:
    some = values.slice(0, _SAMPLE)
    return bool(pc.count_distinct(some).as_py() > _SHARE * (len(some) - some.null_count))


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    kind = values.type
    if pa.types.is_map(kind):
        values = entries(values).flatten()
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = values.flatten()
    elif not pa.types.is_struct(kind):
        yield values
        return
    for child in values.flatten() if pa.types.is_struct(values.type) else [values]:
        yield from _leaves(child)


def stored(schema: pa.Schema) -> pa.Schema:
    """The schema with Kafka's columns as Parquet stores them."""
    return kafkas_as(schema, _KAFKAS)


@cache
def _options(schema: pa.Schema, bloom_filters: tuple[str, ...]) -> tuple[dict[str, Any], list[str | None]]:
    """The writer's options for a schema, and the path of each decoded leaf; None for Kafka's."""
    names = {field.name: kafkas(field) for field in schema}
    sink = pa.BufferOutputStream()
    try:
        pq.ParquetWriter(sink, stored(schema)).close()
    except pa.ArrowNotImplementedError as error:
        raise ConfigError(f"store.format: parquet cannot store a column of this type: {error}") from error
    leaves = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    columns = [leaves.column(number) for number in range(len(leaves))]

    # A name may have dots, too.
    kafkas_names = [names.get(c.path, names.get(c.path.partition(".")[0])) for c in columns]

    def without(left: frozenset[str]) -> list[str]:
        return [c.path for c, name in zip(columns, kafkas_names, strict=True) if name not in left]

    options: dict[str, Any] = {
        "use_dictionary": without(_VARIED),
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name, kafka in names.items() if kafka in _ASCENDING},
        "write_statistics": without(_UNSORTED),
    }
    if bloom_filters:
        # As people name them: without the groups that Parquet has inside lists and maps.
        choices = {
            re.sub(r"\.(list\.element|key_value)(?=\.|$)", "", column.path): column.path
            for column in columns
            if column.physical_type != "BOOLEAN"
        }
        if unknown := [name for name in bloom_filters if name not in choices]:
            raise ConfigError(
                f"store.options.bloom_filters: found {unknown[0]!r}, expected columns of {', '.join(choices)}"
            )
        options["bloom_filter_options"] = {choices[name]: {"ndv": _DISTINCT} for name in bloom_filters}
    if not schema.equals(RECORD):
        # The files of `RECORD` keep the bytes of earlier releases.
        sorted_by = [pq.SortingColumn(n) for n, column in enumerate(columns) if names.get(column.path) == "offset"]
        options |= {"write_page_index": True, "sorting_columns": sorted_by or None}
    return options, [None if name else c.path for c, name in zip(columns, kafkas_names, strict=True)]


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

    def __init__(self, schema: pa.Schema, codec: str, options: ParquetOptions) -> None:
        self._schema, self._codec = schema, codec
        self._options, self._decoded = _options(schema, options.bloom_filters)
        self._sink = _Sink()
        self._writer: pq.ParquetWriter | None = None

    def _open(self, table: pa.Table | None) -> pq.ParquetWriter:
        """The writer, made with the first row group: its rows show which columns deserve a dictionary."""
        if self._writer is None:
            no_dictionary = varied(table, self._decoded) if table else set()
            self._writer = pq.ParquetWriter(
                self._sink,
                stored(self._schema),
                compression=self._codec,
                compression_level=_LEVELS.get(self._codec),
                write_page_checksum=True,
                store_schema=False,
                **self._options
                | {"use_dictionary": [c for c in self._options["use_dictionary"] if c not in no_dictionary]},
            )
            if column_metadata := _about(self._schema):
                self._writer.add_key_value_metadata(column_metadata)
        return self._writer

    def add(self, table: pa.Table) -> list[Buffer]:
        """Write a row group; return the new bytes of the file.

        :raises IntegrityError: a column that is not nullable has nulls.
        """
        try:
            self._open(table).write_table(table, row_group_size=len(table))
        except pa.ArrowInvalid as error:
            raise IntegrityError(f"the records do not fit the object's schema: {error}") from error
        return self._sink.take()

    def finish(self) -> list[Buffer]:
        """End the file; return the rest of its bytes."""
        writer = self._open(None)
        before = self._sink.take()
        writer.close()
        last_bytes = b"".join(self._sink.take())
        # The page index comes first, then the footer, its length, and the magic bytes.
        start = len(last_bytes) - _TAIL - int.from_bytes(last_bytes[-_TAIL:][:4], "little")
        index, footer = last_bytes[:start], last_bytes[start:-_TAIL]
        # created_by is a Thrift string: its length, then the characters. Only fixed structures follow it.
        library = writer.writer.metadata.created_by.encode()
        at = footer.rindex(bytes([len(library)]) + library)
        footer = footer[:at] + bytes([len(_CREATED_BY)]) + _CREATED_BY + footer[at + 1 + len(library) :]
        return [*before, index, footer, len(footer).to_bytes(4, "little"), b"PAR1"]


def _about(schema: pa.Schema) -> dict[bytes, bytes]:
    """Return documentation, names and symbols by column, as one JSON object; "" is the record itself.

    Nested columns are named like `items.price`: the items of lists and the values of maps have no name of their own.
    """
    by_column: dict[str, dict[str, str]] = {}
    for path, metadata in [("", schema.metadata), *(pair for field in schema for pair in _pairs(field, field.name))]:
        if properties := {k.decode(): v.decode() for k, v in (metadata or {}).items() if k != SOURCE}:
            by_column.setdefault(path, {}).update(properties)
    return {_ABOUT: orjson.dumps(by_column)} if by_column else {}


def _pairs(field: pa.Field, path: str) -> Iterator[tuple[str, dict[bytes, bytes] | None]]:
    yield path, field.metadata
    kind = field.type
    if pa.types.is_map(kind):
        yield from _pairs(kind.item_field, path)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _pairs(kind.value_field, path)
    elif pa.types.is_struct(kind):
        for child in kind:
            yield from _pairs(child, f"{path}.{child.name}")
