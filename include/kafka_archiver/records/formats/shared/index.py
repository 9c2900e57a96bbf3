"""The index of an object: where its parts are, so that one range request reads the record at an offset.

It is a sidecar, one JSON document as kafka-connect-s3 writes it: `{"chunks": [...]}`. A chunk is a part of the object
that is decompressed alone: a gzip member, a run of zstd frames, an Avro block.

| field | what |
|---|---|
| byte_length_uncompressed | its bytes before compression |
| num_records | its rows |
| byte_length, byte_offset | its place in the object |
| first_record_offset | Kafka's offset of its first record; null if the rows come without offsets |
| checksum | `crc32:` and the CRC-32 of its bytes in the object; not in `block_gzip`, which is as the peer writes it |

Kafka's offsets may have gaps, so the record at an offset is in the last chunk that does not begin after it.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import orjson
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError, error_in_words
from kafka_archiver.records.formats.base import Buffer, Sought, Target
from kafka_archiver.values.checksum import crc32, spelt

EXTENSION = ".index.json"
# The records of one part, from its bytes.
ReadPart = Callable[[bytes], Iterator[pa.RecordBatch]]


class Part:
    """The bytes of one part, counted piece by piece."""

    def __init__(self) -> None:
        self.size = self._crc = 0

    def take(self, pieces: Iterable[Buffer]) -> None:
        """Count further bytes."""
        for piece in pieces:
            self.size += len(piece)
            self._crc = zlib.crc32(piece, self._crc)

    @property
    def checksum(self) -> str:
        """The checksum of its bytes."""
        return spelt(self._crc)


class Index:
    """Collects the places of an object's parts.

    :param size: the bytes before the first part.
    :param checksums: whether each part has its checksum.
    """

    def __init__(self, size: int = 0, checksums: bool = True) -> None:
        self._size, self._checksums = size, checksums
        self._chunks: list[dict[str, Any]] = []

    def add(self, part: Part, uncompressed: int, rows: int, first: int | None) -> None:
        """Take the next part; one without rows has no entry."""
        if rows:
            chunk: dict[str, Any] = {
                "byte_length_uncompressed": uncompressed,
                "num_records": rows,
                "byte_length": part.size,
                "byte_offset": self._size,
                "first_record_offset": first,
            }
            self._chunks.append({**chunk, "checksum": part.checksum} if self._checksums else chunk)
        self._size += part.size

    def document(self) -> bytes:
        """Return the sidecar."""
        return orjson.dumps({"chunks": self._chunks})


def read_from(
    source: BinaryIO, target: Target, sought: Sought, read_part: ReadPart
) -> tuple[int, Iterator[pa.RecordBatch]] | None:
    """Return the number of the first row of the part with an offset, and the records from there on.

    The number of the row finds the part if the index has no offsets.

    :raises IntegrityError: the index is none, or not that of the object.
    """
    index = sought.sidecar()
    if index is None:
        return None
    try:
        chunks: Sequence[dict[str, Any]] = orjson.loads(index)["chunks"]
        if any(chunk["first_record_offset"] is None for chunk in chunks):
            first = None if sought.row is None else _with_row(chunks, sought.row)
        else:
            first = _with_offset(chunks, sought.offset, repeated=target.settings.transform is not None)
        rows = sum(chunk["num_records"] for chunk in chunks[:first])
    except (ValueError, LookupError, TypeError) as error:
        raise IntegrityError(f"the index of {target.key} is none: {error_in_words(error)}") from error
    return None if first is None else (rows, _records(source, target, chunks[first:], read_part))


def _with_row(chunks: Sequence[dict[str, Any]], row: int) -> int:
    before = 0
    for number, chunk in enumerate(chunks):
        before += chunk["num_records"]
        if row < before:
            return number
    return len(chunks)


def _with_offset(chunks: Sequence[dict[str, Any]], offset: int, repeated: bool) -> int:
    """:param repeated: rows of one record may begin in an earlier part."""
    first = max((n for n, chunk in enumerate(chunks) if chunk["first_record_offset"] <= offset), default=0)
    while repeated and first and chunks[first]["first_record_offset"] == offset:
        first -= 1
    return first


def _records(
    source: BinaryIO, target: Target, chunks: Sequence[dict[str, Any]], read_part: ReadPart
) -> Iterator[pa.RecordBatch]:
    for chunk in chunks:
        source.seek(chunk["byte_offset"])
        data = source.read(chunk["byte_length"])
        where = f"the part at byte {chunk['byte_offset']}"
        checksum = spelt(crc32(data))
        if chunk.get("checksum", checksum) != checksum:
            raise IntegrityError(
                f"{target.key} has the checksum {checksum} in {where}, and its index says {chunk['checksum']}"
            )
        rows = 0
        for batch in read_part(data):
            rows += batch.num_rows
            yield batch
        if rows != chunk["num_records"]:
            raise IntegrityError(f"{target.key} has {rows} rows in {where}, and its index says {chunk['num_records']}")
