"""CSV: what null, empty and other values become, for Kafka's columns and for typed ones, and what others read."""

import csv
import io
import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats import get_format, resolve
from kafka_archiver.records.formats.base import RECORD, Target
from kafka_archiver.records.pipeline.base import Marks
from tests.support.chunks import Row, batch
from tests.support.formats import NAUGHTY, ODD, Case, small_limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.contract
RECORDS, VALUES = Case("csv", "none", "record"), Case("csv", "none", "value")
many = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def target_of(schema: pa.Schema, **options: Any) -> Target:
    return replace(
        RECORDS.target, schema=schema, settings=resolve(RECORDS.settings.model_copy(update={"options": options}))
    )


def encode(target: Target, batches: list[pa.RecordBatch]) -> bytes:
    encoder = get_format("csv").encoder(target)
    return b"".join(bytes(piece) for item in batches for piece in encoder.write(item)) + b"".join(encoder.finish())


def test_null_is_nothing_and_empty_is_quoted() -> None:
    rows = [Row(1, -1, 0, None, b"", (("h", b"\xff"),)), Row(2, 5, 1, b'"k"', b"\xff\n", ()), Row(3, 5, 1, b"", None)]
    assert RECORDS.encode([batch(rows)]).decode().splitlines() == [
        "topic,partition,offset,timestamp,timestamp_type,key,value,headers,key_base64,value_base64",
        '"Ömlaut",3,1,-1,0,,"","[{""key"":""h"",""value_base64"":""/w==""}]",,',
        '"Ömlaut",3,2,5,1,"""k""",,"[]",,"/wo="',
        '"Ömlaut",3,3,5,1,"",,"[]",,',
    ]
    assert VALUES.encode([batch([rows[0], rows[2]])]) == b'value\n""\n\n'


def test_the_standard_library_reads_records() -> None:
    csv.field_size_limit(1 << 30)
    records = csv.DictReader(io.StringIO(RECORDS.encode([batch(ODD)]).decode(), newline=""), strict=True)

    def binary(row: dict[str, Any], name: str) -> bytes | None:
        coded = row.get(f"{name}_base64")
        text = row.get(name)
        return b64decode(coded) if coded else None if text is None else text.encode()

    for row, expected in zip(records, ODD, strict=True):
        assert (row["topic"], int(row["offset"]), int(row["timestamp"])) == (
            "Ömlaut",
            expected.offset,
            expected.timestamp,
        )
        # This reader takes null for empty.
        assert (binary(row, "key"), binary(row, "value")) == (expected.key or b"", expected.value or b"")
        assert tuple((h["key"], binary(h, "value")) for h in json.loads(row["headers"])) == expected.headers


TEXTS = [Row(n, n, 0, None if n % 3 else b"", text.encode()) for n, text in enumerate(NAUGHTY[:-1])]
WANTED = [(row.offset, None if row.key is None else "", (row.value or b"").decode()) for row in TEXTS]


@pytest.mark.parametrize("null", ["", "NULL"])
def test_duckdb_and_pyarrow_tell_null_from_empty(null: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    target = target_of(RECORD, null=null, delimiter="|")
    path.write_bytes(encode(target, [batch(TEXTS)]))
    by_duckdb = duckdb.sql(
        f"""select "offset", key, value from read_csv('{path}', delim='|', quote='"', escape='"', nullstr='{null}',
        allow_quoted_nulls=false, header=true, all_varchar=true, strict_mode=true)"""
    ).fetchall()
    assert [(int(offset), key, value) for offset, key, value in by_duckdb] == WANTED
    table = pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(delimiter="|", newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[null],
            column_types={"key": pa.string(), "value": pa.string()},
        ),
    )
    assert [tuple(row.values()) for row in table.select(["offset", "key", "value"]).to_pylist()] == WANTED


def test_duckdb_finds_columns_and_types_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    rows = [Row(n, n, 0, b"k", b'{"n":%d,\n"s":"a,b"}' % n) for n in range(3000)]
    path.write_bytes(Case("csv", "gzip", "record").encode([batch(rows)]))
    sums = duckdb.sql(f"select sum(\"offset\"), sum((value->>'n')::int) from '{path}'").fetchall()
    assert sums == [(sum(range(3000)), sum(range(3000)))]


@pytest.mark.spark
def test_spark_reads_records(tmp_path: Path, spark: "SparkSession") -> None:
    path = tmp_path / "x.csv.bz2"
    path.write_bytes(Case("csv", "bzip2", "record").encode([batch(TEXTS)]))
    # Spark takes the empty string for null as long as `nullValue` is empty.
    reader = spark.read.options(header=True, multiLine=True, escape='"', emptyValue="", nullValue="(none)")
    records = reader.csv(str(path)).collect()
    assert [(int(row["offset"]), row["key"]) for row in records] == [
        (r.offset, None if r.key is None else "") for r in TEXTS
    ]


