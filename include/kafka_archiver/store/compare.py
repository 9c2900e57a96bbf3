"""Whether an object is what it should be, by what the store can say of it, whatever its ETags are."""

import zlib
from typing import Literal, NamedTuple

from kafka_archiver.checksum import spelt
from kafka_archiver.manifest import ObjectEntry
from kafka_archiver.store.base import Stat, Store

_PIECE = 4 << 20


class Comparison(NamedTuple):
    """An object beside what it should be.

    `by`: what decided: that there is none, its size, the store's checksum of it, its ETag, or its bytes, read for this.
    `stat`: what the store says of it, `checksum`: what was found where that decided.
    """

    same: bool
    by: Literal["nothing", "size", "checksum", "etag", "bytes"]
    stat: Stat | None
    checksum: str | None = None

    def __str__(self) -> str:
        """What is there."""
        if self.stat is None:
            return "nothing"
        return f"{self.stat.size} bytes" + (f" with checksum {self.checksum}" if self.checksum else "")


def compare(store: Store, key: str, size: int, checksum: str, etag: str = "") -> Comparison:
    """Compare the object at a key with what a manifest, or who sent it, says.

    Another ETag proves nothing: encrypted objects get a new one each time they are written.

    :param checksum: as documents have it.
    :param etag: what the store is known to have said when it was written, or would say if its ETags are MD5s; may be
        empty.
    """
    stat = store.head(key)
    if stat is None:
        return Comparison(False, "nothing", None)
    if stat.size != size:
        return Comparison(False, "size", stat)
    if stat.checksum is not None:
        return Comparison(stat.checksum == checksum, "checksum", stat, stat.checksum)
    if etag and stat.etag == etag:
        return Comparison(True, "etag", stat)
    found = _read(store, key, size)
    if found != checksum:
        # What was damaged on the way only is right the second time.
        found = _read(store, key, size)
    return Comparison(found == checksum, "bytes", stat, found)


def is_there(store: Store, entry: ObjectEntry) -> bool:
    """Whether an object is as its manifest says."""
    return compare(store, entry.key, entry.bytes, entry.checksum, entry.etag).same


def _read(store: Store, key: str, size: int) -> str:
    """The checksum of the stored bytes, by another implementation than the writer's."""
    crc = 0
    for start in range(0, size, _PIECE):
        crc = zlib.crc32(store.read(key, start, min(_PIECE, size - start)) or b"", crc)
    return spelt(crc)
