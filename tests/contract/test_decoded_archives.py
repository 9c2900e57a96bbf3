"""Avro records behind a registry become objects of decoded values, which others read with the right types."""

import csv
import gzip
import io
import uuid
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.dead_letters import ReplayForecast, forecast_replay, runs_with_letters
from kafka_archiver.work.plan import PlannedWork, plan
from tests.support.avro_records import ORDER, LocalRegistry, framed, order
from tests.support.lake import FIRST, Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
METADATA = ["partition", "offset", "timestamp", "key", "headers"]
SHAPES: dict[str, dict[str, Any]] = {
    "value": {"content": "value", "metadata": METADATA, "metadata_prefix": "_"},
    "both": {"content": "both", "metadata_prefix": "_"},
}
RAW = [framed(100, ORDER, order(n)) for n in range(3)]


def lake_of(shape: str, format_: str, bad: bytes = RAW[0][:-1], registry: LocalRegistry | None = None) -> Lake:
    """Three orders, a null and a bad value."""
    registry = registry or LocalRegistry()
    assert registry.register("orders-value", ORDER) == 100
    settings = {**SHAPES[shape], "format": format_, "chunk_records": 10}
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 5)}, {"content": "record", "chunk_records": 10})
    for offset, value in enumerate([*RAW, None, bad]):
        lake.odd[P0, offset] = {
            "value": value,
            "timestamp": to_ms(FIRST),
            "headers": (("h", b"\xff"),),
        }
    document = lake.archive.model_dump()
    source = {"topics": ["orders"], "settle": 0, "registry": "r", "value": {"decode": "avro"}}
    document |= {"source": source, "store": {"url": "memory://unused", **settings}}
    lake.configure(Archive.model_validate({**document, "policies": {"bad_record": "dead_letter"}}))
    lake.context = replace(lake.context, registry=registry.open)
    return lake


def parquet(data: bytes) -> list[dict[str, Any]]:
    return pq.read_table(io.BytesIO(data)).to_pylist(maps_as_pydicts="strict")


def avro(data: bytes) -> list[dict[str, Any]]:
    return list(fastavro.reader(io.BytesIO(data)))  # type: ignore[arg-type]


def jsonl(data: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in gzip.decompress(data).splitlines()]


def rows_of_csv(data: bytes) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(gzip.decompress(data).decode(), newline="")))


READERS: dict[str, Callable[[bytes], list[dict[str, Any]]]] = {
    "parquet": parquet, "avro": avro, "jsonl": jsonl, "csv": rows_of_csv,
}  # fmt: skip


def spelt(value: Any) -> Any:
    """A value as JSON lines have it."""
    return {"price": f"{value['price']:.2f}", "at": f"{value['at']:%Y-%m-%dT%H:%M:%S.000Z}"} | {
        name: str(cell) if name in ("id", "day") else cell
        for name, cell in value.items()
        if name not in ("price", "at")
    }


def cells(value: dict[str, Any]) -> dict[str, str]:
    """A value as CSV has it."""
    texts = {name: "" if cell is None else cell for name, cell in spelt(value).items()}
    texts["at"] = texts["at"].replace("T", " ")
    return {name: cell if isinstance(cell, str) else orjson.dumps(cell).decode() for name, cell in texts.items()}


