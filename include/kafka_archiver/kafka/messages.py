"""The messages that a reader takes at once: confluent_kafka's as Arrow batches, with little Python code per record."""

from collections.abc import Callable, Iterator, Sequence, Set
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import confluent_kafka
import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from kafka_archiver.records.formats.base import RECORD, UNREAD, VALUE
from kafka_archiver.records.formats.unread import HEADER_KEY
from kafka_archiver.records.vectors import binaries, int64s, numbers
from kafka_archiver.values.columns import Int64s, column

# The stubs of confluent_kafka have no type for a consumed message.
Message: Any = confluent_kafka.Message
# The timestamps (ms) that Spark's Kafka source gives unchanged. It counts microseconds in 64 bits. Before 1900 it is
# wrong by up to days: it uses the Julian calendar and the worker's time zone.
SPARK_TIMES = (-2_177_452_800_000, (2**63 - 1) // 1000)
Headers = list[tuple[str, bytes | None]]
# Stands for the headers of a message if a header's key is not UTF-8.
UNREADABLE: Headers = []
Consume = Callable[..., list[Any]]
ToBatch = Callable[[list[Any]], pa.RecordBatch]
RECORD_COLUMNS = pa.schema([RECORD.field(name) for name in RECORD.names if name not in ("topic", "partition")])


class Fault(NamedTuple):
    """An error among the records. `before`: how many records come before it; `offset` is 0 if it has none."""

    before: int
    error: KafkaError
    partition: int
    offset: int


class MessageBatch(Protocol):
    """Records and errors of one consumer, in their order."""

    @property
    def counted(self) -> int:
        """The bytes of the values, which librdkafka counts where it limits its queue."""

    @property
    def uncounted(self) -> int:
        """The bytes of keys and headers, whether or not a batch has them; approximate."""

    def more(self, number: int, timeout: float) -> bool:
        """Take up to `number` further messages, those that come within `timeout` seconds.

        False: there are none, or the last is an error.
        """

    def __len__(self) -> int:
        """Records and errors."""

    @property
    def offsets(self) -> Int64s:
        """The offsets of the records."""

    @property
    def faults(self) -> Sequence[Fault]:
        """The errors."""

    def places(self, count: int) -> Sequence[tuple[str, int]]:
        """Return topics and partitions of the first `count` records: the first, and others if there are any."""

    def batches(self, count: int, whole: bool) -> list[pa.RecordBatch]:
        """Return the first `count` records as a batch, or as several if their bytes do not fit one.

        :param whole: the columns of `RECORD` without topic and partition, and `UNREAD` if a header's key is not UTF-8;
            else those of `VALUE`.
        """

    def close(self) -> None:
        """Give the messages back. Batches stay."""


class Messages:
    """Implements `MessageBatch`.

    :param consume: returns the messages that come: up to a number, within a timeout in seconds.
    :param sample: measure the keys and headers of one message in so many.
    """

    def __init__(self, consume: Consume, sample: int = 1) -> None:
        self._consume, self._sample = consume, sample
        self._records: list[Any] = []
        self.faults: list[Fault] = []
        self.counted = self.uncounted = 0

    def more(self, number: int, timeout: float) -> bool:
        messages = self._consume(number, timeout=timeout)
        counted, uncounted = held_bytes(messages, self._sample)
        self.counted, self.uncounted = self.counted + counted, self.uncounted + uncounted
        if not any(map(Message.error, messages)):
            self._records += messages
            return bool(messages)
        for message in messages:
            if (error := message.error()) is None:
                self._records.append(message)
            else:
                self.faults.append(Fault(len(self._records), error, message.partition(), message.offset() or 0))
        return messages[-1].error() is None

    def __len__(self) -> int:
        return len(self._records) + len(self.faults)

    @property
    def offsets(self) -> Int64s:
        return np.fromiter(map(Message.offset, self._records), np.int64, len(self._records))

    def places(self, count: int) -> Sequence[tuple[str, int]]:
        return [(message.topic(), message.partition()) for message in (self._records[0], self._records[count - 1])]

    def batches(self, count: int, whole: bool) -> list[pa.RecordBatch]:
        return list(to_batches(self._records[:count], record_batch if whole else value_batch))

    def close(self) -> None:
        self._records = []


def held_bytes(messages: list[Any], sample: int = 1) -> tuple[int, int]:
    """The bytes of values, and the bytes of keys and headers, whether or not a batch takes them.

    :param sample: measure the keys and headers of one message in so many, since Python objects for them cost CPU.
    """
    some = messages[::sample]
    headers = chain.from_iterable(chain.from_iterable(filter(None, _all_headers(some))))
    keys = sum(map(len, filter(None, map(Message.key, some))))
    return sum(map(len, messages)), sample * (keys + sum(map(len, filter(None, headers))))


def to_batches(messages: list[Any], to_batch: ToBatch) -> Iterator[pa.RecordBatch]:
    """The messages as one batch, or as several batches if they do not fit one."""
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
    # map() with methods of the class takes a third less CPU than a generator.
    times = np.fromiter(map(itemgetter(1), map(Message.timestamp, messages)), np.int64, len(messages))
    if not times.all():
        times = _no_zeros(times, np.fromiter(map(itemgetter(0), map(Message.timestamp, messages)), np.int64))
    columns = [_offsets(messages), numbers(times), binaries(list(map(Message.value, messages)))]
    return pa.RecordBatch.from_arrays(columns, schema=VALUE)


def record_batch(messages: list[Any]) -> pa.RecordBatch:
    """The columns of `RECORD` without topic and partition; `UNREAD` too if a header's key is not UTF-8."""
    # librdkafka's types are 0 none, 1 create, 2 append: Kafka's plus one.
    types_and_times = np.fromiter(chain.from_iterable(map(Message.timestamp, messages)), np.int64, 2 * len(messages))
    types, times = types_and_times[::2], _no_zeros(types_and_times[1::2], types_and_times[::2])
    headers = _all_headers(messages)
    columns = [
        _offsets(messages),
        numbers(times),
        pa.array((types - 1).astype(np.int32)),
        binaries(list(map(Message.key, messages))),
        binaries(list(map(Message.value, messages))),
        header_column([some or [] for some in headers]),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=RECORD_COLUMNS)
    return mark_unread(batch, {row for row, some in enumerate(headers) if some is UNREADABLE})


def mark_unread(batch: pa.RecordBatch, rows: Set[int]) -> pa.RecordBatch:
    """Return the batch with `UNREAD` if there are rows with a header whose key is not UTF-8."""
    if not rows:
        return batch
    times = column(batch, "timestamp").tolist()
    marks = [_why(time) if row in rows else None for row, time in enumerate(times)]
    return batch.append_column(UNREAD, pa.array(marks, UNREAD.type))


def _why(time: int) -> dict[str, str]:
    """The value of `UNREAD` for a record with a header whose key is not UTF-8."""
    first, last = SPARK_TIMES
    other = "; `source.reader: spark` stores it, with U+FFFD for the invalid bytes" if first <= time <= last else ""
    return {
        "column": "headers",
        "reason": f"{HEADER_KEY}{other}",
    }


def _offsets(messages: list[Any]) -> pa.Array:
    return int64s(map(Message.offset, messages), len(messages))


def _no_zeros(times: Int64s, types: Int64s) -> Int64s:
    """-1 for a record without a timestamp (message format 0), as in Kafka; librdkafka gives 0."""
    return np.where(types == confluent_kafka.TIMESTAMP_NOT_AVAILABLE, -1, times)


def _all_headers(messages: list[Any]) -> list[Headers | None]:
    """The headers of each message, None for none; `UNREADABLE` if a key is not UTF-8."""
    headers: list[Headers | None] = []
    remaining = iter(messages)
    while len(headers) < len(messages):
        try:
            # After an error, the list keeps the headers of the messages before it.
            headers.extend(map(Message.headers, remaining))
        except (SystemError, UnicodeDecodeError):
            # A second call of headers() would return a list with a null pointer, and crash the process.
            messages[len(headers)].set_headers(UNREADABLE)
            headers.append(UNREADABLE)
    return headers


def header_column(records: list[Headers]) -> pa.Array:
    """A list of (key, value) per record, without further Python objects."""
    ends = np.zeros(len(records) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, records), np.int32, len(records)), out=ends[1:])
    pairs = list(chain.from_iterable(records))
    parts = [pa.array([key for key, _ in pairs], pa.string()), binaries([value for _, value in pairs])]
    form = RECORD_COLUMNS.field("headers").type
    items = pa.StructArray.from_arrays(parts, fields=list(form.value_type))
    return pa.ListArray.from_arrays(pa.array(ends), items, form)
