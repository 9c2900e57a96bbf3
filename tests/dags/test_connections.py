"""Airflow connections as endpoints: what is taken, what is left out, and what the errors say."""

import base64
import json
import shlex
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from airflow.providers.amazon.aws.hooks.base_aws import BaseSessionFactory
from airflow.sdk import Connection
from airflow.sdk._shared.secrets_masker import SecretsMasker, _secrets_masker
from airflow.sdk.exceptions import AirflowNotFoundException

from kafka_archiver.config import Archive
from kafka_archiver.config.encryption import Encryption
from kafka_archiver.jobs.archive import ArchiveJob
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.orchestration.connections import NamedConnection, endpoints, find_connection, lookup
from kafka_archiver.orchestration.connections.aws import aws_options
from kafka_archiver.orchestration.connections.kafka import kafka_properties
from kafka_archiver.store.options import S3Options
from tests.dags.conftest import SECRET, AddConnection, MakeArchive

pytestmark = pytest.mark.dags


def test_the_default_connections_become_endpoints(archive: MakeArchive, local_connections: None) -> None:
    resolved = endpoints(archive())
    assert resolved.kafka == {
        "bootstrap.servers": "broker:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": SECRET,
    }
    assert resolved.store == {
        "region_name": "eu-central-1",
        "aws_access_key_id": "AKIDEXAMPLE",
        "aws_secret_access_key": SECRET,
    }
    assert Endpoints.from_json(resolved.to_json()) == resolved


def test_mappings_in_the_yaml_need_no_connection(archive: MakeArchive) -> None:
    configured = Archive.model_validate(
        {
            "archive": "orders",
            "source": {"topics": ["t"], "kafka": {"bootstrap.servers": "b:1", "socket.keepalive.enable": True}},
            "store": {"url": "s3://b/p", "aws": {"endpoint_url": "http://s3:1", "verify": False}},
        }
    )
    resolved = endpoints(configured)
    assert resolved.kafka == {"bootstrap.servers": "b:1", "socket.keepalive.enable": "true"}
    assert resolved.store == {"endpoint_url": "http://s3:1", "verify": "false"}


def test_a_connection_shared_with_consumers_and_producers_lends_only_what_a_client_needs() -> None:
    foreign_keys = {
        "group.id": "somebody-else",
        "group.instance.id": "1",
        "enable.auto.commit": True,
        "auto.offset.reset": "latest",
        "isolation.level": "read_uncommitted",
        "session.timeout.ms": 6000,
        "max.poll.interval.ms": 6000,
        "partition.assignment.strategy": "range",
        "acks": "all",
        "linger.ms": 5,
        "compression.type": "zstd",
        "enable.idempotence": True,
        "transactional.id": "x",
        "delivery.timeout.ms": 1,
        "error_cb": "some.module.function",
    }
    own_keys = {
        "bootstrap.servers": "b:1",
        "client.id": "airflow",
        "security.protocol": "SSL",
        "ssl.ca.location": "/etc/ca.pem",
        "socket.timeout.ms": 10000,
        "sasl.jaas.config": "for Java",
        "fetch.message.max.bytes": 1,
    }
    assert kafka_properties({**foreign_keys, **own_keys}, "x") == {name: str(value) for name, value in own_keys.items()}


def test_a_kafka_connection_without_brokers_is_refused(archive: MakeArchive, connection: AddConnection) -> None:
    connection("kafka_default", "kafka", {"group.id": "x"})
    with pytest.raises(
        ConfigError, match=r"extra of Airflow connection 'kafka_default' \(source.kafka\) has no `bootstrap.servers`"
    ):
        endpoints(archive())


def test_a_python_callback_cannot_travel_to_spark() -> None:
    with pytest.raises(ConfigError, match=r"`oauth_cb`.*expected `sasl.oauthbearer.method: oidc`"):
        kafka_properties({"bootstrap.servers": "b:1", "oauth_cb": "m.f"}, "x")


