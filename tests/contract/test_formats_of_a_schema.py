"""Formats of columns write the schema that they are given: here one of typed columns, which is nobody's envelope."""

import io
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.records.formats.base import RECORD, Target
from kafka_archiver.records.formats.registry import get_format
from kafka_archiver.records.pipeline import variants
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.filing.paths import LayoutStage
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.records.writer.result import Limits
from tests.support.chunks import HOUR, chunk_of, new_store, write
from tests.support.chunks import Row as Record
from tests.support.chunks import cut as records_cut
from tests.support.formats import Case, small_limits, spilling

pytestmark = pytest.mark.contract

CASES = [Case("avro", "zstd", "record"), Case("parquet", "zstd", "record")]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
ITEM = pa.struct(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("price", pa.float64()),
        pa.field("tags", pa.list_(pa.string())),
    ]
)
SCHEMA = pa.schema(
    [
        *[RECORD.field(name) for name in ("topic", "partition", "offset", "timestamp", "headers")],
        pa.field("id", pa.int32(), nullable=False),
        pa.field("count", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("raw", pa.binary(), nullable=False),
        pa.field("rate", pa.float64()),
        pa.field("small", pa.float32(), nullable=False),
        pa.field("active", pa.bool_()),
        pa.field("born", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("ms")),
        pa.field("items", pa.list_(ITEM)),
        pa.field("matrix", pa.list_(pa.field("item", pa.list_(pa.int64()), nullable=False)), nullable=False),
        pa.field("place", pa.struct([pa.field("city", pa.string()), pa.field("zip", pa.int32(), nullable=False)])),
        # Called like a column of Kafka's, and none.
        pa.field("value", pa.float64()),
    ]
)
BROUGHT = pa.schema(list(SCHEMA)[2:])
Row = dict[str, Any]


def target_of(case: Case, schema: pa.Schema = SCHEMA) -> Target:
    return replace(case.target, schema=schema)


def encode(case: Case, batches: Iterable[pa.RecordBatch], schema: pa.Schema = SCHEMA) -> bytes:
    encoder = get_format(case.format).encoder(target_of(case, schema))
    pieces = [bytes(piece) for item in batches for piece in encoder.write(item)]
    return b"".join([*pieces, *map(bytes, encoder.finish())])


def batch(rows: list[Row], schema: pa.Schema = BROUGHT) -> pa.RecordBatch:
    """The rows as a slice of something larger."""
    return pa.RecordBatch.from_pylist([*rows[:1], *rows, *rows[:1]], schema=schema).slice(min(len(rows), 1), len(rows))


def cut(rows: list[Row], places: list[int]) -> list[pa.RecordBatch]:
    ends = sorted({0, len(rows), *(place % (len(rows) + 1) for place in places)})
    return [batch([]), *(batch(rows[start:end]) for start, end in pairwise(ends))]


def values_of(field: pa.Field) -> st.SearchStrategy[Any]:
    """Values of a column, null among them where they may be."""
    kind = field.type
    if pa.types.is_struct(kind):
        strategy: st.SearchStrategy[Any] = st.fixed_dictionaries({child.name: values_of(child) for child in kind})
    elif pa.types.is_list(kind):
        strategy = st.lists(values_of(kind.value_field), max_size=3)
    elif pa.types.is_timestamp(kind):
        # As integers: the ends of the range are no dates.
        strategy = st.integers(-(2**63), 2**63 - 1)
    elif pa.types.is_integer(kind):
        strategy = st.integers(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    elif pa.types.is_floating(kind):
        strategy = st.floats(width=kind.bit_width, allow_nan=False)
    else:
        strategy = {"string": st.text(max_size=9), "binary": st.binary(max_size=9), "bool": st.booleans()}[str(kind)]
    return st.none() | strategy if field.nullable else strategy


HEADER = st.fixed_dictionaries({"key": st.text(max_size=5), "value": st.none() | st.binary(max_size=9)})
ROWS = st.lists(
    st.fixed_dictionaries(
        {field.name: values_of(field) for field in BROUGHT} | {"headers": st.lists(HEADER, max_size=2)}
    ),
    max_size=15,
)
PLACES = st.lists(st.integers(0, 25), max_size=4)
many = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def numbers(table: pa.Table) -> list[Row]:
    """The rows, instants as numbers."""
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
    return pa.Table.from_arrays(columns, table.column_names).to_pylist()


@every_case
@many
@given(rows=ROWS, first=PLACES, second=PLACES)
def test_all_comes_back_and_bytes_do_not_depend_on_batches(
    case: Case, rows: list[Row], first: list[int], second: list[int]
) -> None:
    with small_limits():
        data = encode(case, cut(rows, first))
        assert data == encode(case, cut(rows, second))
    batches = list(get_format(case.format).read(io.BytesIO(data), target_of(case)))
    assert {item.schema for item in batches} <= {SCHEMA}
    place = {"topic": case.target.topic, "partition": case.target.partition}
    assert numbers(pa.Table.from_batches(batches, SCHEMA)) == [place | row for row in rows]


NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
FULL: Row = {
    "offset": 7,
    "timestamp": 1_795_348_800_000,
    "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
    "id": -5,
    "count": 2**40,
    "name": "Ömlaut",
    "raw": b"\xff\x00",
    "rate": 0.1,
    "small": -0.5,
    "active": True,
    "born": NOON,
    "local": NOON.replace(tzinfo=None),
    "items": [{"name": "a", "price": 1.5, "tags": ["x", None]}, None, {"name": "", "price": None, "tags": None}],
    "matrix": [[1, 2], [], [3]],
    "place": {"city": None, "zip": 1010},
    "value": 2.5,
}
NEEDED: Row = {
    "offset": 9,
    "timestamp": 1_795_348_800_000,
    "headers": [],
    "id": 0,
    "raw": b"",
    "small": 0.0,
    "matrix": [],
}
EMPTY: Row = {**{field.name: None for field in BROUGHT}, **NEEDED}


class TestReadByOthers:
    def test_pyarrow_reads_typed_columns(self) -> None:
        table = pq.read_table(io.BytesIO(encode(CASES[1], [batch([FULL, EMPTY])])))
        assert [str(table.schema.field(name).type) for name in ("timestamp", "born", "local", "rate", "active")] == [
            "timestamp[ms, tz=UTC]",
            "timestamp[us, tz=UTC]",
            "timestamp[ms]",
            "double",
            "bool",
        ]
        assert [field.nullable for field in table.schema] == [f.nullable and f.name != "headers" for f in SCHEMA]
        assert table.to_pylist() == [self.as_read(FULL), self.as_read(EMPTY)]

    def test_fastavro_reads_typed_columns(self) -> None:
        assert list(fastavro.reader(io.BytesIO(encode(CASES[0], [batch([FULL, EMPTY])])))) == [
            self.as_read(FULL),
            self.as_read(EMPTY),
        ]

    def as_read(self, row: Row) -> Row:
        return {"topic": "Ömlaut", "partition": 3, **row, "timestamp": NOON}


@every_case
def test_an_object_without_records_has_the_schema(case: Case) -> None:
    data = encode(case, [])
    if case.format == "parquet":
        assert pq.read_schema(io.BytesIO(data)).names == SCHEMA.names
    else:
        schema: Any = fastavro.reader(io.BytesIO(data)).writer_schema
        assert [field["name"] for field in schema["fields"]] == SCHEMA.names


@every_case
def test_large_variants_of_types_are_the_same_bytes(case: Case) -> None:
    rows = batch([FULL, EMPTY])
    large = {"raw": pa.large_binary(), "name": pa.large_string(), "items": pa.large_list(ITEM)}
    types = [pa.field(f.name, large.get(f.name, f.type), f.nullable) for f in BROUGHT]
    other = pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(rows.columns, types, strict=True)], schema=pa.schema(types)
    )
    assert encode(case, [other]) == encode(case, [rows])


