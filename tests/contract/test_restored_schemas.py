"""The archive's schemas at another registry: under their ids, whatever kills the attempt, or under new ids."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.decode.schema_registry import Registry
from kafka_archiver.records.decode.schema_registry_writer import RegistryWriter
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.work.restore.schemas import SchemaRegistration
from tests.support.named_schemas import NAMED, KilledError, Mortal, avro, plan_naming
from tests.support.registry import RegistryServer
from tests.support.registry_twin import RegistryTwin

pytestmark = pytest.mark.contract


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger(MemoryStore(uuid.uuid4().hex), "orders")
    for _, _, _, schema in NAMED:
        ledger.keep_schema(schema)
    return ledger


@pytest.fixture
def twin() -> RegistryTwin:
    return RegistryTwin()


@pytest.fixture
def writer(twin: RegistryTwin) -> Iterator[RegistryWriter]:
    with twin.serving() as url:
        yield writer_of(url)


def writer_of(url: str) -> RegistryWriter:
    return RegistryWriter.of({"url": url}, "--registry")


def registration(ledger: Ledger, writer: Any) -> SchemaRegistration:
    return SchemaRegistration(ledger, "r", writer)


TOPICS = ("orders", "users")


def test_the_same_ids_and_versions_and_no_subject_stays_in_import_mode(
    ledger: Ledger, twin: RegistryTwin, writer: RegistryWriter
) -> None:
    twin.modes["users-key"] = "READONLY_OVERRIDE"
    document = registration(ledger, writer).run([plan_naming()], TOPICS, "same")
    assert twin.subjects == {"orders-value": {1: 7, 3: 9}, "users-key": {1: 8}, "Address": {1: 10}}
    assert twin.modes == {"users-key": "READONLY_OVERRIDE"}
    client = Registry.of({"url": writer.url})
    assert [client.schema(number) for _, _, number, _ in NAMED] == [schema for *_, schema in NAMED]
    assert document.done
    assert document.reframed == ()
    changes = [call for call in twin.calls if not call.startswith("GET")]
    assert registration(ledger, writer).run([plan_naming()], TOPICS, "same") == document
    assert [call for call in twin.calls if not call.startswith("GET")] == changes


@pytest.mark.parametrize("is_after", [False, True])
def test_an_attempt_may_be_killed_at_each_of_its_calls(ledger: Ledger, is_after: bool) -> None:
    fatal = 0
    while True:
        twin, own = RegistryTwin(modes={"users-key": "READWRITE"}), Ledger(MemoryStore(uuid.uuid4().hex), "orders")
        for *_, schema in NAMED:
            own.keep_schema(schema)
        with twin.serving() as url:
            mortal = Mortal(writer_of(url), fatal, is_after)
            try:
                registration(own, mortal).run([plan_naming()], TOPICS, "same")
            except KilledError:
                fatal += 1
            else:
                break
            registration(own, writer_of(url)).run([plan_naming()], TOPICS, "same")
        assert twin.subjects == {"orders-value": {1: 7, 3: 9}, "users-key": {1: 8}, "Address": {1: 10}}
        assert twin.modes == {"users-key": "READWRITE"}
    assert fatal > 10


def test_a_registry_that_has_something_else_is_refused_and_unchanged(
    ledger: Ledger, twin: RegistryTwin, writer: RegistryWriter
) -> None:
    writer.register("orders-value", avro("z"))
    before = (dict(twin.subjects), dict(twin.schemas))
    with pytest.raises(ConfigError, match=r"subject orders-value .* has schemas, but not version 1 with id 7"):
        registration(ledger, writer).run([plan_naming()], TOPICS, "same")
    for number in range(6):
        writer.register(f"s{number}", avro(f"other{number}"))
    twin.subjects.pop("orders-value")
    with pytest.raises(ConfigError, match=r"id 7 of the schema registry at .* is another schema"):
        registration(ledger, writer).run([plan_naming()], TOPICS, "same")
    assert (before[0].keys() - twin.subjects.keys(), twin.modes) == ({"orders-value"}, {})


def test_two_registries_in_one_archive_are_refused(ledger: Ledger, writer: RegistryWriter) -> None:
    other = plan_naming([("orders-value", 1, 7, avro("b"))])
    with pytest.raises(ConfigError, match=r"schema id 7 means version 1 .*: the archive has seen two registries"):
        registration(ledger, writer).run([plan_naming(), other], TOPICS, "same")
    with pytest.raises(ConfigError, match="knows no schemas of other"):
        registration(ledger, writer).run([plan_naming()], ["other"], "new")


@pytest.mark.slow
def test_new_ids_of_a_real_registry_and_the_records_that_get_them(ledger: Ledger, registry: RegistryServer) -> None:
    tag = uuid.uuid4().hex[:6]
    named = [(f"{tag}{subject}", version, number, schema) for subject, version, number, schema in NAMED]
    topics = [f"{tag}orders", f"{tag}users"]
    real = writer_of(registry.url)
    with pytest.raises(ConfigError, match="has no mode IMPORT, without which it gives ids of its own"):
        registration(ledger, real).run([plan_naming(named)], topics, "same")
    document = registration(ledger, real).run([plan_naming(named)], topics, "new")
    assert registration(ledger, real).run([plan_naming(named)], topics, "new") == document
    client = Registry.of({"url": registry.url})
    assert document.done
    for schema in document.schemas:
        registered = client.schema(schema.new_id or 0)
        assert registered
        assert registered.fingerprint == schema.fingerprint
    new_ids = {schema.id: schema.new_id for schema in document.schemas}
    for column in document.reframed:
        assert dict(column.ids).items() <= new_ids.items()
        assert column.topic in topics
