"""Decoded records through every format: any schema comes back, and others read the types that the schema says."""

import csv
import gzip
import hashlib
import io
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_archiver.audit.content import check_records
from kafka_archiver.audit.readers import READERS
from kafka_archiver.audit.readers.base import RecordCoordinates
from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.records.formats.base import RECORD
from kafka_archiver.records.formats.registry import get_format
from kafka_archiver.records.formats.shared.columns import needed, schema_of, shaped
from kafka_archiver.records.pipeline import variants
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.filing.paths import LayoutStage
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.values.ranges import Range
from tests.support.chunks import HOUR, Row, chunk_of, new_store, write
from tests.support.chunks import cut as records_cut
from tests.support.formats import ODD, Case, small_limits, spilling
from tests.support.formats import rows_of as records_of
from tests.support.typed import (
    EMPTY,
    FORMATS,
    FULL,
    ORDER,
    VALUES,
    column_of,
    decoded,
    encode,
    read,
    recut,
    rows_of,
    target_of,
    values_of,
)

pytestmark = pytest.mark.contract

every_format = pytest.mark.parametrize("name", FORMATS)
PLACES = st.lists(st.integers(0, 25), max_size=4)
many = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
ROWS = [Row(n, 1_763_700_000_000 + n, n % 2, b"k%d" % n, b"v", (("h", b"\xff"),) * (n % 3)) for n in range(400)]
ORDERS = [FULL | {"large": n, "rate": float(n)} if n % 4 else EMPTY for n in range(400)]


