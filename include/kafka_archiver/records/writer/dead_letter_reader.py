"""The reader of dead letters: the records of a chunk from the store, in offset order, as other readers give Kafka's.

A chunk has one object of dead letters per part of the layout. All of them are read at once, piece by piece, and merged:
memory depends on their number and on the largest record, not on their size.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from kafka_archiver.messages.errors import TransientError
from kafka_archiver.model.data_keys import DataKey
from kafka_archiver.model.plan import Chunk, DeadLetters
from kafka_archiver.records.formats import dead_letter
from kafka_archiver.records.formats.base import PLACE, RECORD, Target
from kafka_archiver.records.reading.files import fetch_from
from kafka_archiver.records.reading.merge import merged
from kafka_archiver.records.reading.opener import open_object
from kafka_archiver.store.base import Store

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


def _records(
    store: Store, chunk: Chunk, item: DeadLetters, fetch: int, keys: Mapping[str, DataKey]
) -> Iterator[pa.RecordBatch]:
    target = Target(
        topic=chunk.topic, partition=chunk.partition, key=item.key, settings=dead_letter.SETTINGS, schema=RECORD
    )
    source = fetch_from(store, item.key, _gone)
    for batch in open_object(item, target, source, keys.__getitem__, fetch, PIECE):
        yield batch.drop_columns(list(PLACE))


def _gone(name: str) -> TransientError:
    return TransientError(
        f"{name} is gone: another attempt has finished the replay of these dead letters, or somebody deleted the object"
    )