def test_rows_of_numbers_fill_a_row_group_and_are_spilled(tmp_path: Path) -> None:
    case, rows = CASES[1], [FULL | {"offset": offset} for offset in range(60)]
    with small_limits():
        encoder = get_format("parquet").encoder(target_of(case))
        data = spilling(encoder, [batch(rows[at : at + 7]) for at in range(0, 60, 7)], tmp_path, 2)
        assert data == encode(case, [batch(rows)])
    assert pq.read_metadata(io.BytesIO(data)).num_row_groups > 5
    schema = pa.schema([RECORD.field("offset"), pa.field("numbers", pa.list_(pa.float64()))])
    with small_limits():
        data = encode(case, [batch([{"offset": n, "numbers": [0.5] * 100} for n in range(9)], schema)], schema)
    assert pq.read_metadata(io.BytesIO(data)).num_row_groups == 9


@every_case
@pytest.mark.parametrize("wrong", [{"id": None}, {"place": {"city": "x", "zip": None}}, {"matrix": [None]}])
def test_a_null_where_the_schema_has_none_is_no_record(case: Case, wrong: Row) -> None:
    with pytest.raises(IntegrityError, match="the records do not fit the object's schema"):
        encode(case, [batch([FULL | wrong])])


@every_case
def test_a_column_that_is_missing_or_does_not_fit_is_named(case: Case) -> None:
    rows = batch([FULL])
    with pytest.raises(IntegrityError, match=r"the records do not fit the object's schema: .*rate"):
        encode(case, [rows.drop_columns(["rate"])])
    text = rows.set_column(rows.schema.get_field_index("count"), "count", pa.array(["many"]))
    with pytest.raises(IntegrityError, match=r"the records do not fit the object's schema: .*many"):
        encode(case, [text])