@pytest.mark.parametrize("reader", ["native", "spark"])
def test_what_java_cannot_do_is_refused_before_anything_is_planned(
    archive: MakeArchive, local_connections: None, connection: AddConnection, reader: str
) -> None:
    azure = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
    }
    connection("kafka_default", "kafka", {"bootstrap.servers": "b:1", **azure})
    orders = archive()
    orders = orders.model_copy(update={"source": orders.source.model_copy(update={"reader": reader})})
    if reader == "spark":
        with pytest.raises(ConfigError, match=r"OAUTHBEARER.*found no client\.id, no client\.secret"):
            endpoints(orders)
    else:
        assert endpoints(orders).kafka == {"bootstrap.servers": "b:1", **azure}


def test_an_empty_aws_connection_leaves_the_credentials_to_boto3(
    archive: MakeArchive, local_connections: None, connection: AddConnection
) -> None:
    connection("aws_default", "aws")
    assert endpoints(archive()).store == {}


KEYS = {"aws_access_key_id": "K", "aws_secret_access_key": "S"}
S3 = {"endpoint_url": "http://s3:1"}
ROLE = {"role_arn": "arn:r", "region_name": "r", "profile_name": "p"}


@pytest.mark.parametrize(
    ("login", "extra", "expected"),
    [
        (("K", "S"), {}, KEYS),
        ((None, None), {**KEYS, "aws_session_token": "T"}, {**KEYS, "aws_session_token": "T"}),
        # As the provider does: the login goes before the extra.
        (("K", "S"), {"aws_access_key_id": "other", "aws_secret_access_key": "other"}, KEYS),
        ((None, None), S3, S3),
        ((None, None), {"endpoint_url": "http://all:1", "service_config": {"s3": S3}}, S3),
        ((None, None), {"service_config": {"sts": {"endpoint_url": "http://sts:1"}}}, {}),
        ((None, None), {**ROLE, "assume_role_kwargs": {"ExternalId": "E"}}, {**ROLE, "external_id": "E"}),
        (
            (None, None),
            {**ROLE, "assume_role_kwargs": {"DurationSeconds": 900, "RoleSessionName": "s"}},
            {**ROLE, "role_parameters": '{"DurationSeconds": 900, "RoleSessionName": "s"}'},
        ),
        (
            (None, None),
            # An endpoint for all services is not one for tokens, and one of STS alone is.
            {**ROLE, "endpoint_url": "http://all:1", "service_config": {"sts": {"endpoint_url": "http://sts:1"}}},
            {**ROLE, "endpoint_url": "http://all:1", "sts_endpoint_url": "http://sts:1"},
        ),
        (
            (None, None),
            {
                "role_arn": "arn:r",
                "assume_role_method": "assume_role_with_web_identity",
                "assume_role_with_web_identity_federation": "file",
                "assume_role_with_web_identity_token_file": "/var/token",
            },
            {"role_arn": "arn:r", "web_identity_token_file": "/var/token"},
        ),
        ((None, None), {"config_kwargs": {"s3": {"addressing_style": "path"}}}, {"addressing_style": "path"}),
        ((None, None), {"verify": False}, {"verify": "false"}),
        ((None, None), {"verify": "/etc/ca.pem"}, {"verify": "/etc/ca.pem"}),
    ],
)
def test_an_aws_connection_means_what_the_amazon_provider_means_by_it(
    login: tuple[str | None, str | None], extra: dict[str, Any], expected: dict[str, str]
) -> None:
    connection = Connection(conn_id="a", conn_type="aws", login=login[0], password=login[1], extra=json.dumps(extra))
    options = aws_options(connection, "x")
    assert options == expected
    S3Options.parse(options)


class Federated(BaseSessionFactory):
    """A company's own way to get credentials."""

    def create_session(self, deferrable: bool = False) -> boto3.Session:
        return boto3.Session("TemporaryKey", "TemporarySecret", "TemporaryToken")


def test_a_way_that_only_airflow_knows_gives_temporary_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__AWS__SESSION_FACTORY", f"{__name__}.Federated")
    options = aws_options(Connection(conn_id="a", conn_type="aws", extra='{"region_name": "r"}'), "x")
    assert options == {
        "region_name": "r",
        "aws_access_key_id": "TemporaryKey",
        "aws_secret_access_key": "TemporarySecret",
        "aws_session_token": "TemporaryToken",
    }