@every_format
@many
@given(data=st.data(), field=VALUES, with_bytes=st.booleans(), first=PLACES, second=PLACES)
def test_any_schema_comes_back_and_bytes_do_not_depend_on_batches_or_spilling(
    name: str,
    data: st.DataObject,
    field: pa.Field,
    with_bytes: bool,
    first: list[int],
    second: list[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    values = data.draw(st.lists(values_of(field.with_nullable(True)), max_size=8))
    schema = (
        schema_of("both", prefix="_k", value=field) if with_bytes else schema_of("value", ["offset"], "_k", value=field)
    )
    options = {"readers": "spark"} if name == "parquet" and data.draw(st.booleans()) else {}
    target = target_of(name, schema, options=options)
    records = decoded([Row(n, n - 1, headers=(("h", None),) * (n % 3)) for n in range(len(values))], values, field)
    with small_limits():
        encoded = encode(target, recut(records, first))
        encoder = get_format(name).encoder(target)
        pieces = (shaped(item, schema) for item in recut(records, second))
        assert encoded == spilling(encoder, pieces, tmp_path_factory.getbasetemp(), 2)
    if name == "jsonl":
        lines = gzip.decompress(encoded).split(b"\n")[:-1]
        assert lines == [orjson.dumps(orjson.loads(line)) for line in lines]
    if name == "csv":
        table = list(csv.reader(io.StringIO(gzip.decompress(encoded).decode(), newline=""), strict=True))
        cells = [row[n] for row in table[1:] for n, f in enumerate(schema) if pa.types.is_nested(f.type) and row[n]]
        assert cells == [orjson.dumps(orjson.loads(cell)).decode() for cell in cells]
    decoded_rows = read(target, encoded)
    assert {item.schema for item in decoded_rows} <= {schema}
    place = {"_ktopic": target.topic, "_kpartition": target.partition} if with_bytes else {}
    assert repr(rows_of(decoded_rows)) == repr([{**place, **row} for row in rows_of([shaped(records, schema)])])


@every_format
@pytest.mark.parametrize("readers", ["all", "spark"])
def test_the_first_and_the_last_moment_of_nanoseconds_come_back(name: str, readers: str) -> None:
    field = pa.field("v", pa.struct([pa.field("at", pa.timestamp("ns", "UTC")), pa.field("local", pa.timestamp("ns"))]))
    schema = schema_of("value", ["offset"], "_k", value=field)
    moments = [-(2**63), -(2**63) + 145_224_192, -(2**63) + 10**9, -1, 0, None, 2**63 - 1]
    target = target_of(name, schema, options={"readers": readers} if name == "parquet" else {})
    values = [{"at": moment, "local": moment} for moment in moments]
    records = decoded([Row(n, n) for n in range(len(values))], values, field)
    assert repr(rows_of(read(target, encode(target, [records])))) == repr(rows_of([shaped(records, schema)]))


@every_format
@pytest.mark.parametrize("prefix", ["", "_kafka_"])
def test_both_restores_every_byte_of_a_record(name: str, prefix: str) -> None:
    schema = schema_of("both", prefix=prefix, value=ORDER)
    target = target_of(name, schema, metadata_prefix=prefix)
    decoded_rows = read(target, encode(target, [decoded(ODD, [FULL] * len(ODD))]))
    raw = [item.select([prefix + name for name in RECORD.names]).rename_columns(RECORD.names) for item in decoded_rows]
    assert records_of(raw, Case("avro", "none", "record")) == ODD


def test_a_key_twice_in_a_map_is_once_in_a_line() -> None:
    field = pa.field("v", pa.struct([("m", pa.map_(pa.string(), pa.int64()))]))
    target = target_of("jsonl", schema_of("value", value=field), codec="none", content="value")
    maps = [[("a", 1), ("b", 2), ("a", 3)], [("a", 4)], None, [("b", 5), ("b", None)]]
    data = encode(target, [decoded(ROWS[:4], [{"m": pairs} for pairs in maps], field)])
    assert data == b'{"m":{"a":3,"b":2}}\n{"m":{"a":4}}\n{"m":null}\n{"m":{"b":null}}\n'


SHA256 = {
    "avro": "53609dc82d5af7d317cbbcc92c56ca67cde23c46f8f2f07206eef15bd864f89e",
    "csv": "5f4a11804b94504bf247a41e65f7c7bd6ad74b9a6d0da9bcee76fce859f6ecc9",
    "jsonl": "8395ccc973e04cd0a5e2f7060804621783d42efcfa6724d0de853dd3b4309018",
    "parquet": "a1100f2e3de603b247d49308e191a699acfabcdb77205f821ce46c0ab880290d",
}


@every_format
def test_the_bytes_of_typed_columns_are_those_of_the_last_version(name: str) -> None:
    digest = hashlib.sha256(encode(target_of(name), [decoded(ROWS, ORDERS)])).hexdigest()
    assert SHA256[name] == digest, "see test_formats_golden.py for what to do"


def test_columns_of_a_parquet_file_have_a_dictionary_only_if_their_first_values_repeat() -> None:
    kind = pa.struct([
        ("id", pa.string()), ("state", pa.string()), ("at", pa.struct([("zip", pa.int64()), ("street", pa.binary())])),
        ("items", pa.list_(pa.struct([("sku", pa.string()), ("count", pa.int32())]))),
        ("labels", pa.map_(pa.string(), pa.string())), ("none", pa.string()), ("city", pa.int64()),
    ])  # fmt: skip
    values = [
        {"id": f"{n}", "state": f"{n % 3}", "at": {"zip": n % 9, "street": b"%d" % n},
         "items": [{"sku": f"{n}/{item}", "count": item} for item in range(n % 3)], "labels": [("k", f"{n}")],
         "none": None, "city": random.Random(n).randrange(8_000)}
        for n in range(20_000)
    ]  # fmt: skip
    schema = schema_of("both", value=pa.field("v", kind))
    data = encode(
        target_of("parquet", schema), [decoded([Row(n, n) for n in range(20_000)], values, pa.field("v", kind))]
    )
    row_group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    columns = {row_group.column(n).path_in_schema: row_group.column(n) for n in range(row_group.num_columns)}
    with_dictionary = {path for path, column in columns.items() if column.has_dictionary_page}
    assert with_dictionary == {
        "topic", "partition", "timestamp_type", "headers.list.element.key", "headers.list.element.value",
        "state", "at.zip", "items.list.element.count", "labels.key_value.key", "none", "city",
    }  # fmt: skip


class TestReadByOthers:
    """The first row is full, the second one has no value."""

    def stored(self, name: str, directory: Path, **options: Any) -> str:
        target = target_of(name, codec="none", **options)
        path = directory / f"order.{name}"
        path.write_bytes(encode(target, [decoded(ROWS[:2], [FULL, None])]))
        return str(path)

    def test_duckdb_reads_types_by_name_in_parquet(self, tmp_path: Path) -> None:
        table = duckdb.sql(f"from read_parquet('{self.stored('parquet', tmp_path)}')")
        types = dict(zip(table.columns, map(str, table.types), strict=True))
        assert {name: types[name] for name in ("price", "day", "clock", "at_ms", "local", "id", "unsigned", "raw")} == {
            "price": "DECIMAL(10,2)",
            "day": "DATE",
            "clock": "TIME",
            "at_ms": "TIMESTAMP WITH TIME ZONE",
            "local": "TIMESTAMP",
            "id": "UUID",
            "unsigned": "UBIGINT",
            "raw": "BLOB",
        }
        assert types["labels"] == "MAP(VARCHAR, BIGINT)"
        assert types["items"] == "STRUCT(price STRUCT(amount DECIMAL(38,4), currency VARCHAR), tags VARCHAR[])[]"
        chosen = "price, day, id, labels['a'], items[1].price.amount, epoch_ms(\"timestamp\")"
        assert table.project(chosen).fetchall() == [
            (FULL["price"], FULL["day"], FULL["id"], 1, Decimal("0.0001"), ROWS[0].timestamp),
            (None, None, None, None, None, ROWS[1].timestamp),
        ]

    def test_fastavro_reads_names_documentation_and_logical_types(self, tmp_path: Path) -> None:
        with Path(self.stored("avro", tmp_path)).open("rb") as file:
            reader: Any = fastavro.reader(file)
            first, second = reader
        schema = reader.writer_schema
        assert (schema["name"], schema["doc"]) == ("shop.Order", "An order")
        fields = {field["name"]: field for field in schema["fields"]}
        assert fields["items"]["doc"] == "What was bought"
        assert fields["state"]["type"][1] == {"type": "enum", "name": "shop.State", "symbols": ["NEW", "PAID"]}
        # The type of `total` is defined there, and named here.
        assert fields["items"]["type"][1]["items"][1]["fields"][0]["type"] == ["null", "shop.Money"]
        assert first["key"] == ROWS[0].key
        expected = {**FULL, "labels": dict(FULL["labels"]), "by_number": [{"key": -1, "value": "x"}]}
        assert {name: first[name] for name in FULL} == expected
        assert {name: second[name] for name in FULL} == EMPTY

    def test_pyarrow_reads_what_parquet_keeps(self, tmp_path: Path) -> None:
        options = {"row_group_rows": 1, "bloom_filters": ["text", "items.price.amount"]}
        file = pq.ParquetFile(self.stored("parquet", tmp_path, options=options))
        assert file.num_row_groups == 2
        assert file.schema_arrow.field("id").type == pa.uuid()
        group = file.metadata.row_group(0)
        columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
        assert columns["price"].statistics.min == FULL["price"]
        assert columns["text"].bloom_filter_offset is not None
        assert columns["items.list.element.price.amount"].bloom_filter_offset is not None
        assert columns["raw"].bloom_filter_offset is None
        assert columns["price"].has_offset_index
        [sorting] = group.sorting_columns
        assert file.schema.column(sorting.column_index).path == "offset"
        about = orjson.loads(file.metadata.metadata[b"kafka_archiver.columns"])
        assert about[""] == {"avro.name": "shop.Order", "doc": "An order"}
        assert about["items"] == {"doc": "What was bought", "avro.name": "shop.Item"}
        assert about["total.currency"] == {"doc": "ISO 4217"}

    def test_a_line_has_what_json_can_say(self, tmp_path: Path) -> None:
        path = self.stored("jsonl", tmp_path)
        first, second = map(orjson.loads, Path(path).read_bytes().splitlines())
        assert first["topic"] == "Ömlaut"
        assert first["value"] == "v"
        expected = {"raw": "/wA=", "price": "-12345678.90", "huge": "0.0000000001", "day": "2026-11-22"}
        expected |= {
            "clock": "23:59:59.999",
            "at_us": "1969-12-31T23:59:59.999999Z",
            "local": "2026-11-22T12:00:00.000000",
        }
        expected |= {
            "id": "00112233-4455-6677-8899-aabbccddeeff",
            "labels": {"a": 1, "b": None},
            "by_number": {"-1": "x"},
        }
        assert {name: first[name] for name in expected} == expected
        assert first["unsigned"] == 2**64 - 1
        assert {name: second[name] for name in FULL} == EMPTY
        rows = duckdb.sql(f"select day, at_us, price::decimal(10, 2), id from read_json('{path}') limit 1").fetchall()
        assert rows[0][0] == FULL["day"]
        assert rows[0][2:] == (FULL["price"], FULL["id"])

    def test_numbers_that_are_none_and_moments_beyond_the_calendar_in_a_line(self) -> None:
        field = pa.field("v", pa.struct([("x", pa.float64()), ("at", pa.timestamp("ms", "UTC")), ("d", pa.date32())]))
        target = target_of("jsonl", schema_of("value", value=field), codec="none", content="value")
        values = [{"x": float(x), "at": 253_402_300_800_000, "d": -719_163} for x in ("nan", "inf", "-inf")]
        lines = encode(target, [decoded(ROWS[:3], values, field)]).splitlines()
        assert [orjson.loads(line)["x"] for line in lines] == ["NaN", "Infinity", "-Infinity"]
        assert lines[0].endswith(b',"at":253402300800000,"d":-719163}')


def test_json_text_of_a_decoder_is_json_in_a_line_and_comes_back_with_all_digits() -> None:
    text = [
        pa.field("n", pa.string(), metadata={"json": "number"}),
        pa.field("any", pa.string(), metadata={"json": "any"}),
    ]
    field = pa.field("v", pa.struct([*text, pa.field("l", pa.list_(text[0])), pa.field("s", pa.struct(text))]))
    n, some = "1.00000000000000000000001e5", '{"b":[1e400,\n"x"]}'
    target = target_of("jsonl", schema_of("value", value=field), codec="none", content="value")
    values = [{"n": n, "any": some, "l": [n, None], "s": {"n": None, "any": "[]"}}, None]
    data = encode(target, [decoded(ROWS[:2], values, field)])
    line = f'{{"n":{n},"any":{{"b":[1e400, "x"]}},"l":[{n},null],"s":{{"n":null,"any":[]}}}}\n'
    assert data.decode() == line + '{"n":null,"any":null,"l":null,"s":null}\n'
    first, second = rows_of(read(target, data))
    assert (first, second) == (values[0] | {"any": some.replace("\n", " ")}, dict.fromkeys(values[0]))


def test_logical_types_that_arrow_does_not_have_are_kept() -> None:
    kinds = {"id": (pa.binary(16), "uuid"), "text_id": (pa.string(), "uuid"), "took": (pa.binary(12), "duration")}
    fields = [pa.field(n, kind, metadata={"avro.logicalType": logical}) for n, (kind, logical) in kinds.items()]
    schema = schema_of("value", value=pa.field("v", pa.struct(fields)))
    reader: Any = fastavro.reader(io.BytesIO(encode(target_of("avro", schema, content="value"), [])))
    assert [field["type"][1]["logicalType"] for field in reader.writer_schema["fields"]] == ["uuid", "uuid", "duration"]
    parquet = pq.read_schema(io.BytesIO(encode(target_of("parquet", schema, content="value"), [])))
    assert parquet.types == [pa.uuid(), pa.string(), pa.binary(12)]


def test_a_bloom_filter_of_an_unknown_column_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"options\.bloom_filters: found 'nobody', expected columns of .*price"):
        encode(target_of("parquet", options={"bloom_filters": ["nobody"]}), [])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (pa.field("state", pa.string(), metadata={"avro.symbols": '["NEW"]'}), "OLD"),
        (pa.field("price", pa.decimal128(3, 0)), 10**6),
    ],
)
def test_avro_never_writes_a_value_that_is_not_of_its_type(field: pa.Field, value: Any) -> None:
    values = pa.array([value], pa.decimal128(38, 0) if isinstance(value, int) else field.type)
    if isinstance(value, int):
        values = pa.Array.from_buffers(field.type, 1, values.buffers())
    schema = schema_of("value", value=pa.field("value", pa.struct([field])))
    batch = pa.record_batch([pa.StructArray.from_arrays([values], fields=[field])], ["value_decoded"])
    with pytest.raises(IntegrityError, match="the records do not fit the object's schema"):
        encode(target_of("avro", schema, content="value"), [batch])


