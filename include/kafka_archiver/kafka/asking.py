"""Asking the brokers, and listening meanwhile to what the client says of itself."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import NoReturn, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from kafka_archiver.errors import TransientError
from kafka_archiver.kafka.complaints import Complaints

Name = TypeVar("Name")
Result = TypeVar("Result")

LISTEN_SECONDS = 0.1
_STARTING = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    # What the client remembers of the leader is of before an election or a restart, or it knows of none.
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError._NOENT,
    # The connection broke. (Brokers that are gone are _TIMED_OUT.)
    KafkaError._TRANSPORT,
}


class _StartingError(Exception):
    """The brokers are electing, loading or starting; they will answer in a moment."""


def ask(
    start: "Callable[[], Mapping[Name, Future[Result]]]",
    what: Callable[[Name], str],
    client: AdminClient,
    complaints: Complaints,
    timeout: float,
) -> list[Result]:
    """What the admin client's futures hold, in order; asked again while a coordinator is being elected or loaded.

    :param complaints: the client's `error_cb`.
    :param timeout: seconds for each question, and for asking again.
    :raises TransientError, PermanentError: the first failure.
    """
    again = Retrying(
        retry=retry_if_exception_type(_StartingError),
        stop=stop_after_delay(timeout),
        wait=wait_random_exponential(multiplier=0.1, max=2),
        retry_error_callback=_give_up,
    )
    return again(_ask, start, what, client, complaints, timeout)


def _give_up(state: RetryCallState) -> NoReturn:
    error = state.outcome.exception() if state.outcome else None
    raise (error.__cause__ if error else None) or TransientError("the brokers did not answer")


def _ask(
    start: "Callable[[], Mapping[Name, Future[Result]]]",
    what: Callable[[Name], str],
    client: AdminClient,
    complaints: Complaints,
    timeout: float,
) -> list[Result]:
    held = []
    for name, future in start().items():
        try:
            held.append(_wait(future, client, complaints, timeout))
        except KafkaException as error:
            failure = complaints.translate(error.args[0], what(name))
            failure.__cause__ = error
            if error.args[0].code() in _STARTING:
                raise _StartingError from failure
            raise failure from error
        except FutureTimeout as error:
            raise TransientError(
                f"no answer from the Kafka brokers at {complaints.brokers} within {timeout:.0f} s while trying to "
                f"{what(name)}"
            ) from error
    return held


def _wait(future: "Future[Result]", client: AdminClient, complaints: Complaints, timeout: float) -> Result:
    asked = time.monotonic()
    while True:
        try:
            answer = future.result(timeout=min(timeout, LISTEN_SECONDS))
        except (FutureTimeout, KafkaException) as error:
            client.poll(0)
            silence = time.monotonic() - asked
            if refusal := complaints.refusal(silence):
                raise KafkaException(refusal) from error
            if isinstance(error, KafkaException) or silence > timeout:
                raise
        else:
            client.poll(0)
            complaints.forget()
            return answer
