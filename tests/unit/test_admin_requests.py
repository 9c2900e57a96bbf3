"""Asking the brokers: what is asked again, and of which client."""

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.kafka import admin_requests
from kafka_archiver.kafka.admin_requests import Asking
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.leaders import BrokerNode
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.values.ranges import TopicPartition


class Client:
    """An admin client that has nothing to say of itself."""

    def __init__(self, _: object) -> None:
        pass

    def poll(self, _: float) -> None:
        pass


def answered(answer: object) -> "Future[object]":
    future: Future[object] = Future()
    if isinstance(answer, int):
        future.set_exception(KafkaException(KafkaError(answer)))
    else:
        future.set_result(answer)
    return future


@pytest.mark.parametrize(
    ("first", "clients"), [(KafkaError._TRANSPORT, 2), (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, 1)]
)
def test_a_client_whose_connection_broke_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, first: int, clients: int
) -> None:
    monkeypatch.setattr(admin_requests, "AdminClient", Client)
    answers, asked = iter([first, "an answer"]), []

    def start(client: object) -> dict[str, "Future[object]"]:
        asked.append(client)
        return {"orders": answered(next(answers))}

    assert Asking({"bootstrap.servers": "b:1"}).ask(start, "ask about {}".format, 5) == ["an answer"]
    assert len(asked) == 2
    assert len(set(map(id, asked))) == clients


def test_what_no_other_question_would_change_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_requests, "AdminClient", Client)
    asked = []

    def start(client: object) -> dict[str, "Future[object]"]:
        asked.append(client)
        return {"orders": answered(KafkaError._TIMED_OUT)}

    with pytest.raises(TransientError, match="ask about orders"):
        Asking({"bootstrap.servers": "b:1"}).ask(start, "ask about {}".format, 5)
    assert len(asked) == 1


def test_a_request_that_never_ends_has_the_reason_that_the_client_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Complaining(Client):
        def __init__(self, settings: dict[str, Any]) -> None:
            self._complain = settings["error_cb"]

        def poll(self, _: float) -> None:
            self._complain(KafkaError(KafkaError._TRANSPORT, "Connection refused"))

    monkeypatch.setattr(admin_requests, "AdminClient", Complaining)
    with pytest.raises(TransientError, match=r"no answer.*ask about orders.*Connection refused"):
        Asking({"bootstrap.servers": "b:1"}).ask(lambda _: {"orders": Future()}, "ask about {}".format, 0.01)
    monkeypatch.setattr(admin_requests, "AdminClient", Client)
    with pytest.raises(TransientError, match=r"no answer.*ask about orders.*nothing within 0 s"):
        Asking({"bootstrap.servers": "b:1"}).ask(lambda _: {"orders": Future()}, "ask about {}".format, 0.01)


@pytest.mark.parametrize("refusal", [KafkaError.UNSUPPORTED_VERSION, KafkaError.INVALID_REQUEST])
def test_brokers_that_cannot_tell_the_latest_time_know_none(monkeypatch: pytest.MonkeyPatch, refusal: int) -> None:
    class Old(Client):
        def list_offsets(self, requests: dict[object, object], **_: object) -> "dict[object, Future[object]]":
            return {place: answered(refusal) for place in requests}

    monkeypatch.setattr(admin_requests, "AdminClient", Old)
    monkeypatch.setattr(Cluster, "nodes", lambda _: [BrokerNode(1, "b:9092")])
    name, cluster = TopicPartition("orders", 0), Cluster({"bootstrap.servers": "b:9092"})
    if refusal == KafkaError.UNSUPPORTED_VERSION:
        assert cluster.latest_times([name]) == {name: -1}
    else:
        with pytest.raises(TransientError, match="INVALID_REQUEST"):
            cluster.latest_times([name])
