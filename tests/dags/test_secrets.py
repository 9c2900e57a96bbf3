"""Airflow's store and pages, and the commands' output: never what may be a secret."""

import json
import traceback
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk._shared.secrets_masker import SecretsMasker, _secrets_masker
from airflow.serialization.serialized_objects import DagSerialization

from kafka_archiver.config import parse_archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.dags.audit import audit_dag
from tests.dags.conftest import AddConnection, Call, MakeArchive, dag_of, load
from tests.support.places import mappings, with_value

pytestmark = pytest.mark.dags
MARK = "Geheim77"
SMALLEST: dict[str, Any] = {
    "archive": "orders",
    "source": {"topics": ["t"]},
    "store": {"url": "s3://bucket/lake"},
    "alerts": {"on_failure": ["ops"]},
}
PROPERTIES = {
    "some.password": MARK,
    "harmless": f"https://{MARK}:{MARK}@host/?{MARK}#{MARK}",
    "token": f"{{{{ conn.other.password }}}} {MARK}",
}
WRONG = {
    "list": with_value(SMALLEST, ("source", "kafka"), {"sasl.password": [MARK]}),
    "kind": with_value(SMALLEST, ("store", "aws"), [MARK]),
    "url": with_value(SMALLEST, ("store", "url"), f"s3://key:{MARK}@bucket"),
    "endpoint": with_value(SMALLEST, ("store", "aws"), {"endpoint_url": f"http://u:{MARK}@host"}),
    "key": with_value(SMALLEST, ("source", f"password:{MARK}"), MARK),
}
TEXTS = {
    **{name: json.dumps(yaml) for name, yaml in WRONG.items()},
    "broken": f"archive: [{MARK}\n",
    "alias": f"archive: *{MARK}\n",
    "number": f"archive: !!int {MARK}\n",
    "text": f"aws_secret_access_key:{MARK}\n",
}


# The mappings of a YAML with each kind of store.
MAPPINGS = {
    "s3://bucket/lake": [key for key in mappings() if key != "store.connection"],
    "az://container/lake": [key for key in mappings() if key != "store.aws"],
}


@pytest.fixture(params=MAPPINGS)
def url(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def dags(url: str) -> list[DAG]:
    """The DAGs of an archive with secrets in every mapping that its YAML has."""
    yaml = with_value(SMALLEST, ("store", "url"), url)
    for key in MAPPINGS[url]:
        yaml = with_value(yaml, tuple(key.split(".")), PROPERTIES)
    configured = parse_archive(json.dumps(yaml), "orders.yaml")
    return [dag_of(configured), audit_dag(configured)]


def test_nothing_that_airflow_stores_or_shows_of_a_dag_has_a_property_of_a_mapping(dags: list[DAG]) -> None:
    for dag in dags:
        assert MARK not in json.dumps(DagSerialization.to_dict(dag), default=str)
        assert MARK not in f"{dag.doc_md} {dag.description} {dag.tags} {dag.params.dump()}"
        for task in dag.tasks:
            assert MARK not in str([getattr(task, field) for field in task.template_fields])


def test_the_documentation_names_each_property_that_is_given(dags: list[DAG], url: str) -> None:
    for dag in dags:
        for key in MAPPINGS[url]:
            for name in PROPERTIES:
                assert f"| `{key}.{name}` | `(given)` |" in (dag.doc_md or "")


def test_the_documentation_shows_where_brokers_store_and_registry_are(archive: MakeArchive) -> None:
    configured = archive()
    source = configured.source.model_copy(
        update={"kafka": {"bootstrap.servers": "b:1"}, "registry": {"url": f"https://u:{MARK}@r/api?{MARK}"}}
    )
    # Such a registry is refused; should it come here some other way, it is not shown either.
    text = dag_of(configured.model_copy(update={"source": source})).doc_md or ""
    assert "| `source.kafka.bootstrap.servers` | `b:1` |" in text
    assert "| `source.registry.url` | `https://r/api` |" in text


def test_an_import_error_repeats_no_secret_and_validate_says_the_same(archives: Path, call: Call) -> None:
    for name, text in TEXTS.items():
        (archives / f"{name}.yaml").write_text(text)
    error = load().import_errors["archive_errors.py"]
    assert MARK not in error
    printed = call("validate", "-o", "json", code=1)
    assert MARK not in printed.out + printed.err
    checked = {Path(c["file"]).stem: c["problems"] for c in printed.json}
    assert sorted(checked) == sorted(TEXTS)
    for name, problems in checked.items():
        assert problems
        assert all(f"{name}.yaml: {problem}" in error for problem in problems)


@pytest.mark.parametrize("command", ["list", "validate", "doctor"])
def test_no_command_prints_a_secret_of_the_yaml(
    archives: Path, connection: AddConnection, call: Call, command: str
) -> None:
    # With brokers and a store that cannot be asked, whose errors say what they were given.
    yaml = with_value(SMALLEST, ("source", "kafka"), {"bootstrap.servers": f"u:{MARK}@b:1", "sasl.password": MARK})
    yaml = with_value(yaml, ("store", "aws"), {"endpoint_url": "http://h:1", "aws_secret_access_key": MARK})
    (archives / "orders.yaml").write_text(json.dumps(yaml))
    (archives / "wrong.yaml").write_text(TEXTS["url"])
    printed = call(command, code=None)
    assert "`store.url`: expected s3://bucket/prefix" in printed.err + printed.out
    assert MARK not in printed.out + printed.err


@pytest.mark.parametrize("url", [f"https://u:{MARK}@h", f"u:{MARK}@h:1", f"http://h/?{MARK}"])
def test_a_connection_whose_endpoint_has_credentials_is_refused_without_repeating_them(
    archive: MakeArchive, local_connections: None, connection: AddConnection, url: str
) -> None:
    connection("aws_default", "aws", {"endpoint_url": url})
    with pytest.raises(ConfigError, match=r"\(store.aws\): expected `endpoint_url` like http://host:port") as caught:
        endpoints(archive())
    assert MARK not in "".join(traceback.format_exception(caught.value))


def test_brokers_with_credentials_are_refused_without_repeating_them(
    archive: MakeArchive, local_connections: None, connection: AddConnection
) -> None:
    connection("kafka_default", "kafka", {"bootstrap.servers": f"u:{MARK}@b:1"})
    with pytest.raises(ConfigError, match=r"has a user or a password in `bootstrap\.servers`") as caught:
        endpoints(archive())
    assert MARK not in str(caught.value)


def test_passwords_inside_addresses_are_kept_out_of_logs(
    archive: MakeArchive, local_connections: None, connection: AddConnection
) -> None:
    masker: SecretsMasker = _secrets_masker()
    configured = archive()
    kafka = {"bootstrap.servers": "b:1", "some.address": "http://u:swordfish7@p"}
    endpoints(configured.model_copy(update={"source": configured.source.model_copy(update={"kafka": kafka})}))
    assert masker.redact("no answer from http://u:swordfish7@p") == "no answer from http://u:***@p"
