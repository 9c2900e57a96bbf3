"""Requests to the brokers through an admin client, with the errors that the client reports to its callback."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cached_property
from typing import Any, NoReturn, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from kafka_archiver.kafka.failures import Complaints, translate
from kafka_archiver.messages.errors import TransientError

Name = TypeVar("Name")
Result = TypeVar("Result")
# Starts a request for each name.
Start = Callable[[AdminClient], Mapping[Name, Future[Result]]]

LISTEN_SECONDS = 0.1
_STARTING = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    # The client's metadata is older than an election or a restart, or names no leader.
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError._NOENT,
    # The connection broke. (Brokers that do not run give _TIMED_OUT.)
    KafkaError._TRANSPORT,
}


class _StartingError(Exception):
    """The brokers are electing, loading or starting; they will answer soon."""


class Asking:
    """An admin client and its complaints. The client is created on first use, and again after its connection broke.

    :param properties: librdkafka's client properties.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self.brokers = properties["bootstrap.servers"]
        self._complaints = Complaints(self.brokers)

    @cached_property
    def _client(self) -> AdminClient:
        settings: dict[str, Any] = {
            "socket.connection.setup.timeout.ms": 10_000,
            # librdkafka does not refresh its metadata when a restarted broker answers that the leader epoch is old.
            "metadata.max.age.ms": 1000,
            **self._properties,
            "error_cb": self._complaints,
            "log_level": 2,
        }
        try:
            return AdminClient(settings)
        except KafkaException as error:
            raise translate(error.args[0], "start a client", self._complaints.brokers) from error

    def topics(self, timeout: float) -> list[str]:
        try:
            return list(self._client.list_topics(timeout=timeout).topics)
        except KafkaException as error:
            self._client.poll(0)
            raise self._complaints.translate(error.args[0], "list topics") from error

    def describe_cluster(self, timeout: float) -> Any:
        """The id and the brokers of the cluster. Parameters and errors as of `ask`."""
        [answer] = self.ask(
            lambda admin: {"": admin.describe_cluster(request_timeout=timeout)},
            lambda _: "describe the cluster",
            timeout,
        )
        return answer

    def ask(self, start: Start[Name, Result], what: Callable[[Name], str], timeout: float) -> list[Result]:
        """The results of the client's futures, in order. Retries while a coordinator is being elected or loaded.

        :param what: describes the request for a name, for example "read the watermarks of orders[3]".
        :param timeout: seconds for each request, and for all retries.
        :raises TransientError, PermanentError: the first failure.
        """
        again = Retrying(
            retry=retry_if_exception_type(_StartingError),
            stop=stop_after_delay(timeout),
            wait=wait_random_exponential(multiplier=0.1, max=2),
            retry_error_callback=_give_up,
        )
        return again(self._once, start, what, timeout)

    def _once(self, start: Start[Name, Result], what: Callable[[Name], str], timeout: float) -> list[Result]:
        pending = []
        for name, future in start(self._client).items():
            try:
                pending.append(self._wait(future, timeout))
            except KafkaException as error:
                code = error.args[0].code()
                failure = self._complaints.translate(error.args[0], what(name))
                failure.__cause__ = error
                if code == KafkaError._TRANSPORT:
                    # After this error the client never finds a coordinator again: create a new one.
                    del self._client
                if code in _STARTING:
                    raise _StartingError from failure
                raise failure from error
            except FutureTimeout as error:
                silence = KafkaError(KafkaError._TIMED_OUT, f"nothing within {timeout:.0f} s")
                raise self._complaints.translate(silence, what(name)) from error
        return pending

    def _wait(self, future: Future[Result], timeout: float) -> Result:
        asked = time.monotonic()
        while True:
            try:
                answer = future.result(timeout=min(timeout, LISTEN_SECONDS))
            except (FutureTimeout, KafkaException) as error:
                self._client.poll(0)
                silence = time.monotonic() - asked
                if refusal := self._complaints.refusal(silence):
                    raise KafkaException(refusal) from error
                if isinstance(error, KafkaException) or silence > timeout:
                    raise
            else:
                self._client.poll(0)
                self._complaints.forget()
                return answer


def _give_up(state: RetryCallState) -> NoReturn:
    error = state.outcome.exception() if state.outcome else None
    raise (error.__cause__ if error else None) or TransientError("the brokers did not answer")
