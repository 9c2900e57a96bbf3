"""The answers about a transaction's records, as drain.c notes them."""

import ctypes
from ctypes import byref

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.kafka.drain.library import Answers, library, why_not

REFUSALS = [KafkaError.INVALID_TIMESTAMP, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._MSG_TIMED_OUT]
PURGED = [KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT]


class Message(ctypes.Structure):
    """`rd_kafka_message_t`, as far as answers have it."""

    _fields_ = (
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("value", ctypes.c_void_p),
        ("value_size", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_size", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("opaque", ctypes.c_void_p),
    )


@pytest.mark.skipif(library() is None, reason=why_not())
@given(st.lists(st.sampled_from([0, *REFUSALS, *PURGED]), max_size=12))
def test_the_reason_of_a_failure_is_the_first_refusal_and_not_what_was_dropped_because_of_it(errors: list[int]) -> None:
    drain, answers = library().drain, Answers()
    for number, error in enumerate(errors, 1):
        message = Message(err=error, offset=100 + number, opaque=number)
        drain.answer(None, byref(message), byref(answers))
    failed = [error for error in errors if error]
    refused = [error for error in failed if error not in PURGED]
    assert (answers.records, answers.failed) == (len(errors), len(failed))
    assert answers.error in (refused[:1] or failed or [0])
