"""`source.registry` in Airflow: what becomes of a connection or a mapping, what the doctor says, what logs show."""

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk._shared.secrets_masker import SecretsMasker, _secrets_masker

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections import registry_endpoint
from tests.dags.conftest import SECRET, AddConnection, Call, MakeArchive
from tests.support.brokers import Brokers

pytestmark = pytest.mark.dags


@pytest.fixture
def named(archive: MakeArchive) -> MakeArchive:
    """Makes an archive with this registry."""

    def make(registry: object = "schemas") -> Any:
        configured = archive()
        return configured.model_copy(update={"source": configured.source.model_copy(update={"registry": registry})})

    return make


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({"host": "registry", "port": 8081}, "http://registry:8081"),
        ({"host": "registry", "port": 8081, "schema": "https"}, "https://registry:8081"),
        ({"host": "https://registry"}, "https://registry"),
        ({"host": "https://registry:8081"}, "https://registry:8081"),
        ({"host": "https://apicurio/apis/ccompat/v7", "port": 8443}, "https://apicurio:8443/apis/ccompat/v7"),
    ],
)
def test_a_connection_is_an_address(
    named: MakeArchive, connection: AddConnection, fields: dict[str, Any], url: str
) -> None:
    connection("schemas", "http", **fields)
    assert registry_endpoint(named()) == {"url": url}


def test_login_password_and_extra(named: MakeArchive, connection: AddConnection) -> None:
    connection("schemas", "http", {"ssl.ca.location": "/ca.pem"}, host="https://r", login="u", password=SECRET)
    assert registry_endpoint(named()) == {
        "url": "https://r",
        "basic.auth.user.info": f"u:{SECRET}",
        "ssl.ca.location": "/ca.pem",
    }


def test_a_mapping_and_nothing_need_no_connection(named: MakeArchive) -> None:
    mapping = {"url": "https://r", "basic.auth.user.info": f"u:{SECRET}"}
    assert registry_endpoint(named(mapping)) == mapping
    assert registry_endpoint(named(None)) is None


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (
            None,
            {},
            r"there is no Airflow connection 'schemas' \(source.registry\); add it with:\n  airflow connections",
        ),
        ("kafka", {}, "is of type 'kafka'; expected 'http'"),
        ("http", {}, r"'schemas' \(source.registry\) has no host; expected one like https://registry.example.com"),
        ("http", {"port": 8081}, "has no host"),
    ],
)
def test_what_a_connection_lacks_is_said(
    named: MakeArchive, connection: AddConnection, kind: str | None, fields: dict[str, Any], message: str
) -> None:
    connection("another", "http")
    if kind:
        connection("schemas", kind, **fields)
    with pytest.raises(ConfigError, match=message):
        registry_endpoint(named())


@pytest.mark.parametrize("mapping", [False, True])
def test_credentials_are_kept_out_of_logs(named: MakeArchive, connection: AddConnection, mapping: bool) -> None:
    masker: SecretsMasker = _secrets_masker()
    password = f"swordfish-{mapping}"
    connection("schemas", "http", host="https://r", login="somebody", password=password)
    registry_endpoint(
        named({"url": "https://r", "basic.auth.user.info": f"somebody:{password}"} if mapping else "schemas")
    )
    assert masker.redact(f"it was {password}") == "it was ***"
    assert masker.redact(f"it was somebody:{password}") == "it was ***"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (None, "there is no Airflow connection 'schemas' (source.registry); add it with:"),
        (
            {"host": "http://127.0.0.1:1"},
            "no answer from the schema registry at http://127.0.0.1:1; check that it runs",
        ),
        ({"host": "http://r", "extra": {"verify": False}}, "source.registry: expected url, basic.auth.user.info, ssl."),
    ],
)
def test_the_doctor_names_a_registry_that_cannot_be_asked(
    call: Call,
    context: Context,
    orders: Path,
    brokers: Brokers,
    connection: AddConnection,
    fields: dict[str, Any] | None,
    message: str,
) -> None:
    orders.write_text(orders.read_text().replace("[orders]", "[orders], registry: schemas"))
    brokers.settings = {"retention.ms": "-1", "message.timestamp.after.max.ms": "3600000"}
    if fields is not None:
        connection("schemas", "http", fields.pop("extra", {}), **fields)
    shown = call("doctor", "orders", "-o", "json", code=1)
    problems = {c["name"]: c["found"] for c in shown.json[0]["checks"] if c["state"] == "problem"}
    assert message in problems["schema registry"]
