"""librdkafka's messages as Arrow batches, with as little Python a record as there can be."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa

from kafka_archiver.errors import PermanentError
from kafka_archiver.formats.base import RECORD, VALUE
from kafka_archiver.formats.vectors import Int64s, binaries, int64s, vector

# Its stubs know no type of a record that was consumed.
Message: Any = confluent_kafka.Message
ToBatch = Callable[[list[Any]], pa.RecordBatch]
_RECORD = pa.schema([RECORD.field(name) for name in RECORD.names if name not in ("topic", "partition")])


def to_batches(messages: list[Any], to_batch: ToBatch) -> Iterator[pa.RecordBatch]:
    """The messages as one batch, as several where one cannot hold them."""
    try:
        whole = to_batch(messages)
    except OverflowError:
        half = len(messages) // 2
        yield from to_batches(messages[:half], to_batch)
        yield from to_batches(messages[half:], to_batch)
    else:
        yield whole


def value_batch(messages: list[Any]) -> pa.RecordBatch:
    """The columns of `VALUE`."""
    # Methods of the class, mapped: a third less than a generator for each.
    times = np.fromiter(map(itemgetter(1), map(Message.timestamp, messages)), np.int64, len(messages))
    if not times.all():
        times = _no_zeros(times, np.fromiter(map(itemgetter(0), map(Message.timestamp, messages)), np.int64))
    columns = [_offsets(messages), vector(times), binaries(list(map(Message.value, messages)))]
    return pa.RecordBatch.from_arrays(columns, schema=VALUE)


def record_batch(messages: list[Any]) -> pa.RecordBatch:
    """The columns of `RECORD` without topic and partition.

    :raises PermanentError: a header's key is no text.
    """
    # librdkafka counts 0 none, 1 create, 2 append; Kafka itself one less.
    both = np.fromiter(chain.from_iterable(map(Message.timestamp, messages)), np.int64, 2 * len(messages))
    types, times = both[::2], both[1::2]
    columns = [
        _offsets(messages),
        vector(_no_zeros(times, types)),
        pa.array((types - 1).astype(np.int32)),
        binaries(list(map(Message.key, messages))),
        binaries(list(map(Message.value, messages))),
        _headers(_pairs(messages)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_RECORD)


def _offsets(messages: list[Any]) -> pa.Array:
    return int64s(map(Message.offset, messages), len(messages))


def _no_zeros(times: Int64s, types: Int64s) -> Int64s:
    """Kafka says -1 of a record without a time (of message format 0), librdkafka 0."""
    return np.where(types == confluent_kafka.TIMESTAMP_NOT_AVAILABLE, -1, times)


def _pairs(messages: list[Any]) -> list[Sequence[tuple[str, bytes | None]]]:
    """:raises PermanentError: a header's key is no text."""
    try:
        return [headers or () for headers in map(Message.headers, messages)]
    except (SystemError, UnicodeDecodeError):
        if len(messages) > 1:
            for message in messages:
                _pairs([message])
        topic, partition, offset = messages[0].topic(), messages[0].partition(), messages[0].offset()
        raise PermanentError(
            f"{topic}[{partition}] offset {offset} has a header whose key is not UTF-8, which the native reader cannot "
            "read; set `source.reader: spark`, which puts U+FFFD for what is none, and clear the task `archive`"
        ) from None


def _headers(records: list[Sequence[tuple[str, bytes | None]]]) -> pa.Array:
    """A list of (key, value) a record, without a Python object more than librdkafka's."""
    ends = np.zeros(len(records) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, records), np.int32, len(records)), out=ends[1:])
    pairs = list(chain.from_iterable(records))
    parts = [pa.array([key for key, _ in pairs], pa.string()), binaries([value for _, value in pairs])]
    form = _RECORD.field("headers").type
    both = pa.StructArray.from_arrays(parts, fields=list(form.value_type))
    return pa.ListArray.from_arrays(pa.array(ends), both, form)
