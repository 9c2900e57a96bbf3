"""The extras of the distribution: what an archive needs, and what each brings."""

import re
import tomllib
from collections.abc import Callable

import pytest

from kafka_archiver.config import load, parse_archive
from kafka_archiver.messages.errors import ConfigError
from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DISTRIBUTIONS = {
    "google.protobuf": "protobuf",
    "grpc_tools": "grpcio-tools",
    "jsonschema_rs": "jsonschema-rs",
    "azure.storage.blob": "azure-storage-blob",
    "azure.identity": "azure-identity",
}
AVRO = "source: {topics: [t]}\nstore: {url: 's3://b/p', format: avro, content: record}"
SCHEMA = "schema: {type: object, properties: {a: {type: string}}}"


def without(extra: str) -> Callable[[str], bool]:
    return lambda module: module not in load.EXTRAS[extra]


@pytest.mark.parametrize(
    ("extra", "more", "part"),
    [
        ("avro", "source: {topics: [t], value: {decode: avro}, registry: r}", "`decode: avro` needs fastavro"),
        ("avro", AVRO, "`store.format: avro`"),
        ("protobuf", "source: {topics: [t], value: {decode: protobuf}, registry: r}", "`decode: protobuf`"),
        ("json-schema", f"source: {{topics: [t], value: {{decode: json_schema, {SCHEMA}}}}}", "`decode: json_schema`"),
    ],
)  # fmt: skip
def test_an_archive_whose_extra_is_not_installed_is_a_wrong_file_with_the_command(
    extra: str, more: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = "" if "store:" in more else "store: {url: 's3://b/p'}\n"
    text = f"archive: orders\n{store}{more}\n"
    parse_archive(text, "orders.yaml")
    monkeypatch.setattr(load, "is_installed", without(extra))
    with pytest.raises(ConfigError) as wrong:
        parse_archive(text, "orders.yaml")
    assert str(wrong.value).startswith(f"orders.yaml: {part}")
    assert str(wrong.value).endswith(f"pip install 'kafka-archiver[{extra}]'")


def test_an_archive_needs_no_extra_that_it_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "is_installed", lambda module: False)
    value = f"value: {{decode: json, {SCHEMA}}}"
    parse_archive(f"archive: a\nsource: {{topics: [t], {value}}}\nstore: {{url: 's3://b/p'}}\n", "a.yaml")


def test_the_modules_that_are_looked_for_are_those_of_the_distributions_in_pyproject() -> None:
    for extra, modules in load.EXTRAS.items():
        names = {re.split(r"[^\w.-]", line)[0] for line in PROJECT["optional-dependencies"][extra]}
        assert {DISTRIBUTIONS.get(module, module) for module in modules} == names - {"backports.zstd"}
        assert all(load.is_installed(module) for module in modules)
    assert not load.is_installed("no_such_package.module")


def test_the_executors_extra_has_all_the_others_and_none_of_them_has_airflow() -> None:
    optional = PROJECT["optional-dependencies"]
    [own] = [line for line in optional["executor"] if line.startswith("kafka-archiver[")]
    assert own == f"kafka-archiver[{','.join(sorted(load.EXTRAS))}]"
    thin = [*PROJECT["dependencies"], *optional["executor"], *(line for e in load.EXTRAS for line in optional[e])]
    assert not [line for line in thin if "airflow" in line or line.startswith("pyspark")]
