"""The index of an object, compared with the object: of gzip members, of zstd frames, of Avro blocks.

The object itself is read as JSON lines, or as Avro.
"""

import io
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import zstandard

from kafka_archiver.audit.readers.avro import schema_of
from kafka_archiver.audit.readers.base import SidecarOwner, coordinate_columns
from kafka_archiver.audit.readers.streams import READ
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.checksum import spelt

_FIELDS = {"byte_length_uncompressed", "num_records", "byte_length", "byte_offset", "first_record_offset"}
_SUMMED = _FIELDS | {"checksum"}
_GZIP = 16 + zlib.MAX_WBITS


class _Part(NamedTuple):
    """A part of an object: bytes before compression, records, the first record's offset if it has one."""

    size: int
    records: int
    first: int | None


class _Kind(NamedTuple):
    """The kind of an object's parts; the fields of an index; what reads a part alone: its bytes in pieces, those
    before the first part, and the column of offsets.
    """

    part: str
    fields: set[str]
    read: Callable[[Iterator[bytes], bytes, str | None], _Part]


def members(file: BinaryIO, settings: Settings, beside: SidecarOwner) -> Iterator[str]:
    """The faults of the index of a block gzip object."""
    return _index(file, settings, beside, _Kind("a gzip member", _FIELDS, _gzip_member))


def frames(file: BinaryIO, settings: Settings, beside: SidecarOwner) -> Iterator[str]:
    """The faults of the index of lines in zstd frames."""
    return _index(file, settings, beside, _Kind("a run of zstd frames", _SUMMED, _zstd_frames))


def blocks(file: BinaryIO, settings: Settings, beside: SidecarOwner) -> Iterator[str]:
    """The faults of the index of an Avro object."""
    return _index(file, settings, beside, _Kind("an Avro block", _SUMMED, _avro_block))


def _index(file: BinaryIO, settings: Settings, beside: SidecarOwner, kind: _Kind) -> Iterator[str]:
    """The faults of an index: where it does not say what a range request for each chunk gives."""
    document = json.load(file)
    if set(document) != {"chunks"} or any(set(chunk) != kind.fields for chunk in document["chunks"]):
        yield "it is not an index of chunks"
        return
    chunks, entry = document["chunks"], beside.entry
    begin = chunks[0]["byte_offset"] if chunks and kind.read is _avro_block else 0
    head = beside.fetch(0, begin) if begin else b""
    end, offset = begin, entry.first_offset
    for number, chunk in enumerate(chunks):
        first = chunk["first_record_offset"]
        # Rows that an earlier release's repair read back may come without their offsets.
        known = first is not None
        if chunk["byte_offset"] != end or (known and (first < offset or (not number and first != offset))):
            yield f"chunk {number} begins at byte {chunk['byte_offset']} and offset {first}"
        end, offset = chunk["byte_offset"] + chunk["byte_length"], first if known else offset
        # The rows of a record may go on in the next chunk.
        offset += chunk["num_records"] if entry.records is None and known else 0
        yield from (f"chunk {number} {what}" for what in _chunk(chunk, settings, beside, head, kind))
    rows = sum(chunk["num_records"] for chunk in chunks)
    if (end, rows) != (entry.bytes, entry.rows) or offset > entry.last_offset + 1:
        yield f"it ends at byte {end}, record {rows} and offset {offset}"


def _chunk(chunk: dict[str, Any], settings: Settings, beside: SidecarOwner, head: bytes, kind: _Kind) -> Iterator[str]:
    """The faults of one chunk, read alone."""
    start, end = chunk["byte_offset"], chunk["byte_offset"] + chunk["byte_length"]
    pieces: Iterator[bytes] = (beside.fetch(at, min(READ, end - at)) for at in range(start, end, READ))
    if "checksum" in chunk:
        # A part of about a megabyte: with another byte, libraries raise anything.
        data = b"".join(pieces)
        if (checksum := spelt(zlib.crc32(data))) != chunk["checksum"]:
            yield f"has the checksum {checksum}"
            return
        pieces = iter([data])
    try:
        part = kind.read(pieces, head, coordinate_columns(settings)[2])
    except (zlib.error, zstandard.ZstdError, ValueError, EOFError) as error:
        yield f"is not {kind.part}: {error}"
        return
    if (part.size, part.records) != (chunk["byte_length_uncompressed"], chunk["num_records"]):
        yield f"has {part.size} bytes in {part.records} records"
    elif part.first not in (None, chunk["first_record_offset"]):
        yield f"begins with offset {part.first}"


def _gzip_member(pieces: Iterator[bytes], _head: bytes, column: str | None) -> _Part:
    member = zlib.decompressobj(_GZIP)
    part = _lines(map(member.decompress, pieces), column)
    if not member.eof or member.unused_data:
        raise ValueError("it does not end with the chunk")
    return part


def _zstd_frames(pieces: Iterator[bytes], _head: bytes, column: str | None) -> _Part:
    frame = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    part = _lines(map(frame.decompress, pieces), column)
    if frame.unconsumed_tail or frame.unused_data:
        raise ValueError("it does not end with the chunk")
    return part


def _lines(pieces: Iterator[bytes], column: str | None) -> _Part:
    size, records, line, last = 0, 0, b"", b""
    for piece in pieces:
        if not records:
            line += piece
        size, records, last = size + len(piece), records + piece.count(b"\n"), piece[-1:] or last
    if last != b"\n":
        raise ValueError("it does not end with a line")
    return _Part(size, records, json.loads(line[: line.index(b"\n")])[column] if column else None)


def _avro_block(pieces: Iterator[bytes], head: bytes, column: str | None) -> _Part:
    data = b"".join(pieces)
    # Of the extra `avro`, which archives of other formats do without.
    import fastavro

    opened: Any = fastavro.block_reader(io.BytesIO(head + data))
    [block] = opened
    content = block.bytes_.getvalue()
    first: Any = fastavro.schemaless_reader(io.BytesIO(content), schema_of(opened), None)
    return _Part(len(content), block.num_records, first[column] if column else None)
