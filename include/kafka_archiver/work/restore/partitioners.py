"""The partition that a producer chooses by a record's key: Java's murmur2, librdkafka's crc32. Pure.

The same key has the same partition as with these clients. A record without a key goes where its source partition goes
by number: clients spread such records by chance, and a restore must do the same each time.
"""

import zlib

import numpy as np
import pyarrow as pa

from kafka_archiver.model.restore import Partitioner
from kafka_archiver.records.vectors import text_of
from kafka_archiver.values.columns import Int64s

# Bytes of a word; a key of more words is hashed alone.
_WORD, _LONG = 4, 64
_SEED, _M, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """Return the 32-bit hash of Kafka's Java client (`Utils.murmur2`)."""
    length = len(key)
    hashed = (_SEED ^ length) & _MASK
    whole = length & ~3
    for word in np.frombuffer(key, "<u4", whole // 4).tolist():
        k = (word * _M) & _MASK
        k = ((k ^ (k >> 24)) * _M) & _MASK
        hashed = ((hashed * _M) & _MASK) ^ k
    tail = key[whole:]
    if tail:
        hashed ^= int.from_bytes(tail, "little")
        hashed = (hashed * _M) & _MASK
    hashed = ((hashed ^ (hashed >> 13)) * _M) & _MASK
    return hashed ^ (hashed >> 15)


def partition_of(key: bytes | None, partitioner: Partitioner, partitions: int, source: int) -> int:
    """Return the target partition of a record of a source partition."""
    if partitioner == "same":
        return source
    if key is None:
        return source % partitions
    hashed = murmur2(key) & 0x7FFFFFFF if partitioner == "murmur2" else zlib.crc32(key)
    return hashed % partitions


def partitions_of(keys: pa.Array, partitioner: Partitioner, partitions: int, source: int) -> Int64s:
    """Return the target partition of each record of a source partition.

    :param keys: of type `large_binary`.
    """
    rows = len(keys)
    chosen = np.full(rows, partition_of(None, partitioner, partitions, source), np.int64)
    if partitioner == "same" or not rows:
        return chosen
    present = keys.is_valid().to_numpy(zero_copy_only=False)
    if partitioner == "crc32":
        hashed = np.fromiter((zlib.crc32(key) for key in keys.drop_null().to_pylist()), np.int64)
    else:
        hashed = _murmur2_of(keys.drop_null()).astype(np.int64) & 0x7FFFFFFF
    chosen[present] = hashed % partitions
    return chosen


def _murmur2_of(keys: pa.Array) -> "np.ndarray[tuple[int], np.dtype[np.uint32]]":
    """Return `murmur2` of each key: all keys advance by a word at a time. No key is null."""
    data, positions = text_of(keys)
    starts = (positions[:-1] - positions[0]).astype(np.int64)
    sizes = np.diff(positions).astype(np.int64)
    # Behind the last key, so that a word can be read at any place.
    padded = np.concatenate([data, np.zeros(_WORD, np.uint8)])
    hashed = np.uint32(_SEED) ^ sizes.astype(np.uint32)
    words = sizes // _WORD
    for word in range(min(int(words.max(initial=0)), _LONG)):
        rows = np.flatnonzero(words > word)
        k = _words_at(padded, starts[rows] + _WORD * word) * np.uint32(_M)
        k = (k ^ (k >> np.uint32(24))) * np.uint32(_M)
        hashed[rows] = hashed[rows] * np.uint32(_M) ^ k
    left = sizes - _WORD * words
    rows = np.flatnonzero(left)
    tails = _words_at(padded, (starts + _WORD * words)[rows]) & (
        (np.uint64(1) << (8 * left[rows]).astype(np.uint64)) - 1
    ).astype(np.uint32)
    hashed[rows] = (hashed[rows] ^ tails) * np.uint32(_M)
    hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(_M)
    hashed ^= hashed >> np.uint32(15)
    for row in np.flatnonzero(words > _LONG).tolist():
        hashed[row] = murmur2(data[starts[row] : starts[row] + sizes[row]].tobytes())
    return hashed


def _words_at(
    data: "np.ndarray[tuple[int], np.dtype[np.uint8]]", places: Int64s
) -> "np.ndarray[tuple[int], np.dtype[np.uint32]]":
    """Return the four bytes at each place as a number, the lowest first."""
    return np.ascontiguousarray(data[places[:, None] + np.arange(_WORD)]).view("<u4").ravel()