UNKNOWN = [("avro", pa.duration("ms")), ("avro", pa.struct([])), ("parquet", pa.struct([]))]


@pytest.mark.parametrize(("name", "kind"), UNKNOWN, ids=str)
def test_a_type_that_a_format_does_not_have_is_refused(name: str, kind: pa.DataType) -> None:
    schema = pa.schema([RECORD.field("offset"), pa.field("odd", kind)])
    with pytest.raises(ConfigError, match=rf"store\.format: {name} .*"):
        encode(Case(name, "zstd", "record"), [batch([{"offset": 1, "odd": None}], schema)], schema)


def test_a_name_that_avro_does_not_have_is_refused() -> None:
    schema = pa.schema([RECORD.field("offset"), pa.field("größe", pa.int32())])
    with pytest.raises(ConfigError, match="avro takes column names of ASCII letters, digits and _, found 'größe'"):
        encode(CASES[0], [], schema)


@every_case
def test_the_writer_stores_what_a_stage_makes_of_records(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of two hours, more than there are encoders at a time: they wait, are spilled, and keep their columns."""
    schema = pa.schema(
        [RECORD.field(n) for n in ("topic", "partition", "offset", "timestamp")] + [SCHEMA.field("rate")]
    )

    def rates(rows: pa.RecordBatch, _: Marks) -> pa.RecordBatch:
        return rows.select(["offset", "timestamp"]).append_column(
            SCHEMA.field("rate"), rows.column("value").cast(pa.string()).cast(pa.float64())
        )

    monkeypatch.setattr(variants, "stages_of", lambda *arguments: [rates, LayoutStage(arguments[3], hours=False)])
    monkeypatch.setattr(variants, "storable", lambda *_: schema)
    records = [Record(n, n % 2 * HOUR, value=b"%d.5" % n) for n in range(100)]
    store = new_store()
    limits = Limits(open_objects=1, memory_bytes=4000)
    result = write(
        chunk_of(0, 100), records_cut(records, 7), store, limits, format=case.format, codec="zstd", content="record"
    )
    stored_rates = []
    entries = complete([result], store)
    for entry in entries:
        data = store.get(entry.key)
        assert data
        target = replace(target_of(case, schema), key=entry.key, topic="orders")
        for rows in get_format(case.format).read(io.BytesIO(data), target):
            assert rows.schema == schema
            stored_rates += [(row["offset"], row["rate"]) for row in rows.to_pylist()]
    assert len(entries) == 2
    assert sorted(stored_rates) == [(n, n + 0.5) for n in range(100)]
