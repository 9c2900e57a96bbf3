"""Lines of `content: record`: one JSON object a record, which restores the record exactly.

Keys in this order: topic, partition, offset, timestamp (milliseconds since 1970, -1 for none), timestamp_type,
`key` or `key_base64`, `value` or `value_base64`, headers. Valid UTF-8 is a string under the short name; other bytes are
base64 under the long name; null is null under the short name. Headers are a list of {"key", "value" or "value_base64"}
in Kafka's order, repeats kept; the list is empty for a record without headers.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import RECORD, Target
from kafka_archiver.formats.shared.records import COLUMNS, normalised

_TEXT = pa.schema(
    [COLUMNS.field(name) for name in ("offset", "timestamp", "timestamp_type")]
    + [pa.field("key", pa.large_string()), pa.field("value", pa.large_string())]
    + [
        pa.field(
            "headers",
            pa.list_(
                pa.struct([pa.field("key", pa.large_string(), nullable=False), pa.field("value", pa.large_string())])
            ),
            nullable=False,
        )
    ]
)
_Row = dict[str, Any]
# Python objects at a time, each about 2 KB of memory.
_OBJECTS = 2000


def record_lines(batch: pa.RecordBatch, target: Target) -> Iterator[list[bytes]]:
    """One line a record, a few thousand at a time: Python objects take a hundred times the memory of Arrow columns."""
    head = {"topic": target.topic, "partition": target.partition}
    for some in _some(normalised(batch)):
        try:
            # The cast checks UTF-8 as a vector. Schema and struct fields are in the order of the JSON keys.
            rows = some.cast(_TEXT).to_pylist()
        except pa.ArrowInvalid:
            rows = [_readable(row) for row in some.to_pylist()]
        yield [orjson.dumps({**head, **row}, option=orjson.OPT_APPEND_NEWLINE) for row in rows]


def _some(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in slices of at most `_OBJECTS` Python objects. Each record and each header is one object."""
    objects = np.cumsum(1 + batch.column("headers").value_lengths().to_numpy())
    start = 0
    while start < batch.num_rows:
        before = objects[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(objects, before + _OBJECTS, side="right")))
        yield batch.slice(start, end - start)
        start = end


def _readable(row: _Row) -> _Row:
    headers = header_fields(row.pop("headers"))
    return {
        **{name: value for name, value in row.items() if name not in ("key", "value")},
        **bytes_field("key", row["key"]),
        **bytes_field("value", row["value"]),
        "headers": headers,
    }


def header_fields(headers: list[_Row]) -> list[_Row]:
    """Headers as JSON values."""
    return [{"key": header["key"], **bytes_field("value", header["value"])} for header in headers]


def bytes_field(name: str, value: bytes | None) -> _Row:
    """Bytes as a string under their name, or as base64 under the longer name."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}


def records_of(lines: bytes) -> pa.RecordBatch:
    """The records of complete lines, each ending in a newline.

    :raises IntegrityError: a line is not such an object.
    """
    try:
        rows = [orjson.loads(line) for line in lines.split(b"\n")[:-1]]
        for row in rows:
            row["key"], row["value"] = bytes_of(row, "key"), bytes_of(row, "value")
            for header in row["headers"]:
                header["value"] = bytes_of(header, "value")
        columns = [pa.array([row[field.name] for row in rows], field.type) for field in RECORD]
        batch = pa.RecordBatch.from_arrays(columns, schema=RECORD)
        batch.validate(full=True)
        return batch
    except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise IntegrityError(f"a line is not a record of `content: record`: {error!r}") from error


def bytes_of(fields: _Row, name: str) -> bytes | None:
    """The bytes that `bytes_field` wrote.

    :raises KeyError: there are none. ValueError: they are not base64.
    """
    if f"{name}_base64" in fields:
        return b64decode(fields[f"{name}_base64"], validate=True)
    text: str | None = fields[name]
    return None if text is None else text.encode()
