"""The index of a block gzip object, compared with the object. The object itself is read as JSON lines."""

import json
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from kafka_archiver.audit.readers.base import SidecarOwner
from kafka_archiver.audit.readers.streams import READ
from kafka_archiver.model.plan import Settings

_FIELDS = {"byte_length_uncompressed", "num_records", "byte_length", "byte_offset", "first_record_offset"}
_GZIP = 16 + zlib.MAX_WBITS


def index(file: BinaryIO, settings: Settings, beside: SidecarOwner) -> Iterator[str]:
    """The faults of an index: where it does not say what a range request for each chunk gives."""
    document = json.load(file)
    if set(document) != {"chunks"} or any(set(chunk) != _FIELDS for chunk in document["chunks"]):
        yield "it is not an index of chunks"
        return
    chunks, entry = document["chunks"], beside.entry
    end, offset = 0, entry.first_offset
    for number, chunk in enumerate(chunks):
        first = chunk["first_record_offset"]
        if chunk["byte_offset"] != end or first < offset or (not number and first != offset):
            yield f"chunk {number} begins at byte {chunk['byte_offset']} and offset {first}"
        # The rows of a record may go on in the next chunk.
        end, offset = chunk["byte_offset"] + chunk["byte_length"], first
        offset += chunk["num_records"] if entry.records is None else 0
        yield from (f"chunk {number} {what}" for what in _chunk(chunk, settings, beside))
    rows = sum(chunk["num_records"] for chunk in chunks)
    if (end, rows) != (entry.bytes, entry.rows) or offset > entry.last_offset + 1:
        yield f"it ends at byte {end}, record {rows} and offset {offset}"


def _chunk(chunk: dict[str, Any], settings: Settings, beside: SidecarOwner) -> Iterator[str]:
    """The faults of one chunk, read alone."""
    member, size, records, line = zlib.decompressobj(_GZIP), 0, 0, b""
    start, end = chunk["byte_offset"], chunk["byte_offset"] + chunk["byte_length"]
    try:
        for at in range(start, end, READ):
            piece = member.decompress(beside.fetch(at, min(READ, end - at)))
            if not records:
                line += piece
            size, records = size + len(piece), records + piece.count(b"\n")
    except zlib.error as error:
        yield f"is not a gzip member: {error}"
        return
    if not member.eof or member.unused_data:
        yield "is not a gzip member: it does not end with the chunk"
    elif (size, records) != (chunk["byte_length_uncompressed"], chunk["num_records"]):
        yield f"has {size} bytes in {records} records"
    elif settings.content == "record" and _offset(line) != chunk["first_record_offset"]:
        yield f"begins with offset {_offset(line)}"


def _offset(line: bytes) -> Any:
    return json.loads(line[: line.index(b"\n")])["offset"]
