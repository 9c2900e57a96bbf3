"""Spark reads the columns of decoded records, with their types, from each format."""

import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from kafka_archiver.records.formats.registry import extension_of
from kafka_archiver.records.formats.shared.columns import schema_of
from tests.support.chunks import Row
from tests.support.typed import EMPTY, FULL, LEAVES, ORDER, decoded, encode, target_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# Spark has no decimals of more than 38 digits. Of Parquet it knows neither times of milliseconds nor UUIDs, so it finds
# no schema by itself; with one it reads UUIDs as bytes. `readers: spark` is for that.
VALUE = ORDER.with_type(pa.struct([field for field in ORDER.type if field.name not in ("huge", "clock")]))
LABELS = "map<string, bigint>"
ITEMS = "array<struct<price: struct<amount: decimal(38, 4), currency: string>>>"
NESTED = f"labels {LABELS}, items {ITEMS}"
FLAT = "text string, large bigint, unsigned decimal(20, 0), price decimal(10, 2), day date, at_us timestamp"
WANTED = ["text", "large", "unsigned", "day", "cast(price as decimal(10, 2))", "unix_micros(at_us) as at_us"]
TEXT = 'a "b"\n,c'


def stored(name: str, directory: Path, codec: str = "") -> str:
    target = target_of(name, schema_of("both", value=VALUE), codec)
    path = directory / f"x{extension_of(target.settings)}"
    rows = [{n: row[n] for n in VALUE.type.names} for row in (FULL | {"text": TEXT}, EMPTY)]
    path.write_bytes(encode(target, [decoded([Row(5, 0), Row(6, 0)], rows, VALUE)]))
    return str(path)


@pytest.mark.parametrize(
    ("name", "schema", "options", "nested"),
    [
        ("parquet", f"{FLAT}, {NESTED}, id binary", {}, ["lower(hex(id)) as id", "labels", "items"]),
        ("jsonl", f"{FLAT}, {NESTED}, id string", {}, ["replace(id, '-', '') as id", "labels", "items"]),
        (
            "csv",
            "",
            {"header": True, "multiLine": True, "escape": '"', "inferSchema": True},
            ["replace(id, '-', '') as id", f"from_json(labels, '{LABELS}') as l", f"from_json(items, '{ITEMS}') as i"],
        ),
    ],
)
def test_spark_reads_typed_columns(
    name: str, schema: str, options: dict[str, Any], nested: list[str], tmp_path: Path, spark: "SparkSession"
) -> None:
    reader = spark.read.options(**options).format({"jsonl": "json"}.get(name, name))
    table = (reader.schema(schema) if schema else reader).load(stored(name, tmp_path)).selectExpr(*WANTED, *nested)
    full, empty = map(tuple, table.collect())
    *flat, labels, items = full
    assert flat == [TEXT, *(FULL[column] for column in ("large", "unsigned", "day", "price")), -1, FULL["id"].hex]
    assert labels == dict(FULL["labels"])
    assert [item and item.price.amount for item in items] == [Decimal("0.0001"), None]
    assert set(empty) == {None}


REFUSED = {name: pa.field(name, kind) for name, (kind, _) in LEAVES.items() if name in ("huge", "clock", "id")}
REFUSED["nanos"] = pa.field("nanos", pa.timestamp("ns", "UTC"))
REFUSED["ids"] = pa.field("ids", pa.list_(pa.struct([("id", pa.uuid())])))


def test_spark_finds_the_schema_of_a_parquet_file_that_is_for_it(tmp_path: Path, spark: "SparkSession") -> None:
    field = ORDER.with_type(pa.struct([*ORDER.type, REFUSED["nanos"], REFUSED["ids"]]))
    more = {"nanos": -1, "ids": [{"id": FULL["id"]}, None]}
    target = target_of("parquet", schema_of("both", value=field), options={"readers": "spark"})
    path = tmp_path / "x.parquet"
    path.write_bytes(encode(target, [decoded([Row(5, 0)], [FULL | more], field)]))
    [row] = spark.read.parquet(str(path)).selectExpr("*", "unix_micros(at_us) as micros").collect()
    expected = {"id": str(FULL["id"]), "clock": "23:59:59.999", "precise": "01:02:03.000004", "huge": "0.0000000001"}
    expected |= {"nanos": "1969-12-31T23:59:59.999999999Z", "unsigned": 2**64 - 1, "day": FULL["day"], "micros": -1}
    assert {name: row[name] for name in expected} == expected
    assert [item and item.id for item in row.ids] == [expected["id"], None]


@pytest.mark.parametrize("name", REFUSED)
def test_spark_finds_no_schema_with_a_type_that_is_text_for_it(
    name: str, tmp_path: Path, spark: "SparkSession"
) -> None:
    """If it does one day, `readers: spark` may keep the type."""
    target = target_of("parquet", schema_of("value", value=pa.field("v", pa.struct([REFUSED[name]]))))
    path = tmp_path / "x.parquet"
    path.write_bytes(encode(target, []))
    with pytest.raises(PySparkException, match=r"PARQUET|Parquet|precision"):
        spark.read.parquet(str(path))


def test_java_reads_typed_avro(tmp_path: Path, spark: "SparkSession") -> None:
    """Spark's reader of Avro is not among its jars. It wraps Java's own reader."""
    jvm: Any = spark._jvm
    avro = jvm.org.apache.avro
    reader = avro.file.DataFileReader(jvm.java.io.File(stored("avro", tmp_path)), avro.generic.GenericDatumReader())
    full, empty = (json.loads(reader.next().toString()) for _ in range(2))
    assert not reader.hasNext()
    names = ["text", "large", "state", "labels"]
    assert [full[name] for name in names] == [TEXT, FULL["large"], FULL["state"], dict(FULL["labels"])]
    assert (full["id"], full["at_us"]) == (str(FULL["id"]), -1)
    assert {empty[name] for name in names} == {None}
