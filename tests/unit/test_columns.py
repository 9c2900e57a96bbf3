"""The columns of an object, by content, metadata and what is decoded."""

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from kafka_archiver.config import parse_archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.settings import METADATA, Settings
from kafka_archiver.records.formats.avro.schema import schema_of as avro_schema
from kafka_archiver.records.formats.base import RECORD, VALUE
from kafka_archiver.records.formats.registry import resolve
from kafka_archiver.records.formats.shared.columns import needed, schema_of, shaped, source
from kafka_archiver.records.formats.shared.plain_types import plain
from tests.support.typed import VALUES
from tests.support.values import plan

pytestmark = pytest.mark.unit

TEXT = pa.field("value", pa.string())
DATED = {"content": "value", "value": pa.field("v", pa.struct([("Date", TEXT.type)])), "of_paths": ("date", "hour")}
ORDER = pa.field("value", pa.struct([("id", pa.int64()), ("Offset", pa.string())]), metadata={"doc": "An order"})


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"content": "value"}, VALUE.names),
        ({"content": "value", "key": TEXT}, VALUE.names),
        ({"content": "record", "key": TEXT, "value": ORDER}, RECORD.names),
        ({"content": "value", "value": TEXT}, ["value"]),
        ({"content": "value", "value": ORDER}, ["id", "Offset"]),
        ({"content": "value", "metadata": ["key", "topic"], "value": ORDER}, ["topic", "key", "id", "Offset"]),
        ({"content": "both", "value": TEXT}, [*RECORD.names, "value_decoded"]),
        ({"content": "both", "key": ORDER}, [*RECORD.names, "key_decoded"]),
        (
            {"content": "both", "prefix": "_", "key": TEXT, "value": ORDER},
            [*(f"_{name}" for name in (*RECORD.names, "key_decoded")), "id", "Offset"],
        ),
        ({"content": "value", "value": ORDER, "rename": {"id": "Offset", "Offset": "id", "x": "y"}}, ["Offset", "id"]),
        ({**DATED, "rename": {"Date": "on"}}, ["on"]),
        ({**DATED, "rename": {"Date": "Date"}}, ["Date"]),
    ],
)
def test_an_object_has_kafkas_columns_then_the_decoded_ones(options: dict[str, Any], names: list[str]) -> None:
    assert schema_of(**options).names == names


def test_a_decoded_key_takes_the_place_of_its_bytes_beside_the_value() -> None:
    schema = schema_of("value", ["key", "offset"], key=pa.field("k", pa.int64()), value=TEXT)
    assert [(f.name, f.type, source(f)) for f in schema] == [
        ("offset", pa.int64(), "offset"),
        ("key", pa.int64(), "key_decoded"),
        ("value", pa.string(), "value_decoded"),
    ]
    assert needed(schema) == ["offset", "timestamp", "key_decoded", "value_decoded"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"content": "value", "metadata": ["offset"], "value": ORDER},
            "store.metadata_prefix: the decoded value has a column 'Offset', and Kafka's columns are named offset; "
            "set a prefix for Kafka's columns that makes the names differ, for example `metadata_prefix: _kafka_`",
        ),
        ({"content": "both", "value": pa.field("v", pa.struct([("key_base64", pa.int8())]))}, "a column 'key_base64'"),
        ({"content": "both"}, "no key, value or header is decoded; set `source.value.decode`, or choose"),
        ({"content": "value", "metadata": ["key"]}, "found a value of bytes; remove it, or set `source.value.decode`"),
        ({"content": "value", "value": pa.field("v", pa.struct([("e", pa.struct([]))]))}, "type struct<>, the type of"),
        (
            {"content": "both", "value": pa.field("v", pa.struct([("id", pa.int8()), ("ID", pa.int8())]))},
            "the decoded value has the columns 'id' and 'ID', which Spark and DuckDB do not distinguish; rename one of "
            "them, for example `store.rename: {ID: ID_2}`",
        ),
        (
            {
                "content": "both",
                "value": pa.field("v", pa.struct([("id", pa.int8()), ("n", pa.int8())])),
                "rename": {"n": "id"},
            },
            "two columns of the value are named 'id': give one of them another name, with AS in `transform.select`",
        ),
        (
            {"content": "both", "key": pa.field("k", pa.list_(pa.struct([("id", pa.int8()), ("Id", pa.int8())])))},
            "the decoded column 'key_decoded' has within it the fields 'id' and 'Id', which Spark and DuckDB",
        ),
        (
            {**DATED, "rename": {"Date": "hour"}},
            "a column 'hour', and readers take a column of that name from the paths of the objects (date, hour); "
            "rename the value's, for example `store.rename: {hour: value_hour}`, or keep it with `{hour: hour}`",
        ),
        (
            {"content": "value", "value": pa.field("v", pa.map_(pa.float64(), pa.int8()))},
            "maps with keys of type double, as in v",
        ),
    ],
)
def test_columns_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        schema_of(**options)