@pytest.mark.parametrize(
    ("extra", "kind", "message"),
    [
        ({"role_arn": "arn:r", "assume_role_method": "by_magic"}, ConfigError, "x: .* assume_role_method 'by_magic'"),
        # Without the federation's own packages and services.
        (
            {"role_arn": "arn:r", "assume_role_method": "assume_role_with_saml", "assume_role_with_saml": {}},
            TransientError,
            "x: the amazon provider got no credentials .*; expected that assume_role_with_saml works in this Airflow",
        ),
        (
            {
                "role_arn": "arn:r",
                "assume_role_method": "assume_role_with_web_identity",
                "assume_role_with_web_identity_federation": "file",
            },
            ConfigError,
            "x: expected `assume_role_with_web_identity_token_file`",
        ),
    ],
)
def test_what_the_provider_cannot_do_is_an_error(
    extra: dict[str, Any], kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_WEB_IDENTITY_TOKEN_FILE", raising=False)
    with pytest.raises(kind, match=message):
        aws_options(Connection(conn_id="a", conn_type="aws", extra=json.dumps(extra)), "x")


def test_a_key_of_the_customer_is_the_password_of_a_connection(
    archive: MakeArchive, local_connections: None, connection: AddConnection
) -> None:
    encrypted = archive().store.model_copy(
        update={"encryption": Encryption.model_validate({"sse-c": {"connection": "customer_key"}})}
    )
    orders = archive().model_copy(update={"store": encrypted})
    with pytest.raises(ConfigError, match=r"'customer_key' \(store.encryption.sse-c.connection\); add it with"):
        endpoints(orders)
    connection("customer_key", "generic")
    with pytest.raises(ConfigError, match="has no password; expected 32 random bytes in base64"):
        endpoints(orders)
    key = base64.b64encode(b"The customer's own key, secretly").decode()
    connection("customer_key", "generic", password=key)
    resolved = endpoints(orders)
    assert resolved.store["sse_customer_secret"] == key
    assert _secrets_masker().redact(f"error: {key}!") == "error: ***!"
    # The document of the job is an argument, which everybody may read.
    assert key not in ArchiveJob.of(orders, ["r"]).to_argument()
    assert ("sse_customer", "true") in ArchiveJob.of(orders, ["r"]).requests


def test_what_the_store_refuses_names_the_connection(
    archive: MakeArchive, local_connections: None, connection: AddConnection
) -> None:
    connection("aws_default", "aws", login="KEY")
    with pytest.raises(
        ConfigError, match=r"Airflow connection 'aws_default' \(store.aws\): .* expected both or neither"
    ):
        endpoints(archive())


def test_a_missing_connection_is_named_with_its_key(archive: MakeArchive, connection: AddConnection) -> None:
    with pytest.raises(ConfigError, match=r"there is no Airflow connection 'kafka_default' \(source.kafka\); add it"):
        endpoints(archive())
    # This one may be added empty.
    connection("kafka_default", "kafka", {"bootstrap.servers": "b:1"})
    with pytest.raises(ConfigError, match=r"'aws_default' \(store.aws\)[\s\S]*without login and password the"):
        endpoints(archive())


def test_a_connection_of_another_type_is_refused(archive: MakeArchive, connection: AddConnection) -> None:
    connection("kafka_default", "http", host="broker")
    with pytest.raises(ConfigError, match=r"'kafka_default' \(source.kafka\) is of type 'http'; expected 'kafka'"):
        endpoints(archive())


@pytest.mark.parametrize("kind", ["kafka", "aws", "spark", "generic", "http", "smtp"])
def test_the_command_in_the_message_is_one_that_airflow_takes(kind: str) -> None:
    from airflow.cli.cli_parser import get_parser

    words = shlex.split(NamedConnection("some_id", "x.y", (kind,)).command)
    parsed = get_parser().parse_args(words[1:])
    assert (parsed.conn_id, parsed.conn_type) == ("some_id", kind)
    json.loads(parsed.conn_extra or "{}")


def test_with_a_secrets_backend_a_missing_connection_may_be_an_outage(
    connection: AddConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SimpleNamespace(get=lambda section, key, fallback=None: "some.Backend" if key == "backend" else fallback)
    monkeypatch.setattr("kafka_archiver.orchestration.connections.lookup.conf", settings)
    with pytest.raises(TransientError, match="or check that Airflow's secrets backend answers"):
        find_connection(NamedConnection("nobody_has_this", "source.kafka", ("kafka",)))


def test_a_task_believes_only_the_second_answer_that_there_is_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None, Connection(conn_id="brokers", conn_type="kafka"), None, None])

    def get(conn_id: str) -> Connection:
        if answer := next(answers):
            return answer
        raise AirflowNotFoundException(conn_id)

    monkeypatch.setattr(lookup, "_in_task", lambda: True)
    monkeypatch.setattr(lookup, "AGAIN_SECONDS", 0)
    monkeypatch.setattr(lookup, "Connection", SimpleNamespace(get=get))
    brokers = NamedConnection("brokers", "source.kafka", ("kafka",))
    assert find_connection(brokers).conn_type == "kafka"
    with pytest.raises(ConfigError, match="there is no Airflow connection 'brokers'"):
        find_connection(brokers)


