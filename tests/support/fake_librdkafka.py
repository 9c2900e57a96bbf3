"""Messages as librdkafka lays them out in memory, and as confluent_kafka gives them, without librdkafka."""

import ctypes
from collections.abc import Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p, cast
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

from confluent_kafka import KafkaError, Message

from kafka_archiver.kafka.drain.library import Functions, library

_NO_HEADERS = -156


class Laid(Structure):
    """`rd_kafka_message_t` of rdkafka.h."""

    _fields_: ClassVar = [
        ("err", c_int),
        ("rkt", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("len", c_size_t),
        ("key", c_void_p),
        ("key_len", c_size_t),
        ("offset", c_int64),
        ("_private", c_void_p),
    ]


@dataclass(kw_only=True)
class Odd:
    """A record, or an error. `headers`: their keys are bytes, as in Kafka."""

    offset: int = 0
    value: bytes | None = b""
    key: bytes | None = None
    headers: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    time: tuple[int, int] = (1, 0)
    error: int = 0
    topic: str = "t"
    partition: int = 1

    def message(self) -> Message:
        """Return what confluent_kafka gives for it."""
        if self.error:
            error = KafkaError(self.error, "why")
            return Message(topic=self.topic, partition=self.partition, offset=self.offset, error=error)
        message = _Message(self.topic, self.partition, self.offset, self.key, self.value, timestamp=self.time)
        message.raw = self.headers
        return message


class _Message(Message):  # type: ignore[misc]
    raw: list[tuple[bytes, bytes | None]]

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Fail as confluent_kafka does: a second call for a record that cannot be read would end the process."""
        if (replaced := super().headers()) is not None:
            return replaced
        try:
            return [(name.partition(b"\0")[0].decode(), value) for name, value in self.raw] or None
        except UnicodeDecodeError as error:
            raise SystemError from error


class Methods:
    """The methods of `confluent_kafka.Message`, for `kafka.messages`, with `headers` as `Odd.message` has it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(Message, name)

    def headers(self, message: Message) -> Any:
        """Return the headers."""
        return message.headers()


class FakeLibrdkafka:
    """Gives messages to drain.c. What is given back is overwritten, and twice is an error.

    :ivar dropped: how often each message was given back.
    """

    def __init__(self, messages: Sequence[Odd]) -> None:
        self._messages, self._next = messages, 0
        self.dropped = [0] * len(messages)
        self._memory: list[Any] = []
        self._topics = {topic: ctypes.create_string_buffer(topic.encode()) for topic in {m.topic for m in messages}}
        self._laid = [self._lay(number, message) for number, message in enumerate(messages)]
        # Python would drop the functions.
        self._functions = self._table()
        pointers = (cast(function, c_void_p) for function in self._functions)
        real = library()
        assert real is not None
        kafka = SimpleNamespace(message_errstr=lambda _: b"why", topic_name=lambda topic: ctypes.string_at(topic))
        self.library: Any = SimpleNamespace(drain=real.drain, kafka=kafka, table=Functions(*pointers))

    def _bytes(self, some: bytes | None) -> tuple[int | None, int]:
        if some is None:
            return None, 0
        # Without the zero that a string buffer has, so that a sanitizer sees a byte too many.
        buffer = (ctypes.c_char * max(1, len(some))).from_buffer_copy(some or b"?")
        self._memory.append(buffer)
        return ctypes.addressof(buffer), len(some)

    def _lay(self, number: int, message: Odd) -> Laid:
        topic = ctypes.addressof(self._topics[message.topic])
        places = (*self._bytes(message.value), *self._bytes(message.key)) if not message.error else (None, 0, None, 0)
        return Laid(message.error, topic, message.partition, *places, message.offset, number)

    def _table(self) -> list[Any]:
        @CFUNCTYPE(c_int64, POINTER(Laid), POINTER(c_int))
        def timestamp(message: Any, kind: Any) -> int:
            kind[0], time = self._of(message).time
            return time

        @CFUNCTYPE(c_int, POINTER(Laid), POINTER(c_void_p))
        def headers(message: Any, handle: Any) -> int:
            if not self._of(message).headers:
                return _NO_HEADERS
            handle[0] = (message[0]._private or 0) + 1
            return 0

        @CFUNCTYPE(c_int, c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_void_p), POINTER(c_size_t))
        def header(handle: int, place: int, name: Any, value: Any, size: Any) -> int:
            headers = self._messages[handle - 1].headers
            if place >= len(headers):
                return _NO_HEADERS
            text = ctypes.create_string_buffer(headers[place][0])
            self._memory.append(text)
            name[0] = cast(text, c_char_p)
            value[0], size[0] = self._bytes(headers[place][1])
            return 0

        @CFUNCTYPE(None, POINTER(Laid))
        def destroy(message: Any) -> None:
            self.dropped[message[0]._private or 0] += 1
            laid = message[0]
            for place, size in ((laid.payload, laid.len), (laid.key, laid.key_len)):
                if place:
                    ctypes.memset(place, 0xDD, size)

        return [timestamp, headers, header, destroy]

    def _of(self, message: Any) -> Odd:
        return self._messages[message[0]._private or 0]

    def consume(self, messages: int, number: int, timeout: float) -> int:
        """Write pointers to the next messages."""
        some = self._laid[self._next : self._next + number]
        self._next += len(some)
        addresses = (c_void_p * len(some)).from_address(messages) if some else []
        for place, laid in enumerate(some):
            addresses[place] = ctypes.addressof(laid)
        return len(some)
