"""Reads lines of `content: record`: one JSON object a record, which restores the record exactly.

Keys in this order: topic, partition, offset, timestamp (milliseconds since 1970, -1 for none), timestamp_type,
`key` or `key_base64`, `value` or `value_base64`, headers. Valid UTF-8 is a string under the short name; other bytes are
base64 under the long name; null is null under the short name. Headers are a list of {"key", "value" or "value_base64"}
in Kafka's order, repeats kept; the list is empty for a record without headers.
"""

from base64 import b64decode
from operator import itemgetter
from typing import Any

import orjson
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError, error_in_words
from kafka_archiver.records.formats.base import RECORD
from kafka_archiver.values.garbage_collector import seldom_collecting

_Row = dict[str, Any]
# In the name of every column of bytes that are no text.
_BASE64 = b'_base64"'


@seldom_collecting()
def records_of(lines: bytes) -> pa.RecordBatch:
    """The records of complete lines, each ending in a newline.

    :raises IntegrityError: a line is not such an object.
    """
    try:
        rows = list(map(orjson.loads, lines.split(b"\n")[:-1]))
        # Texts become bytes in Arrow. Of a few bytes that are no text, Python makes all of the piece.
        as_text = {} if _BASE64 in lines else dict.fromkeys(("key", "value"), pa.string())
        if not as_text:
            for row in rows:
                row["key"], row["value"] = bytes_of(row, "key"), bytes_of(row, "value")
        for headers in filter(None, map(itemgetter("headers"), rows)):
            for header in headers:
                header["value"] = bytes_of(header, "value")
        columns = [
            pa.array(list(map(itemgetter(field.name), rows)), as_text.get(field.name, field.type)).cast(field.type)
            for field in RECORD
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=RECORD)
        batch.validate(full=True)
        return batch
    except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise IntegrityError(f"a line is not a record of `content: record`: {error_in_words(error)}") from error


def bytes_of(fields: _Row, name: str) -> bytes | None:
    """The bytes that a line has under the short or the longer name.

    :raises KeyError: there are none. ValueError: they are not base64.
    """
    if f"{name}_base64" in fields:
        return b64decode(fields[f"{name}_base64"], validate=True)
    text: str | None = fields[name]
    return None if text is None else text.encode()