SCHEMA = pa.schema(
    [
        RECORD.field("offset"),
        pa.field("id", pa.int32(), nullable=False),
        pa.field("big", pa.uint64()),
        pa.field("rate", pa.float64()),
        pa.field("small", pa.float32()),
        pa.field("active", pa.bool_()),
        pa.field("price", pa.decimal128(38, 10)),
        pa.field("day", pa.date32()),
        pa.field("born", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("ms")),
        pa.field("at", pa.time64("us")),
        pa.field("name", pa.string()),
        pa.field('odd "name",\n', pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("fixed", pa.binary(2)),
        pa.field("tags", pa.list_(pa.string())),
        pa.field(
            "place",
            pa.struct(
                [pa.field("city", pa.string()), pa.field("seen", pa.timestamp("us")), pa.field("raw", pa.binary())]
            ),
        ),
        RECORD.field("key"),
    ]
)
TEXT = st.text(max_size=9) | st.sampled_from(NAUGHTY[:-1])
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
LOCAL = NOON.replace(tzinfo=None)
TIMES = st.datetimes(LOCAL.replace(year=1), LOCAL.replace(year=9999))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "offset": st.integers(0, 2**63 - 1),
            "id": st.integers(-(2**31), 2**31 - 1),
            "big": st.none() | st.integers(0, 2**64 - 1),
            "rate": st.none() | st.floats(allow_nan=False),
            "small": st.none() | st.floats(width=32, allow_nan=False),
            "active": st.none() | st.booleans(),
            "price": st.none() | st.decimals(-(10**27), 10**27, places=10),
            "day": st.none() | st.dates(),
            "born": st.none() | TIMES.map(lambda t: t.replace(tzinfo=UTC)),
            "local": st.none() | TIMES.map(lambda t: t.replace(microsecond=0)),
            "at": st.none() | st.times(),
            "name": st.none() | TEXT,
            'odd "name",\n': st.none() | TEXT,
            "raw": st.none() | st.binary(max_size=9),
            "fixed": st.none() | st.binary(min_size=2, max_size=2),
            "tags": st.none() | st.lists(st.none() | TEXT, max_size=3),
            "place": st.none()
            | st.fixed_dictionaries(
                {"city": st.none() | TEXT, "seen": st.none() | TIMES, "raw": st.none() | st.binary(max_size=3)}
            ),
            "key": st.none() | st.binary(max_size=5) | TEXT.map(str.encode),
        }
    ),
    max_size=12,
)
OPTIONS = st.fixed_dictionaries(
    {
        "header": st.booleans(),
        "delimiter": st.sampled_from([",", ";", "|", "\t", "\x01"]),
        "quote": st.sampled_from(['"', "'"]),
        "null": st.sampled_from(["", "NULL", "\\N", "-"]),
    }
)


def slices(rows: list[dict[str, Any]], places: list[int]) -> Iterator[pa.RecordBatch]:
    whole = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    for start, end in pairwise(sorted({0, len(rows), *(place % (len(rows) + 1) for place in places)})):
        yield whole.slice(start, end - start)


@many
@given(rows=ROWS, places=st.lists(st.integers(0, 12), max_size=4), options=OPTIONS)
def test_typed_columns_come_back_and_bytes_do_not_depend_on_batches(
    rows: list[dict[str, Any]], places: list[int], options: dict[str, Any]
) -> None:
    target = target_of(SCHEMA, **options)
    with small_limits():
        data = encode(target, list(slices(rows, places)))
        assert data == encode(target, list(slices(rows, [])))
    batches = list(get_format("csv").read(io.BytesIO(data), target))
    assert pa.Table.from_batches(batches, SCHEMA).equals(pa.Table.from_pylist(rows, SCHEMA))


FULL = {
    "offset": 7, "id": -5, "rate": float("nan"), "small": 0.1, "active": True, "price": Decimal("-1.5"),
    "day": date(2026, 11, 22), "born": NOON, "local": LOCAL,
    "name": 'a "b"\n', "raw": b"\xff", "tags": ["x", None], "place": {"city": "Wien", "seen": LOCAL},
    "key": b"k",
}  # fmt: skip


def test_duckdb_reads_typed_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(encode(target_of(SCHEMA), list(slices([FULL, {"offset": 8, "id": 1}], []))))
    [[*columns]] = duckdb.sql(
        "set timezone='UTC'; select id, isnan(rate), small, active, price, day, born, local, name, from_base64(raw), "
        f"tags::json->>0, place::json->>'city', place::json->>'seen' from '{path}' where \"offset\" = 7"
    ).fetchall()
    assert columns[:4] == [-5, True, 0.1, True]
    assert [float(columns[4]), *columns[5:6], columns[7], columns[8], columns[9]] == [
        -1.5, FULL["day"], FULL["local"], FULL["name"], FULL["raw"]
    ]  # fmt: skip
    assert columns[6] == FULL["born"]
    assert columns[10:] == ["x", "Wien", "2026-11-22T12:00:00.000000"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], "ends in the middle of a row"),
        (lambda data: data.replace(b"topic", b"tipoc"), "does not begin with the header"),
        (lambda data: data.replace(b"3,0,", b"3,"), "has a row that does not fit its columns"),
        (lambda data: data.replace(b"3,0,", b"3,x,"), "has a row that does not fit its columns"),
        (lambda _: b"", "has no header"),
    ],
)
def test_what_is_not_such_a_file_is_found_out(damage: Any, message: str) -> None:
    data = damage(RECORDS.encode([batch(ODD[:3])]))
    with pytest.raises(IntegrityError, match=message):
        list(get_format("csv").read(io.BytesIO(data), RECORDS.target))


@pytest.mark.parametrize("wrong", [{"null": "0"}, {"null": "nan"}, {"null": "a,b"}, {"delimiter": "x"}, {"quote": ""}])
def test_an_option_that_makes_values_ambiguous_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=rf"`store\.options\.{next(iter(wrong))}`: expected"):
        resolve(Settings(format="csv", options={**wrong}))


def test_values_that_are_no_text_are_rejected() -> None:
    marks, stage = Marks(), get_format("csv").stage(VALUES.settings)
    assert stage
    stage(batch(ODD), marks)
    assert sorted(marks.rejected) == [20, 21, 22, 23, 24, 44]
    assert "is not UTF-8" in marks.rejected[20]
