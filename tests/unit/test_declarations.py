"""Archives that environment variables describe."""

from pathlib import Path
from typing import Any

import pytest

from kafka_archiver.config import Archive, declarations, parse_archive
from kafka_archiver.messages.errors import ConfigError

SMALLEST = {"ARCHIVE": "orders", "SOURCE__TOPICS": "orders", "STORE__URL": "s3://archive/lake"}
YAML = "archive: orders\nsource: {topics: [orders]}\nstore: {url: s3://archive/lake}\n"


def described(folder: Path, prefix: str = "ARCHIVER_", **more: str) -> Archive:
    environ = {f"{prefix}{name}": value for name, value in {**SMALLEST, **more}.items()}
    [declaration] = declarations(folder / "none", environ)
    return declaration.load()


def complaint(folder: Path, **more: str) -> str:
    with pytest.raises(ConfigError) as caught:
        described(folder, **more)
    return str(caught.value)


def test_three_variables_are_an_archive(tmp_path: Path) -> None:
    assert described(tmp_path) == parse_archive(YAML, "x")
    assert described(tmp_path).file == "environment variables ARCHIVER_*"


@pytest.mark.parametrize(
    ("name", "value", "yaml"),
    [
        ("RETRIES", "7", "retries: 7"),
        ("SCHEDULE", "null", "schedule: null"),
        ("SCHEDULE", "0 5 * * *", "schedule: 0 5 * * *"),
        ("TAGS", "a, b", "tags: [a, b]"),
        ("TAGS", "['a, b']", "tags: ['a, b']"),
        # In a variable, `${` is itself.
        ("DESCRIPTION", "[a] ${c}", "description: '[a] $${c}'"),
        ("DESCRIPTION", "7", "description: '7'"),
        ("POLICIES__LOST_OFFSETS", "record_loss", "policies: {lost_offsets: record_loss}"),
        ("TIMESTAMP__MAX_DISORDER", "5m", "timestamp: {max_disorder: 5m}"),
        ("SPARK__CONF", '{"spark.cores.max": 2, "a": "${b}"}', "spark: {conf: {spark.cores.max: 2, a: '$${b}'}}"),
        ("ALERTS__ON_FAILURE", "a,b", "alerts: {on_failure: [a, b]}"),
        ("STORE__ENCRYPTION", "sse-s3", "store: {url: s3://archive/lake, encryption: sse-s3}"),
        (
            "STORE__ENCRYPTION__SSE_KMS__KEY_ID",
            "k",
            "store: {url: s3://archive/lake, encryption: {sse-kms: {key_id: k}}}",
        ),
        ("POLICIES", "{null_value: skip}", "policies: {null_value: skip}"),
        ("STORE__LAYOUT__NAME", "daily", "store: {url: s3://archive/lake, layout: {name: daily}}"),
        ("STORE__LAYOUT__PATH", "{topic}", "store: {url: s3://archive/lake, layout: {path: '{topic}'}}"),
        (
            "STORE__LAYOUT__FIELDS",
            "header.a, header.b",
            "store: {url: s3://archive/lake, layout: {fields: [header.a, header.b]}}",
        ),
        (
            "STORE__AWS__ENDPOINT_URL",
            "http://a:1",
            "store: {url: s3://archive/lake, aws: {endpoint_url: 'http://a:1'}}",
        ),
        ("STORE__TAGS__TEAM", "data", "store: {url: s3://archive/lake, tags: {team: data}}"),
        ("TRANSFORM__MAPPER__MODULES", "a,b", "transform: {mapper: {function: m:f, modules: [a, b]}}"),
    ],
)
def test_a_variable_is_a_key_of_the_yaml(tmp_path: Path, name: str, value: str, yaml: str) -> None:
    expected = YAML[: YAML.index("store:")] + yaml if yaml.startswith("store:") else YAML + yaml
    more = {"TRANSFORM__MAPPER__FUNCTION": "m:f"} if name.startswith("TRANSFORM") else {}
    assert described(tmp_path, **more, **{name: value}) == parse_archive(expected, "x")


@pytest.mark.parametrize("pattern", ["[a-z]+", "{2}", "a,b", "orders$"])
def test_a_pattern_is_text_whatever_it_begins_with(tmp_path: Path, pattern: str) -> None:
    environ = {"ARCHIVER_ARCHIVE": "o", "ARCHIVER_SOURCE__PATTERN": pattern, "ARCHIVER_STORE__URL": "s3://a/b"}
    try:
        assert declarations(tmp_path, environ)[0].load().source.pattern == pattern
    except ConfigError as error:
        assert "a regular expression in `pattern`" in str(error)  # noqa: PT017


def test_keys_of_one_section_may_be_in_several_variables(tmp_path: Path) -> None:
    more = {"SOURCE__VALUE": "{decode: json}", "SOURCE__VALUE__SCHEMA": "infer", "SOURCE__REGISTRY": "apicurio"}
    source = described(tmp_path, **more).source
    assert (source.value.decode, source.value.infers, source.registry) == ("json", True, "apicurio")


