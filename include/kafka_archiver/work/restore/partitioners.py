"""The partition that a producer chooses by a record's key: Java's murmur2, librdkafka's crc32. Pure.

The same key has the same partition as with these clients. A record without a key goes where its source partition goes
by number: clients spread such records by chance, and a restore must do the same each time.
"""

import zlib

import numpy as np
import pyarrow as pa

from kafka_archiver.model.restore import Partitioner

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


def belongs(keys: pa.Array, partitioner: Partitioner, partitions: int, source: int, target: int) -> pa.Array:
    """Return, for each key, True if the record belongs in a target partition."""
    seen: dict[bytes | None, bool] = {}
    flags = []
    for key in keys.to_pylist():
        flag = seen.get(key)
        if flag is None:
            flag = seen[key] = partition_of(key, partitioner, partitions, source) == target
        flags.append(flag)
    return pa.array(flags, pa.bool_())
