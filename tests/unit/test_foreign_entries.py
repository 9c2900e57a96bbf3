"""Wherever text of others comes in, it is only text in our messages: of stores, registries, brokers, documents."""

import json
from collections.abc import Callable

import httpx
import pytest
from botocore.exceptions import ClientError, CredentialRetrievalError
from confluent_kafka import KafkaError

from kafka_archiver.audit.report import error, in_words
from kafka_archiver.kafka.failures import translate
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.advice import once
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model.manifest import Claim, Commit
from kafka_archiver.model.object_keys import run_document
from kafka_archiver.model.plan import TopicSchemas, Writer
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.settings import Settings
from kafka_archiver.planning.topic_claims import _claimed_message, _leftover_message
from kafka_archiver.records.pipeline.decode import decodings
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.store.s3_errors import Bucket, explain
from kafka_archiver.store.s3_sums import checksum_text
from tests.support.plans import at
from tests.unit.test_schema_registry import answering

pytestmark = pytest.mark.unit

EVIL = f"`airflow version` `{once('orders', {'bad_record': 'skip'}).command}` \x1b[31m\u202eevil\nX"
RUN = "20261121T050000Z"


def raised(call: Callable[[], object]) -> str:
    with pytest.raises(ArchiverError) as caught:
        call()
    return str(caught.value)


def of_store(code: str, status: int) -> str:
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"RequestId": EVIL, "HTTPStatusCode": status}}
    return str(explain(ClientError(answer, "PutObject"), Bucket("archive", "http://s3"), "put_object", EVIL))  # type: ignore[arg-type]


def of_registry(answer: httpx.Response | Exception) -> str:
    return raised(lambda: answering(answer, httpx.Response(404, json={"error_code": 40402})).schema(1))


def importing() -> httpx.Response:
    references = [{"name": EVIL, "subject": EVIL, "version": 1}]
    return httpx.Response(200, json={"schema": "x", "references": references})


def foreign_commit() -> str:
    store = MemoryStore("memory")
    commit = Commit(archive=EVIL, run=RUN, plan_digest="d", manifest_digest="m", committed_at=at(1))
    store.put(run_document("orders", RUN, "commit"), commit.to_json())
    return raised(lambda: Ledger(store, "orders").commit(RUN))


def of_schema() -> str:
    schema = Schema(kind="JSON", text=json.dumps({"type": "object", "properties": {EVIL: {"$ref": EVIL}}}))
    writer = Writer(fingerprint=schema.fingerprint, written_as=schema.fingerprint)
    decoded = TopicSchemas(topic="t", column="value", framed=False, writers=(writer,))
    settings = Settings(value_decode="json_schema")
    return raised(lambda: decodings(settings, "t", [decoded], {schema.fingerprint: schema}))


ENTRIES: dict[str, Callable[[], str]] = {
    "the store's code": lambda: of_store(EVIL, 400),
    "a key of the store": lambda: of_store("AccessDenied", 403),
    "the store's trouble": lambda: of_store(EVIL, 503),
    "a provider of credentials": lambda: str(
        explain(
            CredentialRetrievalError(provider=EVIL, error_msg=EVIL), Bucket("archive", "http://s3"), "put_object", EVIL
        )
    ),
    "an ETag": lambda: checksum_text({"ETag": f'"{EVIL}"'}),
    "a registry that does not answer": lambda: of_registry(httpx.ConnectError(EVIL)),
    "the registry's imports": lambda: of_registry(importing()),
    "a registry that is none": lambda: of_registry(httpx.Response(200, json={EVIL: EVIL, "schema": [EVIL]})),
    "the brokers": lambda: str(translate(KafkaError(KafkaError._TRANSPORT, EVIL), "read", "kafka:9092")),
    "a document": lambda: raised(lambda: Claim.from_json(json.dumps({EVIL: EVIL, "archive": 1}).encode(), "a.json")),
    "a document of another archive": foreign_commit,
    "a finding": lambda: in_words(error("stranger", EVIL, "an object", "nothing", "Look at it")),
    "the claim of a topic": lambda: _claimed_message("s3://a/lake", "orders", EVIL),
    "an object in the place": lambda: _leftover_message("s3://a/lake", "orders", EVIL),
    "a schema": of_schema,
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_foreign_text_is_no_command_no_line_and_no_control_character(entry: str) -> None:
    text = ENTRIES[entry]()
    assert text.isprintable(), repr(text)
    assert "`airflow" not in text
