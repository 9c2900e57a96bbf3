"""Compares a stored object with its expected size and checksum, for any kind of ETag."""

import zlib
from typing import Literal, NamedTuple

from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.store.base import Stat, Store
from kafka_archiver.values.checksum import spelt

_PIECE = 4 << 20


class Comparison(NamedTuple):
    """The result of a comparison.

    `by`: what decided: there is no object ("nothing"), its size, the store's checksum, its ETag, or its bytes, which
    were read. `stat`: the store's metadata. `checksum`: the found checksum, if it decided.
    """

    same: bool
    by: Literal["nothing", "size", "checksum", "etag", "bytes"]
    stat: Stat | None
    checksum: str | None = None

    def __str__(self) -> str:
        """The stored object in words."""
        if self.stat is None:
            return "nothing"
        return f"{self.stat.size} bytes" + (f" with checksum {self.checksum}" if self.checksum else "")


def compare(store: Store, key: str, size: int, checksum: str, etag: str = "") -> Comparison:
    """Compare the object at a key with the expected size and checksum.

    A different ETag proves nothing: encrypted objects get a new ETag with every write.

    :param checksum: spelt as in documents.
    :param etag: the ETag from when the object was written, or the one it has if ETags are MD5s; may be empty.
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
    stored = _read(store, key, size)
    if stored != checksum:
        # Read twice: the bytes may have been damaged on the way.
        stored = _read(store, key, size)
    return Comparison(stored == checksum, "bytes", stat, stored)


def is_there(store: Store, entry: ObjectEntry) -> bool:
    """Return True if the stored object matches its entry in the manifest."""
    return compare(store, entry.key, entry.bytes, entry.checksum, entry.etag).same


def _read(store: Store, key: str, size: int) -> str:
    """The checksum of the stored bytes, with zlib: not the writer's implementation."""
    crc = 0
    for start in range(0, size, _PIECE):
        crc = zlib.crc32(store.read(key, start, min(_PIECE, size - start)) or b"", crc)
    return spelt(crc)
