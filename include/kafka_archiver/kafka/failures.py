"""Kafka's errors in words for a person, sorted by whether trying again may help."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import NoReturn, TypeVar

from confluent_kafka import KafkaError, KafkaException
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from kafka_archiver.errors import ArchiverError, PermanentError, TransientError

Name = TypeVar("Name")
Result = TypeVar("Result")

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
_PERMANENT = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: "could not {what}: it does not exist; create it or correct source.topics",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the credentials may not {what}; grant them Describe and Read on the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "the credentials may not {what}; grant them Read on the group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the credentials may not {what}; grant them Describe on the cluster",
    KafkaError.SASL_AUTHENTICATION_FAILED: "the brokers refused the credentials while trying to {what}; "
    "correct the Kafka connection",
    KafkaError._AUTHENTICATION: "the brokers refused the credentials while trying to {what}; "
    "correct the Kafka connection",
    KafkaError._SSL: "TLS failed while trying to {what}; correct security.protocol and the ssl.* properties",
    KafkaError.UNKNOWN_MEMBER_ID: "the group has live members, so nobody else may {what}; stop what consumes in it",
    KafkaError.NON_EMPTY_GROUP: "the group has live members, so nobody else may {what}; stop what consumes in it",
    KafkaError._BAD_COMPRESSION: "could not {what}: a compressed set of records cannot be unpacked. Its checksum is "
    "right, so its producer made it so, or it unpacks to more than 2 GiB",
    KafkaError._INVALID_ARG: "the client refused to {what}; correct the properties of the Kafka connection",
}


def translate(error: KafkaError, what: str, brokers: str) -> ArchiverError:
    """The error to raise for Kafka's.

    :param what: what was tried, for example "read the watermarks of orders[3]".
    :param brokers: the bootstrap servers.
    """
    code = error.code()
    if code in _PERMANENT:
        return PermanentError(f"{brokers}: {_PERMANENT[code].format(what=what)} ({error.str()})")
    if code in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE):
        return TransientError(
            f"no answer from the Kafka brokers at {brokers} while trying to {what}; check that they run and that "
            f"this machine reaches them ({error.str()})"
        )
    return TransientError(f"{brokers}: could not {what}: {error.name()} {error.str()}")


class _StartingError(Exception):
    """The brokers are electing, loading or starting; they will answer in a moment."""


def ask(
    start: "Callable[[], Mapping[Name, Future[Result]]]", what: Callable[[Name], str], brokers: str, timeout: float
) -> list[Result]:
    """What the admin client's futures hold, in order; asked again while a coordinator is being elected or loaded.

    :param timeout: seconds for each question, and for asking again.
    :raises TransientError, PermanentError: the first failure.
    """
    again = Retrying(
        retry=retry_if_exception_type(_StartingError),
        stop=stop_after_delay(timeout),
        wait=wait_random_exponential(multiplier=0.1, max=2),
        retry_error_callback=_give_up,
    )
    return again(_ask, start, what, brokers, timeout)


def _give_up(state: RetryCallState) -> NoReturn:
    error = state.outcome.exception() if state.outcome else None
    raise (error.__cause__ if error else None) or TransientError("the brokers did not answer")


def _ask(
    start: "Callable[[], Mapping[Name, Future[Result]]]", what: Callable[[Name], str], brokers: str, timeout: float
) -> list[Result]:
    held = []
    for name, future in start().items():
        try:
            held.append(future.result(timeout=timeout))
        except KafkaException as error:
            failure = translate(error.args[0], what(name), brokers)
            failure.__cause__ = error
            if error.args[0].code() in _STARTING:
                raise _StartingError from failure
            raise failure from error
        except FutureTimeout as error:
            raise TransientError(
                f"no answer from the Kafka brokers at {brokers} within {timeout:.0f} s while trying to {what(name)}"
            ) from error
    return held
