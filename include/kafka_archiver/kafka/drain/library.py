"""librdkafka's C interface, and that of drain.c: the one place that knows their types.

librdkafka is the one that confluent_kafka runs with. Its functions and `rd_kafka_message_t` are public (rdkafka.h) and
have been the same through 1.x and 2.x; another major version is refused.
"""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from typing import Any, ClassVar

import confluent_kafka

from kafka_archiver.records.native.load import Binary, functions, load

MAJOR = 2
PRODUCER, CONSUMER = 0, 1
ErrorCallback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_void_p)


class Position(Structure):
    """`rd_kafka_topic_partition_t`."""

    _fields_: ClassVar = [
        ("topic", c_char_p),
        ("partition", c_int32),
        ("offset", c_int64),
        ("metadata", c_void_p),
        ("metadata_size", c_size_t),
        ("opaque", c_void_p),
        ("err", c_int),
        ("private", c_void_p),
    ]


# The result and the arguments of each function.
_LIBRDKAFKA: Mapping[str, tuple[Any, ...]] = {
    "version": (c_int,),
    "conf_new": (c_void_p,),
    "conf_destroy": (None, c_void_p),
    "conf_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
    "conf_set_error_cb": (None, c_void_p, ErrorCallback),
    "conf_set_dr_msg_cb": (None, c_void_p, c_void_p),
    "conf_set_opaque": (None, c_void_p, c_void_p),
    "new": (c_void_p, c_int, c_void_p, c_char_p, c_size_t),
    "destroy": (None, c_void_p),
    "poll_set_consumer": (c_int, c_void_p),
    "queue_get_consumer": (c_void_p, c_void_p),
    "queue_destroy": (None, c_void_p),
    "topic_partition_list_new": (c_void_p, c_int),
    "topic_partition_list_add": (POINTER(Position), c_void_p, c_char_p, c_int32),
    "topic_partition_list_set_offset": (c_int, c_void_p, c_char_p, c_int32, c_int64),
    "topic_partition_list_destroy": (None, c_void_p),
    "assign": (c_int, c_void_p, c_void_p),
    "consumer_close": (c_int, c_void_p),
    "query_watermark_offsets": (c_int, c_void_p, c_char_p, c_int32, POINTER(c_int64), POINTER(c_int64), c_int),
    "consume_batch_queue": (c_ssize_t, c_void_p, c_int, c_void_p, c_size_t),
    "last_error": (c_int,),
    "fatal_error": (c_int, c_void_p, c_char_p, c_size_t),
    "err2str": (c_char_p, c_int),
    "topic_name": (c_char_p, c_void_p),
    "message_errstr": (c_char_p, c_void_p),
    "mem_malloc": (c_void_p, c_void_p, c_size_t),
    "topic_new": (c_void_p, c_void_p, c_char_p, c_void_p),
    "topic_destroy": (None, c_void_p),
    "poll": (c_int, c_void_p, c_int),
    "outq_len": (c_int, c_void_p),
    "flush": (c_int, c_void_p, c_int),
    "purge": (c_int, c_void_p, c_int),
    "consumer_group_metadata_new": (c_void_p, c_char_p),
    "consumer_group_metadata_destroy": (None, c_void_p),
    "init_transactions": (c_void_p, c_void_p, c_int),
    "begin_transaction": (c_void_p, c_void_p),
    "send_offsets_to_transaction": (c_void_p, c_void_p, c_void_p, c_void_p, c_int),
    "commit_transaction": (c_void_p, c_void_p, c_int),
    "abort_transaction": (c_void_p, c_void_p, c_int),
    "error_code": (c_int, c_void_p),
    "error_string": (c_char_p, c_void_p),
    "error_is_fatal": (c_int, c_void_p),
    "error_destroy": (None, c_void_p),
}
_READING = ("message_timestamp", "message_headers", "header_get_all", "message_destroy")
_PRODUCING = ("produceva", "headers_new", "header_add", "headers_destroy", "error_code", "error_destroy")


