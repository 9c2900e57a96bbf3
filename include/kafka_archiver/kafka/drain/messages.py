"""librdkafka's messages as Arrow batches: drain.c copies them."""

from collections.abc import Callable, Sequence
from ctypes import byref, c_int32, c_void_p, sizeof
from itertools import pairwise

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from kafka_archiver.kafka.drain.library import Column, Columns, Library, Size, Sizes
from kafka_archiver.kafka.messages import RECORD_COLUMNS, Fault, Headers, header_column, mark_unread
from kafka_archiver.records import vectors
from kafka_archiver.records.formats.base import VALUE
from kafka_archiver.values.columns import Int64s

# Of an address, a number and seconds: write pointers to so many messages there, and return how many came.
Consume = Callable[[int, int, float], int]
_POINTER = sizeof(c_void_p)
_HEADERS = RECORD_COLUMNS.field("headers").type


class DrainedMessages:
    """Implements `MessageBatch`. The messages are librdkafka's: close it before the consumer.

    :param most: how many messages it takes at most.
    :param sample: measure the headers of one message in so many.
    """

    def __init__(self, library: Library, consume: Consume, most: int, sample: int) -> None:
        self._drain, self._kafka, self._table = library.drain, library.kafka, byref(library.table)
        self._consume, self._most, self._sample = consume, most, sample
        self._pointers = np.empty(2 * most, np.uintp)
        self._records = self._pointers.ctypes.data
        self._errors = self._records + most * _POINTER
        self._count = 0
        self._sizes = Sizes()
        self.faults: list[Fault] = []

    @property
    def counted(self) -> int:
        return int(self._sizes.values.bytes)

    @property
    def uncounted(self) -> int:
        sizes = self._sizes
        return int(sizes.keys.bytes + self._sample * (sizes.names.bytes + sizes.headers.bytes))

    def more(self, number: int, timeout: float) -> bool:
        free, free_errors = self._record(self._count), self._errors + len(self.faults) * _POINTER
        count = self._consume(free, min(number, self._most - len(self)), timeout)
        details = np.empty((count, 4), np.int64)
        records = self._drain.divide(free, count, free_errors, details.ctypes.data)
        before, self._count = self._count, self._count + records
        for behind, code, partition, offset in details[: count - records].tolist():
            reason = self._kafka.message_errstr(int(self._pointers[self._most + len(self.faults)]))
            error = KafkaError(code, (reason or b"").decode(errors="replace"))
            self.faults.append(Fault(before + behind, error, partition, max(offset, 0)))
        self._drain.measure(self._table, free, records, self._sample, byref(self._sizes))
        return count > 0 and (records == count or self.faults[-1].before < self._count)

    def __len__(self) -> int:
        return self._count + len(self.faults)

    @property
    def offsets(self) -> Int64s:
        offsets = np.empty(self._count, np.int64)
        self._drain.offsets(self._records, self._count, offsets.ctypes.data)
        return offsets

    def places(self, count: int) -> Sequence[tuple[str, int]]:
        stranger = self._drain.stranger(self._records, count)
        return [self._place(row) for row in (0, stranger) if row < count]

    def _place(self, row: int) -> tuple[str, int]:
        partition = c_int32()
        topic = self._drain.topic(int(self._pointers[row]), byref(partition))
        return self._kafka.topic_name(topic).decode(), partition.value

    def batches(self, count: int, whole: bool) -> list[pa.RecordBatch]:
        return self._batches(0, count, whole)

    def _batches(self, start: int, end: int, whole: bool) -> list[pa.RecordBatch]:
        sizes = Sizes()
        self._drain.measure(self._table, self._record(start), end - start, int(whole), byref(sizes))
        columns = (sizes.values, sizes.keys, sizes.names, sizes.headers) if whole else (sizes.values,)
        if max(size.bytes for size in columns) <= vectors.MOST:
            return [self._batch(start, end - start, sizes, whole)]
        if end - start == 1:
            raise OverflowError(f"a record of {sizes.values.bytes:,} bytes does not fit an Arrow array")
        middle = (start + end) // 2
        return self._batches(start, middle, whole) + self._batches(middle, end, whole)

    def _batch(self, start: int, count: int, sizes: Sizes, whole: bool) -> pa.RecordBatch:
        columns = Columns(most=count)
        offsets, times = _numbers(count, 8), _numbers(count, 8)
        columns.offsets, columns.times = offsets.address, times.address
        values = _Bytes(columns.values, sizes.values)
        if whole:
            types, ends = _numbers(count, 4), _numbers(count + 1, 4)
            columns.types, columns.header_ends = types.address, ends.address
            keys = _Bytes(columns.keys, sizes.keys)
            names, headers = _Bytes(columns.names, sizes.names), _Bytes(columns.headers, sizes.headers)
        if self._drain.copy(self._table, self._record(start), count, byref(columns)):
            raise AssertionError("librdkafka's messages changed while they were read; please report it")
        common = [_array(pa.int64(), count, offsets), _array(pa.int64(), count, times)]
        if not whole:
            return pa.RecordBatch.from_arrays([*common, values.array(pa.binary())], schema=VALUE)
        arrays = [
            *common,
            _array(pa.int32(), count, types),
            keys.array(pa.binary()),
            values.array(pa.binary()),
        ]
        end_array = _array(pa.int32(), count + 1, ends)
        column, unread = _headers(end_array, names.array(pa.binary()), headers.array(pa.binary()))
        return mark_unread(pa.RecordBatch.from_arrays([*arrays, column], schema=RECORD_COLUMNS), unread)

    def _record(self, row: int) -> int:
        return self._records + row * _POINTER

    def close(self) -> None:
        """Give the messages back to librdkafka."""
        count, errors = self._count, len(self.faults)
        self._count, self.faults = 0, []
        self._drain.drop(self._table, self._records, count)
        self._drain.drop(self._table, self._errors, errors)


