"""Kafka's errors in words for a person, sorted by whether trying again may help."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.errors import ArchiverError, PermanentError, TransientError

Name = TypeVar("Name")
Result = TypeVar("Result")

_PERMANENT = {
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
    return TransientError(f"{brokers}: could not {what}: {error.str()}")


def results(
    futures: "Mapping[Name, Future[Result]]", what: Callable[[Name], str], brokers: str, timeout: float
) -> list[Result]:
    """What the admin client's futures hold, in order.

    :raises TransientError, PermanentError: the first failure.
    """
    held = []
    for name, future in futures.items():
        try:
            held.append(future.result(timeout=timeout))
        except KafkaException as error:
            raise translate(error.args[0], what(name), brokers) from error
        except FutureTimeout as error:
            raise TransientError(
                f"no answer from the Kafka brokers at {brokers} within {timeout:.0f} s while trying to {what(name)}"
            ) from error
    return held