class Size(Structure):
    """`struct size`."""

    _fields_: ClassVar = [("rows", c_int64), ("bytes", c_int64)]


class Sizes(Structure):
    """`struct sizes`."""

    _fields_: ClassVar = [(name, Size) for name in ("values", "keys", "names", "headers")]


class Column(Structure):
    """`struct column`."""

    _fields_: ClassVar = [
        ("most", Size),
        ("present", c_void_p),
        ("ends", c_void_p),
        ("bytes", c_void_p),
        ("used", Size),
        ("nulls", c_int64),
    ]


class Columns(Structure):
    """`struct columns`."""

    _fields_: ClassVar = [
        ("most", c_int64),
        *((name, c_void_p) for name in ("offsets", "times", "types", "header_ends")),
        *((name, Column) for name in ("values", "keys", "names", "headers")),
    ]


class Functions(Structure):
    """`struct functions`."""

    _fields_: ClassVar = [(name, c_void_p) for name in _READING]


class Producing(Structure):
    """`struct producing`."""

    _fields_: ClassVar = [(name, c_void_p) for name in _PRODUCING]


class Cells(Structure):
    """`struct cells`."""

    _fields_: ClassVar = [("present", c_void_p), ("first", c_int64), ("ends", c_void_p), ("bytes", c_void_p)]


class Rows(Structure):
    """`struct rows`."""

    _fields_: ClassVar = [
        ("times", c_void_p),
        ("header_ends", c_void_p),
        *((name, Cells) for name in ("values", "keys", "names", "headers")),
    ]


class Answers(Structure):
    """`struct answers`."""

    _fields_: ClassVar = [(name, c_int64) for name in ("records", "failed", "error", "first", "last", "number")]


_DRAIN: Mapping[str, tuple[Any, ...]] = {
    "divide": (c_int64, c_void_p, c_int64, c_void_p, c_void_p),
    "offsets": (None, c_void_p, c_int64, c_void_p),
    "stranger": (c_int64, c_void_p, c_int64),
    "topic": (c_void_p, c_void_p, POINTER(c_int32)),
    "measure": (None, POINTER(Functions), c_void_p, c_int64, c_int64, POINTER(Sizes)),
    "copy": (c_int, POINTER(Functions), c_void_p, c_int64, POINTER(Columns)),
    "drop": (None, POINTER(Functions), c_void_p, c_int64),
    "send": (
        *(c_int64, POINTER(Producing), c_void_p, c_void_p, c_int32),
        *(POINTER(Rows), c_int64, c_int64, c_int64, POINTER(c_void_p)),
    ),
    "answer": (None, c_void_p, c_void_p, c_void_p),
}


class Library:
    """The functions of librdkafka, without `rd_kafka_`, and of drain.c.

    :raises OSError: a library or a function is missing, or librdkafka is of another major version.
    """

    def __init__(self, librdkafka: str, drain: ctypes.CDLL) -> None:
        # dlsym on confluent_kafka's module looks into what it was linked with: its own librdkafka or the system's.
        opened = ctypes.CDLL(librdkafka)
        self.kafka = functions(opened, "rd_kafka_", _LIBRDKAFKA)
        version = self.kafka.version()
        if version >> 24 != MAJOR:
            raise OSError(f"librdkafka has version {version:#010x}; expected {MAJOR}.x")
        self.drain = functions(drain, "drain_", _DRAIN)
        try:
            self.table = Functions(*_pointers(opened, _READING))
            self.producing = Producing(*_pointers(opened, _PRODUCING))
        except AttributeError as error:
            raise OSError(str(error)) from error


def _pointers(library: ctypes.CDLL, names: Sequence[str]) -> Iterator[c_void_p]:
    return (ctypes.cast(library[f"rd_kafka_{name}"], c_void_p) for name in names)


def _open() -> Library:
    return Library(confluent_kafka.cimpl.__file__, load(__package__, "drain.c"))


_binary = Binary(_open)
library, why_not = _binary.library, _binary.why_not
