"""Blocks of records are read column by column as fastavro reads them, or not at all."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats import get_format
from kafka_archiver.records.formats.avro.plain import plain_records
from kafka_archiver.records.formats.avro.reader import read_records
from kafka_archiver.records.formats.avro.schema import schema_of, stored
from kafka_archiver.records.formats.base import RECORD, Target
from kafka_archiver.records.formats.registry import resolve
from tests.support.chunks import Row, batch

pytestmark = pytest.mark.unit
# As a record begins: the topic and the partition.
BEGIN = b"\x0corders\x06"
texts = st.binary(max_size=9) | st.just(BEGIN)
rows = st.lists(
    st.builds(
        Row,
        st.just(0),
        st.integers(-(2**63), 2**63 - 1),
        st.sampled_from([0, 1]),
        st.none() | texts,
        st.none() | texts,
        st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3).map(tuple),
    ),
    max_size=12,
)


def target(codec: str = "none") -> Target:
    settings = resolve(Settings(format="avro", content="record", codec=codec))
    return Target(topic="orders", partition=3, key="orders", settings=settings, schema=RECORD)


def encoded(records: list[Row], codec: str = "none") -> bytes:
    encoder = get_format("avro").encoder(target(codec))
    numbered = [row._replace(offset=2**n) for n, row in enumerate(records)]
    return b"".join(map(bytes, [*encoder.write(batch(numbered)), *encoder.finish()]))


def blocks_of(data: bytes) -> tuple[list[bytes], list[int]]:
    blocks: list[Any] = list(fastavro.block_reader(io.BytesIO(data)))
    return [block.bytes_.getvalue() for block in blocks], [block.num_records for block in blocks]


@given(rows, st.sampled_from(["none", "zstd"]))
@settings(max_examples=150, deadline=None)
def test_an_object_is_read_as_fastavro_reads_it(records: list[Row], codec: str) -> None:
    data = encoded(records, codec)
    read = [row for part in read_records(io.BytesIO(data), target(codec)) for row in part.to_pylist()]
    plain = [row._asdict() | {"headers": [{"key": k, "value": v} for k, v in row.headers]} for row in records]
    numbered = [row | {"topic": "orders", "partition": 3, "offset": 2**n} for n, row in enumerate(plain)]
    assert read == [{name: row[name] for name in RECORD.names} for row in numbered]


@given(rows.filter(bool))
@settings(max_examples=100, deadline=None)
def test_records_are_read_column_by_column_unless_a_value_looks_like_the_begin_of_one(records: list[Row]) -> None:
    columns = plain_records(*blocks_of(encoded(records)))
    if any(BEGIN in (row.key or b"") + (row.value or b"") for row in records):
        assert columns is None
    else:
        assert columns is not None
        columns.validate(full=True)


@given(rows.filter(bool), st.data())
@example([Row(0, 5, headers=(("a", b"1"),))], None)
@settings(max_examples=200, deadline=None)
def test_damaged_blocks_are_left_to_fastavro_or_read_as_it_does(records: list[Row], draw: Any) -> None:
    [block], counts = blocks_of(encoded(records))
    at = 0 if draw is None else draw.draw(st.integers(0, len(block) - 1))
    damaged = block[:at] + bytes([block[at] ^ (1 << (at % 8))]) + block[at + 1 :]
    columns: pa.RecordBatch | None = plain_records([damaged], counts)
    if columns is None:
        return
    columns.validate(full=True)
    schema = json.loads(json.dumps(schema_of(stored(RECORD))).replace('"logicalType"', '"ignored"'))
    source, parsed = io.BytesIO(damaged), fastavro.parse_schema(schema)
    expected = [fastavro.schemaless_reader(source, parsed, None) for _ in range(counts[0])]
    assert not source.read(1)
    assert columns.to_pylist() == expected


def test_several_blocks_are_read_at_once_and_each_must_have_its_records() -> None:
    records = [Row(0, n, key=b"k%d" % n, value=b"v" * n) for n in range(20)]
    parts = [blocks_of(encoded(records[:7]))[0][0], blocks_of(encoded(records[7:]))[0][0]]
    whole = plain_records(parts, [7, 13])
    assert whole is not None
    assert whole.column("value").to_pylist() == [row.value for row in records]
    assert plain_records(parts, [8, 12]) is None
    # A record over the edge of two blocks.
    assert plain_records([parts[0] + parts[1][:3], parts[1][3:]], [7, 13]) is None
