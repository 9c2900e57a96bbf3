"""Read one object of another tool: its checksum, its rows, and the offsets that its records have."""

import json
import tempfile
import zlib
from typing import Any, BinaryIO, cast

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.adopted import LeftOut, ListedObject, ReadObject, Tool
from kafka_archiver.records.reading.files import PIECE
from kafka_archiver.records.reading.foreign import Facts, foreign_format
from kafka_archiver.records.reading.foreign.base import foreign_target
from kafka_archiver.store import Store
from kafka_archiver.values.checksum import spelt
from kafka_archiver.work.adopt.names import Ignored, Named, parsed

# Larger ones are on disk while they are read.
_IN_MEMORY = 1 << 20
_CHANGED = "it is gone or was replaced since the folder was listed"
# The last offset and the last time that Kafka may have.
_LAST = 2**63 - 2


def read_object(store: Store, item: ListedObject, tool: Tool, topic: str | None) -> ReadObject | LeftOut:
    """Read an object once, completely.

    :raises ArchiverError: the store failed. A damaged object is left out.
    """
    named = parsed(tool, item.key, topic)
    if isinstance(named, Ignored):
        return LeftOut(key=item.key, reason=named.reason)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
        checksum = _copied(store, item, cast(BinaryIO, copy))
        stat = store.head(item.key)
        if checksum is None or stat is None or (stat.size, stat.etag) != (item.bytes, item.etag):
            return LeftOut(key=item.key, reason=_CHANGED)
        try:
            copy.seek(0)
            facts = _facts(cast(BinaryIO, copy), item, named)
        except IntegrityError as damage:
            return LeftOut(key=item.key, reason=f"it cannot be read: {damage}".replace(item.key, "it"))
    if not facts.rows:
        return LeftOut(key=item.key, reason="it has no record")
    counts = named.counts and (named.index_key is None or _records_by_index(store, named.index_key) == facts.rows)
    return ReadObject(
        key=item.key,
        topic=named.topic,
        partition=named.partition,
        number=named.number,
        of=named.of,
        chain=named.chain,
        format=named.format,
        codec=named.codec,
        bytes=item.bytes,
        etag=item.etag,
        checksum=checksum,
        rows=facts.rows,
        counts=counts,
        low=facts.low,
        high=facts.high,
        min_timestamp=named.min_timestamp if facts.min_timestamp is None else facts.min_timestamp,
        max_timestamp=named.max_timestamp if facts.max_timestamp is None else facts.max_timestamp,
    )


def _copied(store: Store, item: ListedObject, copy: BinaryIO) -> str | None:
    """Copy an object; return its checksum. None: it has not the listed size."""
    crc = size = 0
    for start in range(0, item.bytes, PIECE):
        data = store.read(item.key, start, min(PIECE, item.bytes - start))
        if not data:
            return None
        crc, size = zlib.crc32(data, crc), size + len(data)
        copy.write(data)
    return spelt(crc) if size == item.bytes else None


def _facts(copy: BinaryIO, item: ListedObject, named: Named) -> Facts:
    target = foreign_target(named.topic, named.partition, item.key, named.format, named.codec)
    facts = foreign_format(named.format).facts(copy, target, named.envelope)
    if facts.place not in (None, (named.topic, named.partition)):
        raise IntegrityError(f"its records are of {facts.place}, and its name says {named.topic}, {named.partition}")
    if named.number is None and facts.low is None and facts.rows:
        raise IntegrityError("its records have no offsets")
    if not all(0 <= number <= _LAST for number in facts[1:5] if number is not None):
        raise IntegrityError(f"its records have offsets or times that Kafka has not: {facts[1:5]}")
    if named.number is not None and facts.high not in (None, named.number):
        raise IntegrityError(f"its last record has the offset {facts.high}, and its name says {named.number}")
    return facts


def _records_by_index(store: Store, key: str) -> int | None:
    """Return the number of records by the index beside an object; None: there is none."""
    data = store.get(key)
    try:
        chunks: Any = json.loads(data)["chunks"] if data else ()
        return sum(int(chunk["num_records"]) for chunk in chunks) or None
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None
