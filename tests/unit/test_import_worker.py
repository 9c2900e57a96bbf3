"""Converters that only a connector's worker knows, and connectors in YAML."""

import json

import pytest
import yaml

from kafka_archiver.imports.reading import documents_of, read_keys
from kafka_archiver.imports.worker import merged, worker_keys
from kafka_archiver.messages.errors import ConfigError

AVRO = {"key.converter": "K", "value.converter": "V", "value.converter.schema.registry.url": "http://registry:8081"}
COMPOSE = """
services:
  broker:
    environment: {KAFKA_BROKER_ID: 1}
  connect:
    image: connect
    environment:
      CONNECT_KEY_CONVERTER: K
      CONNECT_VALUE_CONVERTER: V
      CONNECT_VALUE_CONVERTER_SCHEMA_REGISTRY_URL: 'http://registry:8081'
      CONNECT_REPLICATION_FACTOR: 1
"""
LISTED = """
services:
  connect:
    environment:
      - KEY_CONVERTER=K
      - VALUE_CONVERTER=V
      - VALUE_CONVERTER_SCHEMA_REGISTRY_URL=http://registry:8081
"""
DEPLOYMENT = """
kind: Deployment
spec: {template: {spec: {containers: [{name: connect, env: [
  {name: CONNECT_KEY_CONVERTER, value: K}, {name: CONNECT_VALUE_CONVERTER, value: V},
  {name: CONNECT_VALUE_CONVERTER_SCHEMA_REGISTRY_URL, value: "http://registry:8081"},
  {name: PASSWORD, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]}}}
"""
STRIMZI = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnect
metadata: {name: connect}
spec:
  replicas: 1
  config:
    group.id: connect
    key.converter: K
    value.converter: V
    value.converter.schema.registry.url: http://registry:8081
"""


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"{key}={value}" for key, value in AVRO.items()) + "\nbootstrap.servers=a:9092\n",
        json.dumps(AVRO | {"plugin.path": "/usr"}),
        "export CONNECT_KEY_CONVERTER=K\nexport CONNECT_VALUE_CONVERTER=V\n"
        "CONNECT_VALUE_CONVERTER_SCHEMA_REGISTRY_URL=http://registry:8081\n",
        COMPOSE,
        LISTED,
        DEPLOYMENT,
        STRIMZI,
    ],
    ids=["properties", "json", "variables", "compose", "list", "deployment", "strimzi"],
)
def test_a_worker_s_converters_are_found(text: str) -> None:
    assert worker_keys(text, "worker") == AVRO


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bootstrap.servers=a:9092", "expected the configuration of a Kafka Connect worker; found no value.converter"),
        (COMPOSE + "  other:\n    environment: {CONNECT_VALUE_CONVERTER: W}\n", "expected one worker; found 2"),
        ("kind: X\nmetadata: [", "w: not YAML"),
    ],
)
def test_what_is_no_worker_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        worker_keys(text, "w")


def test_a_connector_s_own_converter_counts_more_and_its_options_without_one_count_nothing() -> None:
    worker = AVRO | {"value.converter.schemas.enable": "true"}
    own = {"value.converter": "Own", "value.converter.x": "1", "key.converter.schemas.enable": "false"}
    assert merged(own, worker) == {"value.converter": "Own", "value.converter.x": "1", "key.converter": "K"}
    assert merged({"value.converter.schemas.enable": "false"}, worker)["value.converter.schemas.enable"] == "true"


CONNECTOR = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata:
  name: orders
  labels: {strimzi.io/cluster: connect}
spec:
  class: io.confluent.connect.s3.S3SinkConnector
  tasksMax: 2
  state: running
  autoRestart: {enabled: true}
  config:
    topics: orders
    flush.size: 1000
    store.kafka.keys: true
    path.format: "'year'=YYYY"
    timezone: UTC
    s3.part.size: 05242880
"""
OF_CONNECTOR = {
    "name": "orders",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "tasks.max": "2",
    "topics": "orders",
    "flush.size": "1000",
    "store.kafka.keys": "true",
    "path.format": "'year'=YYYY",
    "timezone": "UTC",
    # As it is written: YAML would make another number of it.
    "s3.part.size": "05242880",
}


def keys_of(text: str, file: str = "file") -> list[dict[str, str]]:
    return [read_keys(document, file) for document in documents_of(text, file)]