def test_columns_of_a_null_value_are_null_whatever_lies_below() -> None:
    kind = pa.struct([pa.field("id", pa.int64(), nullable=False)])
    column = pa.StructArray.from_arrays([pa.array([1, 2])], type=kind, mask=pa.array([False, True]))
    schema = schema_of("value", value=pa.field("value", kind))
    assert schema.field("id").nullable
    assert shaped(pa.record_batch([column], ["value_decoded"]), schema).to_pylist() == [{"id": 1}, {"id": None}]


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.timestamp("s", "Europe/Berlin"), pa.timestamp("ms", "UTC")),
        (pa.duration("us"), pa.int64()),
        (pa.list_(pa.float16(), 2), pa.list_(pa.float32())),
        (pa.struct([("x", pa.null())]), pa.struct([("x", pa.string())])),
    ],
    ids=str,
)
def test_types_that_formats_do_not_have_become_others(kind: pa.DataType, stored: pa.DataType) -> None:
    assert plain(pa.field("x", kind)).type == stored


@given(VALUES)
def test_what_is_stored_is_stored_as_it_is(field: pa.Field) -> None:
    once = plain(field)
    assert plain(once).equals(once, check_metadata=True)


def test_a_name_of_avro_means_one_type_in_a_file() -> None:
    def money(**fields: pa.DataType) -> pa.Field:
        return pa.field("x", pa.struct(fields), metadata={"avro.name": "shop.Money"})

    columns = [
        money(amount=pa.int64()),
        money(amount=pa.int64()).with_name("y"),
        money(amount=pa.string()).with_name("z"),
    ]
    fields = avro_schema(pa.schema(columns))["fields"]
    assert [field["type"][1] for field in fields[1:2]] == ["shop.Money"]
    assert [field["type"][1].get("name") for field in (fields[0], fields[2])] == ["Money", "z"]


def test_the_yaml_says_which_columns_of_kafka_are_added() -> None:
    def settings(store: str) -> Settings:
        text = f"archive: a\nsource: {{topics: [t]}}\nstore: {{url: s3://b/p, {store}}}\n"
        return parse_archive(text, "a.yaml").settings

    parsed = settings("metadata: [key, offset], metadata_prefix: _kafka_, content: value, format: parquet")
    assert (parsed.metadata, parsed.metadata_prefix) == (("offset", "key"), "_kafka_")
    frozen = resolve(parsed, decoded=True)
    assert b'"metadata": [' in plan(settings=frozen).to_json()
    assert b"metadata" not in plan().to_json()
    assert b"options" not in plan(settings=frozen).to_json()
    with pytest.raises(ConfigError, match=r"store\.metadata: it adds columns to a decoded value"):
        resolve(settings("metadata: [key], format: jsonl"))
    with pytest.raises(ConfigError, match=r"store\.content: format parquet has both \| record \| value, found"):
        resolve(settings("format: parquet, content: value").model_copy(update={"content": "other"}), decoded=True)
    with pytest.raises(ConfigError, match=r"store\.rename: it renames columns of a decoded value"):
        resolve(settings("rename: {a: b}, content: record"), decoded=True)
    assert list(settings("rename: {b: a, a: B}").rename.items()) == [("a", "B"), ("b", "a")]
    for wrong in ("metadata: [value]", "metadata: [key, key]", "metadata_prefix: a-b", "rename: {a: x, b: X}"):
        with pytest.raises(ConfigError, match=r"store\.(metadata|rename)"):
            settings(wrong)
    assert resolve(settings("format: avro, content: both"), decoded=True).content == "both"
    assert tuple(name for name in RECORD.names if name != "value") == METADATA
