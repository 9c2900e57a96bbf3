"""Dead letters: rejected records as JSON lines, with everything that Kafka had and the reason; and their reader.

A line is that of `format: jsonl`, `content: record`, with `error` as an additional last key. The same reader reads it.
`records/writer/bad_records` gives the reasons.
"""

import zlib
from collections.abc import Iterator
from typing import BinaryIO

import orjson
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats.base import RECORD, UNREAD, Target
from kafka_archiver.records.formats.jsonl.objects import object_lines
from kafka_archiver.records.formats.jsonl.reader import whole_lines
from kafka_archiver.records.formats.jsonl.records import records_of
from kafka_archiver.records.formats.shared.compress import StreamEncoder
from kafka_archiver.records.formats.shared.decompress import decompressed
from kafka_archiver.records.formats.unread import UNREADABLE, unread_column

SETTINGS = Settings(format="jsonl", codec="gzip", content="record")
EXTENSION = ".jsonl.gz"
# An additional column of the batches.
ERROR = pa.field("error", pa.string(), nullable=False)
_SCHEMA = pa.schema([*RECORD, ERROR])


def encoder(topic: str, partition: int, key: str) -> StreamEncoder:
    """A new encoder, for batches with a column `error`."""
    target = Target(topic=topic, partition=partition, key=key, settings=SETTINGS, schema=_SCHEMA)
    return StreamEncoder(target, object_lines)


def read(source: BinaryIO, key: str) -> Iterator[pa.RecordBatch]:
    """The records of an object of dead letters: batches of `RECORD`, and `UNREAD` for what a letter lacks.

    :param source: decides the size of a batch: a batch has the lines of one `read()`.
    :raises IntegrityError: `source` is not a complete object of dead letters.
    """
    for lines in whole_lines(decompressed(SETTINGS.codec, source), key):
        batch = records_of(lines)
        marks: list[dict[str, str] | None] = [None] * batch.num_rows
        if any(words.encode() in lines for words in UNREADABLE):
            errors = (orjson.loads(line)["error"] for line in lines.split(b"\n")[:-1])
            marks = [unread_column(error) for error in errors]
        yield batch.append_column(UNREAD, pa.array(marks, UNREAD.type))


def first_lines(head: bytes, most: int) -> list[bytes]:
    """Return the first letters of an object, each a line of JSON.

    :param head: the beginning of the object, or all of it.
    :param most: bytes that are decompressed.
    :raises IntegrityError: it is no object of dead letters.
    """
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, most).split(b"\n")[:-1]
    except zlib.error as error:
        raise IntegrityError(f"expected dead letters, found something else: {error}") from error


def reasons(head: bytes, most: int) -> Iterator[str]:
    """Yield the reasons of the first letters of an object. Parameters and errors as of `first_lines`."""
    try:
        for line in first_lines(head, most):
            yield str(orjson.loads(line)["error"])
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"expected dead letters, found something else: {error}") from error
