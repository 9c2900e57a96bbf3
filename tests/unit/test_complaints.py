"""Complaints of librdkafka: which of them are refusals, and their messages."""

import pytest
from confluent_kafka import KafkaError

from kafka_archiver.kafka.failures import PATIENCE, Complaints
from kafka_archiver.messages.errors import PermanentError, TransientError

BROKEN = KafkaError(
    KafkaError._AUTHENTICATION, "SASL PLAIN mechanism handshake failed: Local: Broker transport failure"
)
WRONG = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: Invalid username or password")
GONE = KafkaError(KafkaError._TRANSPORT, "Connect to b:9092 failed: Connection refused")
ALL_GONE = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
SILENCE = KafkaError(KafkaError._TIMED_OUT, "Timed out")


def of(*errors: KafkaError) -> Complaints:
    complaints = Complaints("b:9092")
    for error in errors:
        complaints(error)
    return complaints


def test_a_refusal_counts_once_nobody_has_answered_for_a_while() -> None:
    complaints = of(WRONG, ALL_GONE, GONE)
    assert complaints.refusal(PATIENCE) is None
    assert complaints.refusal(PATIENCE + 0.1) == WRONG
    complaints.forget()
    assert complaints.refusal(99) is None


def test_a_broker_that_is_gone_refuses_nobody() -> None:
    assert of(GONE, ALL_GONE).refusal(99) is None


def test_a_connection_that_breaks_in_the_handshake_is_no_refusal() -> None:
    assert of(BROKEN).refusal(99) is None
    assert isinstance(of(BROKEN).translate(SILENCE, "x"), TransientError)


def test_a_complaint_says_why_there_is_no_answer_and_nothing_of_other_errors() -> None:
    complaints = of(GONE, ALL_GONE)
    message = complaints.translate(SILENCE, "describe topic t")
    assert isinstance(message, TransientError)
    assert "no answer from the Kafka brokers at b:9092 while trying to describe topic t" in str(message)
    assert "Connection refused" in str(message)
    denied = complaints.translate(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "denied"), "describe topic t")
    assert "may not describe topic t" in str(denied)
    assert "Timed out" in str(of().translate(SILENCE, "x"))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ('{"error_description":"AADSTS7000215: Invalid client secret", "error":"invalid_client"}', PermanentError),
        ('{"error": "unauthorized_client"}', PermanentError),
        ('{"error": "temporarily_unavailable"}', TransientError),
        ("<html>\n<h1>Bad Gateway</h1>", TransientError),
        ("Failed to connect to idp port 443: Could not connect to server", TransientError),
    ],
)
def test_a_token_that_was_refused_and_one_that_may_come_later(answer: str, kind: type[Exception]) -> None:
    error = KafkaError(KafkaError._AUTHENTICATION, f"Failed to acquire SASL OAUTHBEARER token: {answer}")
    message = of(error).translate(SILENCE, "describe topic t")
    assert type(message) is kind
    assert " ".join(answer.split()) in str(message)
    assert "\n" not in str(message)
    assert (of(error).refusal(99) is not None) == (kind is PermanentError)
