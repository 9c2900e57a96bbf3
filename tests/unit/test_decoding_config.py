"""`source.key` and `source.value`: what may be given together, and where schemas come from."""

from pathlib import Path

import pytest

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.schemas import Reference, Schema

pytestmark = pytest.mark.unit

YAML = "archive: a\nsource: {{topics: [t], {}}}\nstore: {{url: s3://b/c, {}}}\n"


def parsed(folder: Path, source: str, store: str = "content: record") -> Archive:
    return parse_archive(YAML.format(source, store), str(folder / "a.yaml"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "o.avsc").write_text('{"type": "record", "name": "O", "fields": []}')
    (tmp_path / "o.proto").write_text(
        'syntax = "proto3";\nimport "google/protobuf/any.proto";\nimport public "schemas/m.proto";\nmessage O {}\n'
    )
    (tmp_path / "schemas" / "m.proto").write_text('syntax = "proto3";\nmessage M {}\n')
    (tmp_path / "loop.proto").write_text('import "loop.proto";\n')
    (tmp_path / "no.json").write_text("{")
    (tmp_path / "no.txt").write_bytes(b"\xff")
    return tmp_path


def test_names_of_the_archiver_ask_for_no_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    # Finding them reads the metadata of all distributions, and Airflow parses all archives again and again.
    monkeypatch.delattr("kafka_archiver.messages.entry_points.entry_points")
    source = "key: {decode: bytes}, value: {decode: json, schema: infer}"
    more = "format: parquet, layout: hourly, encryption: {client: {connection: key}}}\ntransform: {steps: [{drop: a}]"
    assert parse_archive(YAML.format(source, f"content: record, {more}"), "a.yaml").source.value.decode == "json"


@pytest.mark.parametrize(
    ("source", "store", "message"),
    [
        ("value: {decode: avro}", "", "`source`: expected `registry`, or `value.schema` (a file beside the YAML), for"),
        ("value: {decode: xml}", "", "`source.value.decode`: expected 'bytes', 'string', 'json', 'avro', 'protobuf'"),
        ("value: {decode: avro, schema: none.avsc}", "", "`source.value.schema`: expected a file beside the YAML; "),
        ("value: {decode: avro, schema: no.json}", "", "expected a schema as JSON in the file no.json ("),
        ("value: {decode: avro, schema: no.txt}", "", "`source.value.schema`: expected text in UTF-8, found"),
        ("value: {decode: protobuf, schema: loop.proto}", "", "expected .proto files that do not import themselves"),
        ("value: {decode: avro, schema: [a]}", "", "expected the name of a file beside the YAML; only json and json_s"),
        ("value: {decode: string, schema: o.avsc}", "", "`source.value`: expected no `schema` with `decode: string`"),
        ("value: {decode: avro, schema: infer}", "", "expected `schema: infer` with `decode: json` only"),
        ("value: {decode: json, subject: record}", "", "expected `subject` and `subjects` with avro, protobuf, json_s"),
        ("registry: r, value: {decode: avro, subject: record}", "", "expected `subjects`, the names of the records, e"),
        ("registry: r, value: {decode: avro, subjects: [a]}", "", "expected `subjects`, the names of the records, ex"),
        ("registry: r, value: {decode: avro, subject: record, subjects: [a, a]}", "", "each name only once in `subje"),
        ("value: {decode: avro, schema: o.avsc, subject: record, subjects: [a]}", "", "`registry` for `value.subj"),
        ("value: {decode: avro, schema: o.avsc, message: O}", "", "expected `message` with `decode: protobuf` only"),
        ("value: {decode: avro, schema: o.avsc, schema_id: header}", "", "`registry` for `value.schema_id: header`"),
        ("value: {decode: json, schema_id: header}", "", "`schema_id: header` with avro, protobuf, json_schema only"),
        ("key: {decode: string}", "content: value", "expected `store.content: record` or both, or the key in `store.m"),
        ("registry: r, value: {decode: avro, schema: o.avsc, subject: record, subjects: [a, b]}", "content: both",
         "one of `source.va"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_named(folder: Path, source: str, store: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(folder, source, store or "content: record")
    assert message in str(caught.value)


def test_subjects_by_strategy(folder: Path) -> None:
    def subjects(more: str) -> tuple[str, ...]:
        return parsed(folder, f"registry: r, value: {{decode: avro{more}}}").source.value.subjects_of("t", "value")

    assert subjects("") == subjects(", subject: topic") == ("t-value",)
    assert subjects(", subject: record, subjects: [x.A, x.B]") == ("x.A", "x.B")
    assert subjects(", subject: topic_record, subjects: [x.A]") == ("t-x.A",)


def test_schemas_are_read_from_beside_the_yaml_with_what_they_import(folder: Path) -> None:
    value = parsed(folder, "value: {decode: protobuf, schema: o.proto}").source.value
    m = Reference(name="schemas/m.proto", imported=Schema(kind="PROTOBUF", text='syntax = "proto3";\nmessage M {}\n'))
    assert value.declared_schema == Schema(kind="PROTOBUF", text=(folder / "o.proto").read_text(), references=(m,))
    assert parsed(folder, "value: {decode: avro, schema: o.avsc}").source.value.declared_schema == Schema(
        kind="AVRO", text=(folder / "o.avsc").read_text()
    )
    columns = parsed(folder, "key: {decode: json, schema: [{name: n, type: int}]}").source.key
    assert columns.declared_schema == Schema(kind="JSON", text='[{"name": "n", "type": "int"}]')


def test_an_archive_as_json_is_the_same_archive_in_another_process(folder: Path) -> None:
    archive = parsed(folder, "key: {decode: json, schema: infer}, value: {decode: avro, schema: o.avsc}")
    spans = {
        "timestamp": {"max_disorder": "90s"},
        "health": {"max_age": "5h"},
        "alerts": {"max_age": "7d", "on_failure": ["hook"]},
    }
    archive = Archive.model_validate({**archive.model_dump(mode="json", by_alias=True), **spans})
    assert Archive.model_validate_json(archive.model_dump_json()) == archive