def test_a_resource_of_strimzi_is_a_connector() -> None:
    assert keys_of(CONNECTOR) == [OF_CONNECTOR]
    assert read_keys(CONNECTOR, "file") == OF_CONNECTOR
    # `kubectl get kafkaconnector -o json` and `-o yaml`.
    items = list(yaml.safe_load_all(CONNECTOR.replace("05242880", "'05242880'")))
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    assert keys_of(json.dumps(listed)) == [OF_CONNECTOR]
    assert keys_of(yaml.dump(listed)) == [OF_CONNECTOR]
    other = CONNECTOR.replace("name: orders", "name: returns").replace("  state: running", "  newer: thing")
    by_name = keys_of(f"---{CONNECTOR}---{STRIMZI}---{other}")
    assert [keys["name"] for keys in by_name] == ["orders", "returns"]
    # What is not known of a resource is a key that gets a note.
    assert by_name[1]["spec.newer"] == "thing"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: Connector\nspec: {name: n, class: C, taskMax: 4, configs: {topics: t}}",
         [{"name": "n", "connector.class": "C", "tasks.max": "4", "topics": "t"}]),
        ("name: n\nconfig:\n  connector.class: C\n  topics: t\n",
         [{"name": "n", "connector.class": "C", "topics": "t"}]),
        ("connectors:\n  - name: a\n    config: {connector.class: C}\n  - name: b\n    config: {connector.class: D}\n",
         [{"name": "a", "connector.class": "C"}, {"name": "b", "connector.class": "D"}]),
        ("connector.class: \"C\"\nfile.delim: '-'\n", [{"connector.class": "C", "file.delim": "-"}]),
        ("connector:\n  class: C\n  more:\n    keys: [a, b]\n",
         [{"connector.class": "C", "connector.more.keys": "a,b"}]),
        ("1: {config: {connector.class: C, topics: [a, b], transforms: {t: {type: T}}}, name: n}\n-x: y\n---\n",
         [{"name": "n", "connector.class": "C", "topics": "a,b", "transforms.t.type": "T"}]),
        ("a.b: c # comment\nd.e: f#g\n", [{"a.b": "c", "d.e": "f#g"}]),
        # Profiles: each is a connector.
        ("connector.class: C\ntopics: \"dev\"\n---\nconnector.class: C\ntopics: \"prod\"\n",
         [{"connector.class": "C", "topics": "dev"}, {"connector.class": "C", "topics": "prod"}]),
        ("---\nbase: &b {connector.class: C}\nprod: {<<: *b, topics: t}\n",
         [{"connector.class": "C"}, {"connector.class": "C", "topics": "t"}]),
    ],
)  # fmt: skip
def test_connectors_in_yaml(text: str, expected: list[dict[str, str]]) -> None:
    assert keys_of(text) == expected


@pytest.mark.parametrize(
    "text", ["a.b: c\nd=e", "a.b: c\nd.e: 'f", "# only\nname : n\nconnector.class C\n", "a=1:\n b"]
)
def test_properties_are_no_yaml(text: str) -> None:
    assert documents_of(text, "file") == [text]


LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (COMPOSE, "services of Docker Compose: their environment is the worker's, which --worker takes"),
        (STRIMZI, "found resources of the kind KafkaConnect"),
        (
            'resource "aws_mskconnect_connector" "s3" {\n  connector_configuration = {\n',
            "found Terraform: give the mapping",
        ),
        ("#!/bin/sh\ncurl -X PUT x -d '{}'\n", "found a shell script: give the mapping"),
        ("---\n- 1\n", "found 1 documents without connector.class"),
        ("kind: KafkaConnector\nspec: {{ .Values.spec }}\n", "not YAML.*a template .* has to be rendered first"),
        ("---\na: 1\na: 2\n", "line 3: key `a` is given twice"),
        ("---\n" + LAUGHS, "expected at most 100000 values"),
        ("---\na: !!python/object:os.system x\n", "not YAML"),
        ("---\na: " + "[" * 5000, "not YAML"),
        ("---\na: " + "{b: " * 200 + "1" + "}" * 200, "expected at most 100000 values, 100 deep"),
    ],
)
def test_a_yaml_that_has_no_connector_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        keys_of(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name=a\nconnector.class=C\nname=b\nconnector.class=C\n", "expected one connector; found `name` twice"),
        ("name=a\n#---\nspring.config.activate.on-profile=prod\ntopics=b\n", "found several, divided by #---"),
    ],
)
def test_two_configurations_in_one_file_of_properties_are_an_error(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_keys(text, "file")
    assert read_keys("name=a\ntopics=a\ntopics=b\nname=a\n", "file") == {"name": "a", "topics": "b"}


def test_a_connector_has_one_name() -> None:
    with pytest.raises(ConfigError, match="expected one name of the connector; found 'a', and 'b' in its config"):
        read_keys('{"name": "a", "config": {"name": "b"}}', "file")
    assert read_keys('{"name": "a", "config": {"name": "a"}}', "file") == {"name": "a"}


def test_no_value_of_a_yaml_is_in_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        keys_of("---\npassword: hunter2: x\n")
    assert "hunter2" not in str(caught.value)


def test_a_key_that_is_no_text_is_one() -> None:
    assert keys_of("---\nconnector.class: C\n1: a\ntrue: b\nnull: c\n")[0]["1"] == "a"