@every_format
@pytest.mark.parametrize("metadata", [(), ("offset",), ("topic", "offset", "timestamp")])
def test_the_audit_sees_what_an_object_has(name: str, metadata: tuple[str, ...]) -> None:
    schema = schema_of("value", metadata, "_", value=ORDER)
    target = target_of(name, schema, content="value", metadata=metadata, metadata_prefix="_")
    file = io.BytesIO(encode(target, [decoded(ROWS, ORDERS)]))
    reader = READERS[name]
    assert reader.values
    assert reader.records
    if not metadata:
        assert reader.values(file, target.settings) == len(ROWS)
        return
    time = "timestamp" in metadata
    topic = target.topic if "topic" in metadata else None
    records = list(reader.records(file, target.settings))
    assert records == [RecordCoordinates(topic, None, row.offset, row.timestamp if time else None) for row in ROWS]


@every_format
def test_the_writer_files_decoded_records_by_kafkas_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value has columns called `offset` and `timestamp`, which are not Kafka's. Records wait, and are spilled."""
    field = pa.field("value", pa.struct([("offset", pa.string()), ("timestamp", pa.int64())]))
    schema = schema_of("value", ["offset", "key"], "kafka_", value=field)
    assert needed(schema) == ["offset", "timestamp", "key", "value_decoded"]

    def decode(batch: pa.RecordBatch, _: Marks) -> pa.RecordBatch:
        values = [{"offset": "x", "timestamp": int(v)} if v else None for v in batch.column("value").to_pylist()]
        item = batch.append_column("value_decoded", column_of(field, values).column(0))
        return item.select(needed(schema))

    monkeypatch.setattr(variants, "stages_of", lambda *arguments: [decode, LayoutStage(arguments[3], hours=False)])
    monkeypatch.setattr(variants, "storable", lambda *_: schema)
    records = [Row(n, n % 2 * HOUR, key=b"%d" % n, value=b"%d" % n if n % 3 else None) for n in range(100)]
    target = target_of(name, schema, content="value", metadata=("offset", "key"), metadata_prefix="kafka_")
    store = new_store()
    limits = Limits(open_objects=1, memory_bytes=4000)
    result = write(chunk_of(0, 100), records_cut(records, 7), store, limits, **dict(target.settings))
    rows = []
    entries = complete([result], store)
    for entry in entries:
        data = store.get(entry.key)
        assert data
        rows += rows_of(read(replace(target, topic="orders"), data))
        expected_records = (RecordCoordinates(None, None, r["kafka_offset"], None) for r in rows_of(read(target, data)))
        assert list(check_records(entry, Range(0, 100), expected_records)) == []
    assert len(entries) == 2
    assert sorted(rows, key=lambda row: int(row["kafka_offset"])) == [
        {
            "kafka_offset": n,
            "kafka_key": b"%d" % n,
            "offset": "x" if n % 3 else None,
            "timestamp": n if n % 3 else None,
        }
        for n in range(100)
    ]