class _Bytes:
    """The memory of a column of bytes, which drain.c fills."""

    def __init__(self, column: Column, size: Size) -> None:
        self._column = column
        self._present, self._ends = _numbers(size.rows // 8 + 1, 1), _numbers(size.rows + 1, 4)
        self._bytes = pa.allocate_buffer(size.bytes)
        column.most = size
        column.present, column.ends, column.bytes = (b.address for b in (self._present, self._ends, self._bytes))

    def array(self, form: pa.DataType) -> pa.Array:
        nulls = self._column.nulls
        buffers = [self._present if nulls else None, self._ends, self._bytes]
        return pa.Array.from_buffers(form, self._column.used.rows, buffers, nulls)


def _numbers(count: int, width: int) -> pa.Buffer:
    """Return memory for numbers; all are zero."""
    return pa.py_buffer(np.zeros(count * width, np.uint8))


def _array(form: pa.DataType, count: int, buffer: pa.Buffer) -> pa.Array:
    return pa.Array.from_buffers(form, count, [None, buffer], 0)


def _headers(ends: pa.Array, names: pa.Array, values: pa.Array) -> tuple[pa.Array, set[int]]:
    """Return the column, and the rows whose headers it lacks, since a key is not UTF-8."""
    if not len(names) or np.frombuffer(names.buffers()[2], np.uint8).max(initial=0) < 128:
        return _lists(ends, names.view(pa.string()), values), set()
    pairs = list(zip(names.to_pylist(), values.to_pylist(), strict=True))
    rows: list[Headers] = []
    unread = set()
    for row, (start, end) in enumerate(pairwise(ends.to_pylist())):
        try:
            rows.append([(name.decode(), value) for name, value in pairs[start:end]])
        except UnicodeDecodeError:
            rows.append([])
            unread.add(row)
    return header_column(rows), unread


def _lists(ends: pa.Array, names: pa.Array, values: pa.Array) -> pa.Array:
    items = pa.StructArray.from_arrays([names, values], fields=list(_HEADERS.value_type))
    return pa.ListArray.from_arrays(ends, items, _HEADERS)
