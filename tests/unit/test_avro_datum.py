"""Our columnwise encoding against fastavro's, record by record."""

import io

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.records.formats.avro.datum import datums, long, longs
from kafka_archiver.records.formats.avro.schema import schema_of, stored
from kafka_archiver.records.formats.base import RECORD
from kafka_archiver.records.formats.shared.records import normalised
from tests.support.chunks import Row, batch
from tests.support.formats import ODD, Case, rows_strategy

pytestmark = pytest.mark.unit

STORED = stored(RECORD)


def by_fastavro(schema: object, value: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)  # type: ignore[arg-type]
    return out.getvalue()


def as_dict(row: Row) -> dict[str, object]:
    headers = [{"key": key, "value": value} for key, value in row.headers]
    return {**row._asdict(), "headers": headers, "topic": "Ömlaut", "partition": 3}


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_as_fastavro_writes_them(numbers: list[int]) -> None:
    assert longs(np.array(numbers, np.int64)).to_pylist() == [by_fastavro({"type": "long"}, n) for n in numbers]


@pytest.mark.parametrize("bits", range(63))
def test_numbers_at_the_edges_of_a_byte(bits: int) -> None:
    for number in (2**bits - 1, 2**bits, -(2**bits), -(2**bits) - 1):
        assert long(number) == by_fastavro({"type": "long"}, number)


@settings(deadline=None)
@given(rows=rows_strategy(Case("avro", "none", "record")), skipped=st.integers(0, 3))
def test_records_are_as_fastavro_writes_them(rows: list[Row], skipped: int) -> None:
    schema = fastavro.parse_schema(schema_of(STORED))
    encoded = datums(normalised(batch(rows)).slice(skipped), STORED, "Ömlaut", 3)
    assert encoded.to_pylist() == [by_fastavro(schema, as_dict(row)) for row in rows[skipped:]]


def test_odd_records_are_as_fastavro_writes_them() -> None:
    schema = fastavro.parse_schema(schema_of(STORED))
    encoded = datums(normalised(batch(ODD)), STORED, "Ömlaut", 3)
    assert encoded.to_pylist() == [by_fastavro(schema, as_dict(row)) for row in ODD]


def test_no_records_are_no_datums() -> None:
    assert datums(normalised(batch([])), STORED, "t", 0).equals(pa.array([], pa.large_binary()))
