"""A real schema registry: what the client says of it, and what the doctor makes of it beside a real broker."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest

from kafka_archiver.config.decoding import Decoding
from kafka_archiver.kafka.topics import Topic
from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.model.findings import Finding
from kafka_archiver.records.decode.frames import schema_id
from kafka_archiver.records.decode.schema_registry import Registry
from kafka_archiver.state.doctor.schema_registry import check_registry
from scripts.stack.kafka import Kafka
from scripts.stack.ports import HOST
from scripts.stack.s3 import S3
from tests.support import producers
from tests.support.archiver import Archiver
from tests.support.certificates import Authority
from tests.support.producers import Producer
from tests.support.registry import RegistryServer
from tests.support.registry_guard import guarding
from tests.support.topics import DAY, Record, new_topic, produce

pytestmark = [pytest.mark.contract, pytest.mark.slow, pytest.mark.timeout(300)]

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "n", "type": "int"}]}
USER = "reader:hunter2"


def framed(number: int, payload: bytes = b"\x02") -> bytes:
    return b"\0" + number.to_bytes(4) + payload


def test_it_answers_with_its_level_and_its_schemas(registry: RegistryServer) -> None:
    number = registry.register("level-value", ORDER)
    client = Registry.of({"url": registry.url + "/"})
    for level in ("BACKWARD", "NONE"):
        registry.demand(level)
        assert client.compatibility() == level
    schema = client.schema(number)
    assert schema is not None
    assert schema.kind == "AVRO"
    assert '"Order"' in schema.text
    assert client.schema(123_456_789) is None


def test_what_is_no_registry_or_does_not_answer(registry: RegistryServer, kafka: Kafka) -> None:
    # The front page of the same server; no page at all; a broker; nobody.
    for url in (registry.host_url, f"{registry.host_url}/health", f"http://{kafka.bootstrap_servers}"):
        with pytest.raises((PermanentError, TransientError)) as caught:
            Registry.of({"url": url}, timeout=5).compatibility()
        assert f"at {url}" in str(caught.value)
    with pytest.raises(TransientError, match=r"no answer from the schema registry at http://127\.0\.0\.1:1; check"):
        Registry.of({"url": f"http://{HOST}:1"}).compatibility()


def test_credentials(registry: RegistryServer) -> None:
    with guarding(registry.url, USER) as url:
        assert Registry.of({"url": url, "basic.auth.user.info": USER}).compatibility()
        with pytest.raises(PermanentError, match=r"refused the credentials \(HTTP 401\)") as caught:
            Registry.of({"url": url, "basic.auth.user.info": f"{USER}3"}).compatibility()
        assert "hunter2" not in str(caught.value)
        with pytest.raises(PermanentError, match=r"needs credentials \(HTTP 401\)"):
            Registry.of({"url": url}).compatibility()


def test_tls(registry: RegistryServer, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with guarding(registry.url, USER, authority.sign("registry")) as url:
        properties = {"url": url, "basic.auth.user.info": USER}
        assert Registry.of({**properties, "ssl.ca.location": str(authority.file)}).compatibility()
        with pytest.raises(
            PermanentError, match=r"TLS with .* failed \(CERTIFICATE_VERIFY_FAILED\).*`ssl.ca.location`"
        ):
            Registry.of(properties).compatibility()
    with pytest.raises(PermanentError, match=r"TLS with .* failed"):
        Registry.of({"url": registry.url.replace("http", "https")}).compatibility()


def checks(archiver: Archiver, registry: Registry | None) -> dict[str, Finding]:
    return {check.kind: check for check in check_registry(archiver.archive, archiver.context.cluster, registry)}


def test_the_doctor_looks_for_the_schemas_of_the_newest_records(
    kafka: Kafka, s3: S3, registry: RegistryServer, tmp_path: Path
) -> None:
    number, brokers = registry.register("doctor-value", ORDER), kafka.bootstrap_servers
    known, unknown, plain, empty = (new_topic(brokers, 2) for _ in range(4))
    # Old records have an id that nobody knows any more; keys may be numbers, which begin with 0 too.
    old = [Record(1, DAY, framed(999_999_999))] * 5
    produce(brokers, known, [*old, *[Record(1, DAY, framed(number), (77).to_bytes(8)), Record(1, DAY, None)] * 3])
    produce(brokers, unknown, [Record(0, DAY, framed(number)), Record(0, DAY, framed(987_654_321))], "commit")
    produce(brokers, plain, [Record(0, DAY, b'{"n": 1}'), Record(1, DAY, b"\0\0\0\1")])
    archiver = Archiver(kafka, s3, tmp_path, [known, unknown, plain, empty, "no-such-topic"])
    findings = checks(archiver, Registry.of({"url": registry.url}))
    assert {name: check.severity for name, check in findings.items()} == {
        "schema registry": "ok",
        f"schemas of {known}": "ok",
        f"schemas of {unknown}": "warning",
        f"schemas of {plain}": "ok",
        f"schemas of {empty}": "ok",
    }
    assert f"{registry.url} answers; compatibility level " in findings["schema registry"].observed
    assert findings[f"schemas of {known}"].observed.endswith(f"are there: {number} (AVRO)")
    assert (
        f"{unknown}[0] offset 1 begins like a value with schema 987654321" in findings[f"schemas of {unknown}"].observed
    )
    assert findings[f"schemas of {plain}"].observed == "no schema id in its newest records"


def test_silent_brokers_are_asked_once(kafka: Kafka, s3: S3, registry: RegistryServer, tmp_path: Path) -> None:
    archiver = Archiver(kafka, s3, tmp_path, ["one", "two"]).behind(brokers=f"{HOST}:1")
    asked: list[object] = []

    def silent(names: object) -> list[Topic]:
        asked.append(names)
        raise TransientError("no answer")

    archiver.context.cluster.topics = silent  # type: ignore[method-assign, assignment]
    assert list(checks(archiver, Registry.of({"url": registry.url}))) == ["schema registry"]
    assert asked == [["one"]]


def test_the_doctor_without_a_registry_and_with_one_that_is_gone(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    archiver = Archiver(kafka, s3, tmp_path, ["any"])
    assert checks(archiver, None)["schema registry"].observed == "not configured"
    [gone] = checks(archiver, Registry.of({"url": f"http://{HOST}:1"})).values()
    assert (gone.kind, gone.severity) == ("schema registry", "problem")
    assert "runs do not need it" in gone.means


def test_versions_imports_and_what_was_deleted(registry: RegistryServer) -> None:
    money = {"type": "record", "name": "x.Money", "fields": [{"name": "n", "type": "int"}]}
    bill = {"type": "record", "name": "Bill", "fields": [{"name": "sum", "type": "x.Money"}]}
    registry.register("money", money)
    registry.register("money", {**money, "doc": "newer"})
    ids = [registry.register("bills", {**bill, "doc": doc}, imports=[("x.Money", "money", 1)]) for doc in "ab"]
    registry.delete("bills/versions/1")
    client = Registry.of({"url": registry.url})
    first, second = client.versions("bills")
    assert [(v.number, v.id, v.deleted) for v in (first, second)] == [(1, ids[0], True), (2, ids[1], False)]
    [imported] = first.schema.references
    assert imported.name == "x.Money"
    assert "newer" not in imported.imported.text
    assert client.schema(ids[0]) == first.schema
    # Apicurio 3.0 has none: tests of ids in headers have a registry of their own.
    assert first.guid is None
    assert client.versions("nothing/of that name") == []
    registry.delete("bills")
    assert client.schema(ids[1]) == second.schema
    registry.delete("bills?permanent=true")
    assert (client.schema(ids[1]), client.versions("bills")) == (None, [])


@pytest.mark.parametrize("make", [producers.avro, producers.json_schema, producers.protobuf])
@pytest.mark.parametrize("strategy", ["topic", "record", "topic_record"])
def test_the_schemas_of_producers_of_others_are_found_by_their_strategy(
    registry: RegistryServer, make: Callable[[str, str, str], Producer], strategy: str
) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    producer = make(registry.url, topic, strategy)
    number = schema_id(producer.serialize(1))
    names = [] if strategy == "topic" else [producer.record]
    decoding = Decoding.model_validate({"decode": producer.decode, "subject": strategy, "subjects": names})
    [subject] = decoding.subjects_of(topic, "value")
    [*_, newest] = Registry.of({"url": registry.url}).versions(subject)
    assert (newest.id, newest.schema.kind) == (number, decoding.decoder.kind)
    if producer.decode == "avro":
        [imported] = newest.schema.references
        named: dict[str, Any] = {}
        fastavro.parse_schema(json.loads(imported.imported.text), named)
        assert fastavro.parse_schema(json.loads(newest.schema.text), named)