def test_properties_of_clients_have_dots(tmp_path: Path) -> None:
    more = {"SOURCE__KAFKA__BOOTSTRAP_SERVERS": "a:1", "SOURCE__KAFKA__SSL_CA_LOCATION": "/ca"}
    assert described(tmp_path, **more).source.kafka == {"bootstrap.servers": "a:1", "ssl.ca.location": "/ca"}
    more = {"SOURCE__HEADERS__N__DECODE": "json", "SOURCE__HEADERS__N__SCHEMA": "infer", "STORE__LAYOUT__ZERO": "1"}
    assert "ARCHIVER_STORE__LAYOUT__ZERO: `store.layout.zero` is not a key" in complaint(tmp_path, **more)


def test_the_schema_of_a_variable_is_a_file_in_the_folder_of_archives(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "orders.avsc").write_text('{"type": "record", "name": "O", "fields": []}')
    more = {"SOURCE__VALUE__DECODE": "avro", "SOURCE__VALUE__SCHEMA": "orders.avsc", "STORE__FORMAT": "avro"}
    document = described(tmp_path, **more).source.value.declared_schema
    assert document
    assert document.kind == "AVRO"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"RETRY": "1"}, "environment variables ARCHIVER_*: ARCHIVER_RETRY: `retry` is not a key of an archive"),
        ({"SOURCE__TOPIC": "a"}, "ARCHIVER_SOURCE__TOPIC: `source.topic` is not a key of an archive"),
        ({"SPARK__CONF__X": "a"}, "ARCHIVER_SPARK__CONF__X: `spark.conf` has no keys with variables of their own"),
        ({"RETRIES": "hunter2"}, "`retries`: expected a whole number; found the value of ARCHIVER_RETRIES (not shown"),
        ({"SPARK__CONF": "{a: [hunter2]}"}, "`spark.conf.a`: expected text, a number, true or false; found the value"),
        ({"SPARK__CONF": "{hunter2"}, "ARCHIVER_SPARK__CONF: not YAML: "),
        (
            {"STORE__URL": "s3://key:hunter2@a/b"},
            "expected s3://bucket/prefix or az://container/prefix, without credentials (they belong into",
        ),
        ({"SOURCE": "orders"}, "ARCHIVER_SOURCE__TOPICS: `source.topics` is given twice, by another variable too"),
        ({"SOURCE": "{topics: [a]}"}, "ARCHIVER_SOURCE__TOPICS: `source.topics` is given twice"),
        ({"ARCHIVE": ""}, "`archive`: expected text that matches pattern"),
    ],
)
def test_a_mistake_names_the_variable(tmp_path: Path, more: dict[str, str], message: str) -> None:
    complained = complaint(tmp_path, **more)
    assert message in complained
    assert "hunter2" not in complained


def test_every_archive_has_a_prefix(tmp_path: Path) -> None:
    (tmp_path / "yaml.yaml").write_text(YAML)
    environ = {"ARCHIVER_PREFIXES": "EU_, EU_OLD_ ,ARCHIVER_US_", "UNRELATED": "x"}
    for prefix in ("ARCHIVER_", "EU_", "EU_OLD_", "ARCHIVER_US_"):
        environ |= {f"{prefix}{name}": value for name, value in SMALLEST.items()}
        environ[f"{prefix}ARCHIVE"] = prefix.lower() + "x"
    archives = {str(declaration.file): declaration.load().archive for declaration in declarations(tmp_path, environ)}
    assert archives == {
        str(tmp_path / "yaml.yaml"): "orders",
        "environment variables ARCHIVER_*": "archiver_x",
        "environment variables EU_*": "eu_x",
        "environment variables EU_OLD_*": "eu_old_x",
        "environment variables ARCHIVER_US_*": "archiver_us_x",
    }


def test_a_prefix_without_variables_is_a_mistake(tmp_path: Path) -> None:
    [declaration] = declarations(tmp_path, {"ARCHIVER_PREFIXES": "EU_"})
    with pytest.raises(ConfigError, match=r"environment variables EU_\*: `archive` is required"):
        declaration.load()


def test_half_an_archive_is_a_mistake_and_variables_of_kubernetes_are_none(tmp_path: Path) -> None:
    service = {
        "ARCHIVER_SERVICE_HOST": "10.0.0.1",
        "ARCHIVER_SERVICE_PORT": "80",
        "ARCHIVER_SERVICE_PORT_HTTP": "80",
        "ARCHIVER_PORT": "tcp://10.0.0.1:80",
        "ARCHIVER_PORT_80_TCP_ADDR": "10.0.0.1",
    }
    assert declarations(tmp_path, service | {"ARCHIVER_CONFIG_DIR": str(tmp_path)}) == []
    assert described(tmp_path, **{name.removeprefix("ARCHIVER_"): value for name, value in service.items()})
    [declaration] = declarations(tmp_path, service | {"ARCHIVER_SOURCE__TOPICS": "a"})
    with pytest.raises(ConfigError, match="`archive` is required"):
        declaration.load()


@pytest.mark.parametrize("chosen", [True, False])
def test_a_folder_that_was_chosen_must_be_there(tmp_path: Path, chosen: bool) -> None:
    environ: dict[str, Any] = {f"ARCHIVER_{name}": value for name, value in SMALLEST.items()}
    if chosen:
        with pytest.raises(ConfigError, match="no such folder"):
            declarations(tmp_path / "none", environ | {"ARCHIVER_CONFIG_DIR": str(tmp_path / "none")})
    else:
        assert len(declarations(tmp_path / "none", environ)) == 1