def test_secrets_are_kept_out_of_logs(
    archive: MakeArchive, local_connections: None, connection: AddConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    masker: SecretsMasker = _secrets_masker()
    odd = 'pem with "quotes" and\nlines'
    connection("kafka_default", "kafka", {"bootstrap.servers": "broker:9092", "ssl.key.pem": odd})
    resolved = endpoints(archive())
    assert masker.redact(f"error: {odd}!") == "error: ***!"
    shown = str(masker.redact(resolved.to_json()))
    assert SECRET not in shown
    assert "quotes" not in shown
    assert SECRET not in repr(resolved)
    assert masker.redact("no answer from broker:9092") == "no answer from broker:9092"


@pytest.mark.parametrize(
    "name", ["sasl.oauthbearer.client.secret", "sasl.oauthbearer.assertion.private.key.passphrase", "sasl.jaas.config"]
)
def test_secrets_in_the_yaml_are_kept_out_of_logs_too(archive: MakeArchive, local_connections: None, name: str) -> None:
    orders, secret = archive(), f"s-ec-ret of {name}"
    kafka = {"bootstrap.servers": "b:1", name: secret}
    endpoints(orders.model_copy(update={"source": orders.source.model_copy(update={"kafka": kafka})}))
    assert _secrets_masker().redact(f"error: {secret}!") == "error: ***!"


def test_master_keys_are_the_password_of_a_connection_and_those_before_it(
    archive: MakeArchive, local_connections: None, connection: AddConnection
) -> None:
    def archive_with(**client: object) -> Archive:
        encryption = Encryption.model_validate({"client": client})
        return archive().model_copy(update={"store": archive().store.model_copy(update={"encryption": encryption})})

    orders = archive_with(connection="master_key")
    with pytest.raises(ConfigError, match=r"'master_key' \(store.encryption.client.connection\); add it with"):
        endpoints(orders)
    new, old, older = (base64.b64encode(n * 32).decode() for n in (b"1", b"2", b"3"))
    connection("master_key", "generic", {"previous_secrets": old}, password=new)
    with pytest.raises(ConfigError, match="has `previous_secrets` in its extra that is not a list of texts"):
        endpoints(orders)
    connection("master_key", "generic", {"previous_secrets": [old, older]}, password=new)
    resolved = endpoints(orders)
    assert resolved.master_keys == {"secret": new, "previous_secrets": f"{old} {older}"}
    for secret in (new, old, older):
        assert _secrets_masker().redact(f"error: {secret}!") == "error: ***!"
        assert secret not in repr(resolved) + ArchiveJob.of(orders, ["r"]).to_argument()
    assert endpoints(archive_with(kms_key_id="alias/a", previous="master_key")).master_keys == {
        "kms_key_id": "alias/a",
        "previous_secrets": f"{new} {old} {older}",
    }
    assert endpoints(archive()).master_keys == {}
