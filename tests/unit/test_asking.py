"""Asking the brokers: what is asked again, and of which client."""

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.errors import TransientError
from kafka_archiver.kafka import asking
from kafka_archiver.kafka.asking import Asking


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
    monkeypatch.setattr(asking, "AdminClient", Client)
    answers, asked = iter([first, "an answer"]), []

    def start(client: object) -> dict[str, "Future[object]"]:
        asked.append(client)
        return {"orders": answered(next(answers))}

    assert Asking({"bootstrap.servers": "b:1"}).ask(start, "ask about {}".format, 5) == ["an answer"]
    assert len(asked) == 2
    assert len(set(map(id, asked))) == clients


def test_what_no_other_question_would_change_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "AdminClient", Client)
    asked = []

    def start(client: object) -> dict[str, "Future[object]"]:
        asked.append(client)
        return {"orders": answered(KafkaError._TIMED_OUT)}

    with pytest.raises(TransientError, match="ask about orders"):
        Asking({"bootstrap.servers": "b:1"}).ask(start, "ask about {}".format, 5)
    assert len(asked) == 1
