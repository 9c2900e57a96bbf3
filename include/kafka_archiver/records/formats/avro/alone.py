"""Reads Avro objects by the schema that they contain."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO

import fastavro
import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.avro.schema import parse
from kafka_archiver.records.avro.types import arrow_field
from kafka_archiver.records.formats.avro.reader import read_records
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.shared.file_schema import with_kafkas
from kafka_archiver.records.formats.shared.plain_types import plain


def read_alone(source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a file's schema, and its records.

    :raises IntegrityError: `source` is no Avro file of records.
    """
    try:
        written: Any = fastavro.reader(source).writer_schema
        record = arrow_field("", parse(Schema(kind="AVRO", text=json.dumps(written)))).type
        # The decoder's types may all be null.
        required = [not isinstance(field["type"], list) for field in written["fields"]]
        fields = [plain(field).with_nullable(not must) for field, must in zip(record, required, strict=True)]
    except (ValueError, EOFError, LookupError, TypeError, ConfigError) as error:
        raise IntegrityError(f"{target.key} is not a complete Avro file of records: {error}") from error
    source.seek(0)
    schema = with_kafkas(pa.schema(fields))
    return schema, read_records(source, replace(target, schema=schema), written)
