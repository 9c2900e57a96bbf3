"""The reader of dead letters: the records of a chunk from the store, in offset order, as other readers give Kafka's.

A chunk has one object of dead letters per part of the layout. All of them are read at once, piece by piece, and merged:
memory depends on their number and on the largest record, not on their size.
"""

import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError, TransientError
from kafka_archiver.model.data_keys import DataKey
from kafka_archiver.model.keys import SEALED
from kafka_archiver.model.plan import Chunk, DeadLetters
from kafka_archiver.records.formats import dead_letter
from kafka_archiver.records.formats.base import PLACE
from kafka_archiver.store.base import Store
from kafka_archiver.values.checksum import spelt
from kafka_archiver.values.columns import column

# Compressed bytes in memory for all objects of a chunk, and the least for one of them.
MEMORY, LEAST = 8 << 20, 64 << 10
# Compressed bytes that become one batch. gzip may expand them a thousandfold.
PIECE = 16 << 10
_NO_KEYS: Mapping[str, DataKey] = {}


def read_letters(
    store: Store, chunk: Chunk, letters: Sequence[DeadLetters], keys: Mapping[str, DataKey] = _NO_KEYS
) -> Iterator[pa.RecordBatch]:
    """The records of a chunk's dead letters: the columns of `RECORD` without topic and partition, and `UNREAD`.

    :param letters: the objects, as the manifest has them.
    :param keys: the data keys of encrypted objects, by id.
    :raises IntegrityError: an object is not the one that the manifest has.
    :raises TransientError: an object is gone.
    """
    fetch = max(LEAST, MEMORY // max(1, len(letters)))
    return merged([_records(store, chunk, item, fetch, keys) for item in letters])


def merged(sources: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The rows of all sources in offset order. Each source is in offset order, and none of its batches is empty."""
    heads = {n: batch for n, source in enumerate(sources) if (batch := next(source, None)) is not None}
    while heads:
        # Everything up to this offset is in the heads.
        bound = min(int(column(batch, "offset")[-1]) for batch in heads.values())
        ready = []
        for n, batch in list(heads.items()):
            offsets = column(batch, "offset")
            count = int(np.searchsorted(offsets, bound, side="right"))
            ready.append(batch.slice(0, count))
            if count < len(offsets):
                heads[n] = batch.slice(count)
            elif (following := next(sources[n], None)) is not None:
                heads[n] = following
            else:
                del heads[n]
        whole = ready[0] if len(ready) == 1 else pa.concat_batches(ready)
        yield whole if len(ready) == 1 else whole.take(np.argsort(column(whole, "offset"), kind="stable"))


def _records(
    store: Store, chunk: Chunk, item: DeadLetters, fetch: int, keys: Mapping[str, DataKey]
) -> Iterator[pa.RecordBatch]:
    rows = 0
    with closing(_Object(store, item, fetch)) as source:
        plain = _Unsealed(source, item, keys) if item.key.endswith(SEALED) else source
        for batch in dead_letter.read(cast(BinaryIO, plain), item.key):
            for name, expected in zip(PLACE, chunk.name, strict=True):
                if batch.column(name).unique().to_pylist() != [expected]:
                    raise IntegrityError(f"{item.key} has records of another {name} than {expected}")
            rows += batch.num_rows
            yield batch.drop_columns(list(PLACE))
        if (source.checksum, rows) != (item.checksum, item.rows):
            raise IntegrityError(
                f"{item.key}: expected {item.rows} dead letters with checksum {item.checksum}, found {rows} with "
                f"{source.checksum}"
            )


class _Object(io.RawIOBase):
    """An object as a stream. `checksum`: of the bytes so far."""

    def __init__(self, store: Store, item: DeadLetters, fetch: int) -> None:
        self._store, self._item, self._fetch = store, item, fetch
        self._held, self._at, self._crc = memoryview(b""), 0, 0

    @property
    def checksum(self) -> str:
        return spelt(self._crc)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `PIECE` bytes."""
        if not self._held and self._at < self._item.bytes:
            data = self._store.read(self._item.key, self._at, self._fetch)
            if data is None:
                raise TransientError(
                    f"{self._item.key} is gone: another attempt has finished the replay of these dead letters, or "
                    "somebody deleted the object"
                )
            self._held, self._at, self._crc = memoryview(data), self._at + len(data), zlib.crc32(data, self._crc)
        length = PIECE if size < 0 else min(size, PIECE)
        piece, self._held = self._held[:length], self._held[length:]
        return bytes(piece)


class _Unsealed(io.RawIOBase):
    """The content of an encrypted object, as a stream. `Opened` reads it in order."""

    def __init__(self, source: _Object, item: DeadLetters, keys: Mapping[str, DataKey]) -> None:
        def fetch(_: int, length: int) -> bytes:
            fetched = bytearray()
            while len(fetched) < length and (piece := source.read(length - len(fetched))):
                fetched += piece
            return bytes(fetched)

        # Imported late: without encryption, executors need not have the library.
        from kafka_archiver.encryption.opened import Opened

        self._content = Opened(fetch, item.bytes, keys.__getitem__, item.key, item.key)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `PIECE` bytes."""
        return self._content.read(PIECE if size < 0 else min(size, PIECE)) or b""
