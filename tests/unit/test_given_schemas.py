"""Schemas in the YAML, or in files beside it, are checked without the brokers and the registry."""

import json
from pathlib import Path

import pytest

from kafka_archiver.config import load_archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.planning.given_schemas import require_readable
from kafka_archiver.records.formats import resolve

pytestmark = pytest.mark.unit
TREE = {"type": "record", "name": "Tree", "fields": [{"name": "left", "type": ["null", "Tree"]}]}
ID = "value: {decode: json, schema: [{name: id, type: int64}]}"


def check(folder: Path, source: str, store: str) -> None:
    (folder / "tree.avsc").write_text(json.dumps(TREE))
    (folder / "bad.proto").write_text('syntax = "proto3"; message A { string id = 1 }')
    (folder / "a.yaml").write_text(
        f"archive: a\nsource: {{topics: [orders], {source}}}\nstore: {{url: s3://b/p, format: parquet, {store}}}\n"
    )
    archive = load_archive(folder / "a.yaml")
    require_readable(archive, resolve(archive.settings, archive.has_columns))


@pytest.mark.parametrize(
    ("source", "store"),
    [
        (ID, "options: {bloom_filters: [id]}"),
        (ID, "layout: {path: '{topic}/{value.it}'}}\ntransform: {steps: [{rename: {id: it}}]"),
        (f"{ID}, key: {{decode: string}}", "metadata: [key]"),
        # Only planning knows all columns.
        (f"{ID}, key: {{decode: avro}}, registry: r", "content: both, options: {bloom_filters: [key_decoded.id]}"),
    ],
)
def test_what_fits_is_taken(source: str, store: str, tmp_path: Path) -> None:
    check(tmp_path, source, store)


@pytest.mark.parametrize(
    ("source", "store", "message"),
    [
        ("value: {decode: avro, schema: tree.avsc}", "", "source.value: Avro type Tree contains itself"),
        ("value: {decode: protobuf, schema: bad.proto}", "", 'source.value: schema .* Expected ";"'),
        ("value: {decode: avro, schema: none.avsc}", "", r"none.avsc cannot be read \(No such file or directory\)"),
        (ID.replace("int64", "long"), "", "source.value.schema: columns.id.type: expected one of .*; found 'long'"),
        (
            ID.replace("int64", "date, format: '%d %Z'"),
            "",
            "source.value: .* column id has the format '%d %Z'.* use %z",
        ),
        (ID.replace("id,", "offset,"), "content: both", "set a prefix .* for example `metadata_prefix: _kafka_`"),
        (
            ID,
            "options: {bloom_filters: [nobody]}",
            "store.options.bloom_filters: found 'nobody', expected columns of id",
        ),
        (ID, "options: {bloom_filters: [{a: b}]}", "`store.options.bloom_filters`: expected .* a list of texts; found"),
        (
            ID,
            "layout: {fields: [value.it]}",
            r"store.layout: `source.value.schema` has no field value.it, .* one of id,",
        ),
        (ID, "}\ntimestamp: {from: value, path: at", "timestamp.path: `source.value.schema` has no field value.at"),
        (f"{ID}, key: {{decode: string}}", "", r"a.yaml: expected `store.content: record` or both, or the key"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_key(source: str, store: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        check(tmp_path, source, store)
