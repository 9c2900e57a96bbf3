"""The columns of an object by what the file says of itself, for readers who have no plan."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, get_args

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_archiver.decode.avro.schema import parse
from kafka_archiver.decode.avro.types import arrow_field
from kafka_archiver.errors import ConfigError, IntegrityError
from kafka_archiver.formats.base import RECORD
from kafka_archiver.formats.csv import CsvOptions
from kafka_archiver.formats.shared.columns import made_of
from kafka_archiver.formats.shared.decompress import decompressed
from kafka_archiver.formats.shared.plain_types import plain
from kafka_archiver.schemas import Schema

_CSV_RECORD = [*RECORD.names, "key_base64", "value_base64"]
_BYTES = ("key", "value")


def of_parquet(source: BinaryIO, name: str) -> pa.Schema:
    """The columns of a Parquet file.

    :raises IntegrityError: it is none.
    """
    try:
        found = pq.read_schema(source)
    except (pa.ArrowException, OSError) as error:
        raise IntegrityError(f"{name} is not a complete Parquet file: {error}") from error
    return with_kafkas(found.remove_metadata())


def of_avro(source: BinaryIO, name: str) -> tuple[pa.Schema, Any]:
    """The columns of an Avro file, and its schema as JSON values.

    :raises IntegrityError: it is none.
    """
    try:
        written: Any = fastavro.reader(source).writer_schema
        record = arrow_field("", parse(Schema(kind="AVRO", text=json.dumps(written)))).type
        # The decoder's types may all be null.
        required = [not isinstance(field["type"], list) for field in written["fields"]]
        fields = [plain(field).with_nullable(not must) for field, must in zip(record, required, strict=True)]
    except (ValueError, EOFError, LookupError, TypeError, ConfigError) as error:
        raise IntegrityError(f"{name} is not a complete Avro file of records: {error}") from error
    return with_kafkas(pa.schema(fields)), written


def with_kafkas(found: pa.Schema) -> pa.Schema:
    """The columns of a file, Kafka's as those of an object, whatever prefix their names have.

    Kafka's columns stand first, so the first one tells the prefix. No decoded column is required.
    """
    first = [(f.name, name) for f in list(found)[:1] for name in RECORD.names if not f.nullable and _is_kafkas(f, name)]
    if not first:
        return found
    prefix = first[0][0].removesuffix(first[0][1])

    def changed(field: pa.Field) -> pa.Field:
        name = next((name for name in RECORD.names if prefix + name == field.name), None)
        if name is None or not _is_kafkas(field, name):
            return field
        return made_of(name, RECORD.field(name).with_name(field.name))

    same = pa.schema(map(changed, found))
    return RECORD if same.equals(RECORD) else same


def _is_kafkas(field: pa.Field, name: str) -> bool:
    """Whether a format stores Kafka's column of that name like this, apart from a prefix."""
    kind, kafka = field.type, RECORD.field(name)
    if not field.name.endswith(name) or field.nullable != (name in _BYTES):
        return False
    if name == "timestamp":
        return bool(kind == pa.timestamp("ms", "UTC"))
    if name == "headers":
        return bool(pa.types.is_list(kind) and pa.types.is_struct(kind.value_type))
    return bool(kind == kafka.type)


def of_csv(source: BinaryIO, codec: str, name: str) -> tuple[pa.Schema, Mapping[str, Any]]:
    """The columns of a CSV file by its header, as text unless they are those of `content: record`; and its options.

    :raises IntegrityError: it is not compressed like this. ConfigError: it has no header.
    """
    start = b"".join(_until_line(decompressed(codec, source)))
    line = start.decode(errors="replace")
    delimiter = max(get_args(CsvOptions.model_fields["delimiter"].annotation), key=line.count)
    names = next(csv.reader([line], delimiter=delimiter), [])
    again = io.StringIO()
    csv.writer(again, delimiter=delimiter, lineterminator="").writerow(names)
    # Quotes that names do not need are those of values.
    if not names or len(set(names)) < len(names) or again.getvalue() != line:
        raise ConfigError(
            f"{name} does not begin with a header, which tells the columns (`store.options.header: false` leaves it "
            "out), so its rows cannot be printed as JSON lines; a program for CSV reads them"
        )
    text = pa.schema([pa.field(column, pa.string()) for column in names])
    return RECORD if names == _CSV_RECORD else text, {"delimiter": delimiter}


def _until_line(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces up to the end of the first line."""
    for piece in pieces:
        line, newline, _ = piece.partition(b"\n")
        yield line
        if newline:
            return
