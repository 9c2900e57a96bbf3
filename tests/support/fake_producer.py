"""librdkafka's producer, and confluent_kafka's, as senders of records call them: both note what they were given."""

import ctypes
from collections.abc import Iterator
from ctypes import CFUNCTYPE, POINTER, Structure, Union, c_char, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

from kafka_archiver.kafka.drain.library import Producing, library

QUEUE_FULL = -184
_COPY = 2


class Sent(NamedTuple):
    """The arguments of a call."""

    partition: int
    value: bytes | None
    key: bytes | None
    timestamp: int
    headers: list[tuple[bytes, bytes | None]]


class _Memory(Structure):
    _fields_: ClassVar = [("place", c_void_p), ("size", c_size_t)]


class _Value(Union):
    _fields_: ClassVar = [
        *(("pointer", c_void_p), ("number", c_int), ("partition", c_int32), ("time", c_int64)),
        *(("memory", _Memory), ("pad", c_char * 64)),
    ]


class Argument(Structure):
    """`rd_kafka_vu_t` of rdkafka.h."""

    _fields_: ClassVar = [("type", c_int), ("value", _Value)]


# Of rdkafka.h, in the order of `rd_kafka_vtype_t`.
_END, _TOPIC_NAME, _TOPIC, _PARTITION, _VALUE, _KEY, _OPAQUE, _FLAGS, _TIMESTAMP, _HEADER, _HEADERS = range(11)


class FakeProducer:
    """Takes records of drain.c. `refusals`: the error code of each call; 0: it takes the record."""

    def __init__(self, refusals: Iterator[int]) -> None:
        self._refusals = refusals
        self.sent: list[Sent] = []
        self.numbers: list[int] = []
        # Headers, by their handle, and errors that were not given back.
        self.headers: dict[int, list[tuple[bytes, bytes | None]]] = {}
        self.errors: dict[int, int] = {}
        self._next = 1000
        self._functions = self._table()
        real = library()
        assert real is not None
        self.library: Any = SimpleNamespace(
            drain=real.drain,
            producing=Producing(*(ctypes.cast(function, c_void_p) for function in self._functions)),
            kafka=SimpleNamespace(
                poll=lambda *_: 0,
                error_code=self.errors.__getitem__,
                error_string=lambda _: b"why",
                error_is_fatal=lambda _: 0,
                error_destroy=self.errors.pop,
            ),
        )

    def _handle(self) -> int:
        self._next += 1
        return self._next

    def _table(self) -> list[Any]:
        @CFUNCTYPE(c_void_p, c_void_p, POINTER(Argument), c_size_t)
        def produce(producer: int, arguments: Any, count: int) -> int | None:
            by_type = {arguments[n].type: arguments[n].value for n in range(count)}
            if code := next(self._refusals):
                handle = self._handle()
                self.errors[handle] = code
                return handle
            assert by_type[_FLAGS].number == _COPY
            assert by_type[_TOPIC].pointer == 17
            headers = self.headers.pop(by_type[_HEADERS].pointer) if _HEADERS in by_type else []
            self.numbers.append(by_type[_OPAQUE].pointer or 0)
            content = (_bytes(by_type[kind].memory.place, by_type[kind].memory.size) for kind in (_VALUE, _KEY))
            self.sent.append(Sent(by_type[_PARTITION].partition, *content, by_type[_TIMESTAMP].time, headers))
            return None

        @CFUNCTYPE(c_void_p, c_size_t)
        def new_headers(count: int) -> int:
            handle = self._handle()
            self.headers[handle] = []
            return handle

        @CFUNCTYPE(c_int, c_void_p, c_void_p, c_ssize_t, c_void_p, c_ssize_t)
        def add_header(handle: int, name: int, name_size: int, value: int, size: int) -> int:
            self.headers[handle].append((_bytes(name, name_size) or b"", _bytes(value, size)))
            return 0

        @CFUNCTYPE(None, c_void_p)
        def drop_headers(handle: int) -> None:
            del self.headers[handle]

        @CFUNCTYPE(c_int, c_void_p)
        def code(handle: int) -> int:
            return self.errors[handle]

        @CFUNCTYPE(None, c_void_p)
        def drop_error(handle: int) -> None:
            del self.errors[handle]

        return [produce, new_headers, add_header, drop_headers, code, drop_error]


def _bytes(place: int | None, size: int) -> bytes | None:
    return None if place is None else ctypes.string_at(place, size)


class FakeConfluentProducer:
    """Takes records of `ObjectSender`."""

    def __init__(self, refusals: Iterator[int]) -> None:
        self._refusals = refusals
        self.sent: list[Sent] = []

    def produce(self, topic: str, value: Any, key: Any, partition: int, answer: Any, _: Any, time: int, headers: Any):  # type: ignore[no-untyped-def]
        """Take a record."""
        if next(self._refusals):
            raise BufferError
        pairs = [(name.encode(), content) for name, content in headers or []]
        self.sent.append(Sent(partition, value, key, time, pairs))

    def poll(self, seconds: float) -> int:
        """Answer nothing."""
        return 0
