"""librdkafka's messages as Arrow batches, with as little Python a record as there can be."""

from collections.abc import Callable, Iterator
from itertools import chain
from operator import itemgetter
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa

from kafka_archiver.columns import Int64s
from kafka_archiver.formats.base import RECORD, UNREAD, VALUE
from kafka_archiver.formats.vectors import binaries, int64s, vector

# Its stubs know no type of a record that was consumed.
Message: Any = confluent_kafka.Message
# The milliseconds that Spark's Kafka source gives as they are. It counts microseconds in 64 bits, and makes another
# instant of one before 1900: of the Julian calendar and the worker's time zone, up to days beside it.
SPARK_TIMES = (-2_177_452_800_000, (2**63 - 1) // 1000)
Headers = list[tuple[str, bytes | None]]
# The headers of a message that has one whose key is no text.
UNREADABLE: Headers = []
ToBatch = Callable[[list[Any]], pa.RecordBatch]
_RECORD = pa.schema([RECORD.field(name) for name in RECORD.names if name not in ("topic", "partition")])


def held_bytes(messages: list[Any], sample: int = 1) -> tuple[int, int]:
    """How many bytes of values they hold, and how many of keys and headers, whatever of it a batch takes.

    :param sample: of so many in a row, one's headers stand for all: to make Python's of the others costs CPU.
    """
    headers = chain.from_iterable(chain.from_iterable(filter(None, _all_headers(messages[::sample]))))
    keys = sum(map(len, filter(None, map(Message.key, messages))))
    return sum(map(len, messages)), keys + sample * sum(map(len, filter(None, headers)))


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
    """The columns of `RECORD` without topic and partition; and `UNREAD`, where a header's key is no text."""
    # librdkafka counts 0 none, 1 create, 2 append; Kafka itself one less.
    both = np.fromiter(chain.from_iterable(map(Message.timestamp, messages)), np.int64, 2 * len(messages))
    types, times = both[::2], _no_zeros(both[1::2], both[::2])
    headers = _all_headers(messages)
    columns = [
        _offsets(messages),
        vector(times),
        pa.array((types - 1).astype(np.int32)),
        binaries(list(map(Message.key, messages))),
        binaries(list(map(Message.value, messages))),
        _headers([some or [] for some in headers]),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=_RECORD)
    if not any(some is UNREADABLE for some in headers):
        return batch
    marks = [_why(time) if some is UNREADABLE else None for some, time in zip(headers, times.tolist(), strict=True)]
    return batch.append_column(UNREAD, pa.array(marks, UNREAD.type))


def _why(time: int) -> dict[str, str]:
    """What `UNREAD` says of a record whose header has a key that is no text."""
    first, last = SPARK_TIMES
    other = "; `source.reader: spark` stores it, with U+FFFD for what is no UTF-8" if first <= time <= last else ""
    return {
        "column": "headers",
        "reason": f"a header has a key that is not UTF-8, which the native reader cannot read{other}",
    }


def _offsets(messages: list[Any]) -> pa.Array:
    return int64s(map(Message.offset, messages), len(messages))


def _no_zeros(times: Int64s, types: Int64s) -> Int64s:
    """Kafka says -1 of a record without a time (of message format 0), librdkafka 0."""
    return np.where(types == confluent_kafka.TIMESTAMP_NOT_AVAILABLE, -1, times)


def _all_headers(messages: list[Any]) -> list[Headers | None]:
    """The headers of each, None for none; `UNREADABLE` when a key is no text."""
    found: list[Headers | None] = []
    rest = iter(messages)
    while len(found) < len(messages):
        try:
            # What came before an error stays in the list.
            found.extend(map(Message.headers, rest))
        except (SystemError, UnicodeDecodeError):
            # Whoever asked again would get a list with a hole in it, and die of it.
            messages[len(found)].set_headers(UNREADABLE)
            found.append(UNREADABLE)
    return found


def _headers(records: list[Headers]) -> pa.Array:
    """A list of (key, value) a record, without a Python object more than librdkafka's."""
    ends = np.zeros(len(records) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, records), np.int32, len(records)), out=ends[1:])
    pairs = list(chain.from_iterable(records))
    parts = [pa.array([key for key, _ in pairs], pa.string()), binaries([value for _, value in pairs])]
    form = _RECORD.field("headers").type
    both = pa.StructArray.from_arrays(parts, fields=list(form.value_type))
    return pa.ListArray.from_arrays(pa.array(ends), both, form)
