"""`source.headers`: values of headers become columns, which others read with the right types."""

import gzip
import io
import uuid
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.pipeline.headers import last_header
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.plan import plan
from tests.support.avro_records import framed, record
from tests.support.chunks import Row, batch
from tests.support.lake import FIRST, Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
META = record("Meta", "n")
NAMES = st.sampled_from(["a", "b", "a\0", "ü"])


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=3)), max_size=4), max_size=6), NAMES)
def test_the_last_header_of_a_name_counts(headers: list[list[tuple[str, bytes | None]]], name: str) -> None:
    rows = batch([Row(n, 0, headers=tuple(some)) for n, some in enumerate(headers)])
    assert last_header(rows, name).to_pylist() == [dict(some).get(name) for some in headers]


def archive_of(folder: Path, headers: str, content: str, prefix: str = "") -> Archive:
    (folder / "sizes.proto").write_text('syntax = "proto3"; message Other {} message Size { int32 x = 1; }')
    (folder / "meta.avsc").write_bytes(orjson.dumps(META))
    return parse_archive(
        f"""
archive: orders
source: {{topics: [orders], settle: 0, headers: {headers},
  value: {{decode: json, schema: [{{name: n, type: int64}}]}}}}
store: {{url: "memory://unused", format: parquet, content: {content}, metadata_prefix: "{prefix}", chunk_records: 10}}
policies: {{bad_record: dead_letter}}
""",
        str(folder / "orders.yaml"),
    )


def lake_of(archive: Archive, *headers: tuple[tuple[str, bytes | None], ...]) -> Lake:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, len(headers))}, name="orders")
    for offset, some in enumerate(headers):
        lake.odd[P0, offset] = {"headers": some, "timestamp": to_ms(FIRST)}
    lake.configure(archive)
    return lake


@pytest.mark.parametrize(("content", "prefix"), [("value", ""), ("both", "_")])
def test_headers_become_columns_and_bad_ones_dead_letters(tmp_path: Path, content: str, prefix: str) -> None:
    decoders = """{trace-id: {decode: string}, meta: {decode: avro, schema: meta.avsc}, more: {decode: json},
                   size: {decode: protobuf, schema: sizes.proto, message: Size}}"""
    meta = framed(0, META, {"n": 7})[5:]
    lake = lake_of(
        archive_of(tmp_path, decoders, content, prefix),
        (("trace-id", b"x"), ("meta", meta), ("trace-id", "ü".encode()), ("more", b'{"a": 1}'), ("size", b"\x08\x05")),
        (("Trace-Id", b"x"), ("meta", None)),
        (("meta", meta), ("meta", b"")),
        (("trace-id", b"\xff"), ("trace-id", b"ok"), ("more", b"{")),
    )
    run = lake.run(1)
    assert [lake.manifest(run).account[fate] for fate in ("archived", "dead_lettered")] == [2, 2]
    letters, key = lake.stored()
    rows = pq.read_table(io.BytesIO(lake.store.get(key) or b"")).to_pylist()
    names = [f"{prefix}header_{name}" for name in ("trace_id", "meta", "more", "size")]
    assert [[row[name] for name in names] for row in rows] == [["ü", {"n": 7}, '{"a": 1}', {"x": 5}], [None] * 4]
    assert [row["n"] for row in rows] == [0, 1]
    assert not lake.audit(deep=True).findings
    [why, _] = [orjson.loads(line)["error"] for line in _lines(lake.store.get(letters))]
    assert "`source.headers.meta.decode` is avro, but the header meta cannot be decoded" in why


def test_a_decoded_header_is_only_checked_beside_all_that_kafka_had(tmp_path: Path) -> None:
    lake = lake_of(archive_of(tmp_path, "{trace: {decode: string}}", "record"), (("trace", b"\xff"),), ())
    assert lake.manifest(lake.run(1)).account["dead_lettered"] == 1


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ("{a-b: {decode: string}, a_B: {decode: string}}", "source.headers: two headers have the column '_header_a_b'"),
        ("{a: {decode: avro}}", "`schema` (a file beside the YAML) for `decode: avro` of a header"),
        ("{a: {decode: json, schema: infer}}", "`schema` (a file beside the YAML) for `decode: json` of a header"),
        ("{a: {decode: string, schema: meta.avsc}}", "expected no `schema` with `decode: string`"),
    ],
)
def test_headers_that_cannot_be_columns_are_named_before_anything_is_planned(
    tmp_path: Path, headers: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(lake_of(archive_of(tmp_path, headers, "both", "_"), ()).context, hour(-1), "scheduled")
    assert message in str(caught.value)


def _lines(data: bytes | None) -> Any:

    return gzip.decompress(data or b"").splitlines()