EXPECTED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "parquet": dict, "avro": dict, "jsonl": spelt, "csv": cells,
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("format_", READERS)
def test_decoded_values_are_what_others_read(format_: str, shape: str) -> None:
    lake = lake_of(shape, format_)
    run = lake.run(1)
    assert lake.manifest(run).account == lake.manifest(run).account | {"archived": 4, "dead_lettered": 1}
    letter, key = lake.stored()
    data = lake.store.get(key) or b""
    *orders, nothing = READERS[format_](data)
    expected = [EXPECTED[format_](order(n)) for n in range(3)]
    assert [{name: row[name] for name in order(0)} for row in orders] == expected
    empty = "" if format_ == "csv" else None
    assert {nothing[name] for name in order(0)} == {empty}
    assert [int(row["_offset"]) for row in [*orders, nothing]] == [0, 1, 2, 3]
    kafkas = [name for name in nothing if name.startswith("_")]
    names = METADATA if shape == "value" else ["topic", "partition", "offset", "timestamp", "timestamp_type", "key"]
    assert kafkas[: len(names)] == [f"_{name}" for name in names]
    if shape == "both" and format_ in ("parquet", "avro"):
        assert [row["_value"] for row in [*orders, nothing]] == [*RAW, None]
    # The dead letter has the bytes of the record.
    [kept] = jsonl(lake.store.get(letter) or b"")
    assert (kept["offset"], b64decode(kept["value_base64"])) == (4, RAW[0][:-1])
    assert not lake.audit(deep=True).findings
    before = {stored: lake.store.get(stored) for stored in lake.stored()}
    lake.run(1)
    assert {stored: lake.store.get(stored) for stored in lake.stored()} == before


def test_duckdb_and_pyarrow_see_the_types_of_the_schema(tmp_path: Any) -> None:
    lake = lake_of("both", "parquet")
    lake.run(1)
    path = tmp_path / "orders.parquet"
    path.write_bytes(lake.store.get(lake.stored()[1]) or b"")
    table = duckdb.sql(f"from '{path}'")
    types = dict(zip(table.columns, map(str, table.types), strict=True))
    assert {name: types[name] for name in (*order(0), "_offset", "_timestamp", "_value")} == {
        "id": "UUID", "price": "DECIMAL(10,2)", "at": "TIMESTAMP WITH TIME ZONE", "day": "DATE", "state": "VARCHAR",
        "note": "VARCHAR", "labels": "MAP(VARCHAR, BIGINT)", "items": "STRUCT(sku VARCHAR)[]", "_offset": "BIGINT",
        "_timestamp": "TIMESTAMP WITH TIME ZONE", "_value": "BLOB",
    }  # fmt: skip
    assert duckdb.sql(f"select sum(price)::text from '{path}' where state = 'NEW'").fetchall() == [("1.00",)]
    schema = pq.read_schema(path)
    assert schema.field("at").type == pa.timestamp("ms", "UTC")
    assert (schema.field("id").type, schema.field("price").type) == (pa.uuid(), pa.decimal128(10, 2))


@pytest.mark.parametrize("shape", SHAPES)
def test_dead_letters_come_back_once_their_schema_is_known(shape: str) -> None:
    registry = LocalRegistry()
    later = {**ORDER, "fields": [*ORDER["fields"], {"name": "more", "type": "int", "default": 7}]}
    lake = lake_of(shape, "parquet", framed(101, later, {**order(4), "more": 1}), registry)

    def dry() -> ReplayForecast:
        [letters] = runs_with_letters(lake.context, None)
        return forecast_replay(lake.context, letters)

    run = lake.run(1)
    assert (lake.manifest(run).account["archived"], lake.manifest(run).account["dead_lettered"]) == (4, 1)
    # Nothing is mended yet.
    assert (dry().archived, dry().rejected) == (0, 1)
    assert "schema id 101 is not one of the schemas of the plan" in dry().reasons[0]
    assert lake.manifest(lake.replay()).account["dead_lettered"] == 1
    assert registry.register("orders-value", later) == 101
    documents = [stored.key for stored in lake.store.list("")]
    assert (dry().archived, dry().rejected) == (1, 0)
    assert [stored.key for stored in lake.store.list("")] == documents
    replayed = lake.replay()
    registry.down = True
    lake.finish(PlannedWork((replayed,), (replayed,)))
    assert (lake.manifest(replayed).account["archived"], lake.manifest(replayed).account["dead_lettered"]) == (5, 0)
    rows = sorted(
        (row for key in lake.stored() for row in parquet(lake.store.get(key) or b"")), key=lambda row: row["_offset"]
    )
    assert [(row["_offset"], row.get("more")) for row in rows] == [(0, None), (1, None), (2, None), (3, None), (4, 1)]
    assert {name: rows[-1][name] for name in order(4)} == order(4)
    assert not lake.audit(deep=True).findings


@pytest.mark.parametrize("format_", ["text", "bytes", "block_gzip"])
def test_a_format_without_columns_is_refused_before_anything_is_planned(format_: str) -> None:
    lake, mak = lake_of("value", format_), lake_of("value", "mak")
    lake.now = mak.now = hour(2).start
    with pytest.raises(ConfigError, match=rf"store\.format: {format_} stores values as they are.*avro \| csv \| jsonl"):
        plan(lake.context, hour(1), "scheduled")
    with pytest.raises(ConfigError, match=r"store\.content: format mak has record, found 'value'"):
        plan(mak.context, hour(1), "scheduled")
    assert lake.ledger.planned(1) is None


def test_parquet_has_columns_with_dots_in_their_names() -> None:
    lake = lake_of("value", "parquet")
    for offset in range(5):
        lake.odd[P0, offset]["value"] = b'{"a.b": {"c.d": %d}}' % offset
    inner = {"name": "a.b", "type": "struct", "columns": [{"name": "c.d", "type": "int64"}]}
    source = {"topics": ["orders"], "settle": 0, "value": {"decode": "json", "schema": [inner]}}
    lake.configure(Archive.model_validate({**lake.archive.model_dump(), "source": source}))
    lake.run(1)
    [key] = lake.stored()
    assert [row["a.b"] for row in parquet(lake.store.get(key) or b"")] == [{"c.d": n} for n in range(5)]
    assert not lake.audit(deep=True).findings


def test_columns_that_readers_do_not_tell_apart_need_other_names(tmp_path: Path) -> None:
    lake = lake_of("value", "parquet")
    for offset in range(5):
        lake.odd[P0, offset] = {"value": b'{"id": 1, "ID": 2, "date": "2001-01-01"}', "timestamp": to_ms(FIRST)}
    columns = [{"name": n, "type": k} for n, k in (("id", "int64"), ("ID", "int64"), ("date", "date"))]
    source = {"topics": ["orders"], "settle": 0, "value": {"decode": "json", "schema": columns}}
    document = {**lake.archive.model_dump(), "source": source}
    for rename, refused in (({}, "'id' and 'ID'"), ({"ID": "id_2"}, "a column 'date'"), ({"date": "on"}, "'ID'")):
        lake.configure(Archive.model_validate({**document, "store": {**document["store"], "rename": rename}}))
        with pytest.raises(ConfigError, match=refused):
            lake.run(1)
        assert lake.ledger.planned(1) is None
    lake.configure(
        Archive.model_validate({**document, "store": {**document["store"], "rename": {"date": "on", "ID": "old"}}})
    )
    lake.run(1)
    [key] = lake.stored()
    path = tmp_path / key
    path.parent.mkdir(parents=True)
    path.write_bytes(lake.store.get(key) or b"")
    rows = duckdb.sql(f"select distinct id, old, \"on\"::text, date::text from '{tmp_path}/**/*.parquet'").fetchall()
    assert rows == [(1, 2, "2001-01-01", f"{FIRST:%Y-%m-%d}")]
    assert dataset(tmp_path / "orders", partitioning="hive").to_table().column("date")[0].as_py() == rows[0][3]
    assert not lake.audit(deep=True).findings


def test_an_option_that_does_not_fit_the_columns_is_refused_before_anything_is_planned() -> None:
    lake = lake_of("value", "parquet")
    store = lake.archive.store.model_copy(update={"options": {"bloom_filters": ["nobody"]}})
    lake.configure(lake.archive.model_copy(update={"store": store}))
    with pytest.raises(
        ConfigError, match=r"store\.options\.bloom_filters: found 'nobody', expected columns of .*price"
    ):
        lake.run(1)
    assert lake.ledger.planned(1) is None
