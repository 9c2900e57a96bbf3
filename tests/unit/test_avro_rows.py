"""rows.c: `test_decode_avro` compares what it gives with Python; here is what it does to memory."""

import json
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.avro.compiled import compiled
from kafka_archiver.records.avro.resolve import resolve
from kafka_archiver.records.avro.schema import parse
from kafka_archiver.records.decode.avro import make
from kafka_archiver.records.decode.base import DecoderInput
from kafka_archiver.records.rows.filled import CompiledRows
from kafka_archiver.records.rows.library import library
from kafka_archiver.records.vectors import bounds
from tests.unit.test_decode_avro import encode, written

pytestmark = [pytest.mark.unit, pytest.mark.skipif(library() is None, reason="rows.c is not compiled")]


def reading(schema: Any) -> CompiledRows | None:
    parsed = parse(Schema(kind="AVRO", text=json.dumps(schema)))
    return compiled(resolve(parsed, parsed))


@given(written(), st.lists(st.binary(max_size=30), max_size=4), st.data())
def test_memory_that_is_too_small_is_an_answer_and_never_a_write(
    case: tuple[Any, list[bytes], list[Any]], odd: list[bytes], data: st.DataObject
) -> None:
    schema, rows, _ = case
    in_c = reading(schema)
    if in_c is None:
        return
    arenas = []
    allocate = in_c._allocate

    def small(rows: Any, used: Any) -> Any:
        if not arenas:
            for sizes in (rows, used):
                sizes[:] = data.draw(st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows)))
        arena, places, nodes = allocate(rows, used)
        memory = np.frombuffer(arena, np.uint8)
        memory[:] = 7
        arenas.append((memory, places, in_c._sizes(rows, used)))
        return arena, places, nodes

    values = pa.array([*rows, *odd, *rows], pa.binary())
    parts = bounds(values)
    with mock.patch.object(in_c, "_allocate", small):
        some = in_c.read(*parts)
    for memory, places, sizes in arenas:
        mine = np.zeros(len(memory), np.bool_)
        for start, size in zip(places.ravel().tolist(), sizes.ravel().tolist(), strict=True):
            mine[start : start + size] = True
        assert (memory[~mine] == 7).all()
    again = in_c.read(*parts)
    if some is None or again is None:
        assert some is again
        return
    assert some[0].to_string(window=1000) == again[0].to_string(window=1000)
    assert some[1].tolist() == again[1].tolist()


@pytest.mark.parametrize("count", [64, 65, 300])
def test_of_entries_with_one_key_the_last_one_counts_however_many_there_are(count: int) -> None:
    schema = {"type": "map", "values": "int"}
    entries = {str(n): n for n in range(count)}
    block = encode(schema, entries)[:-1]
    value = block + encode(schema, {"0": -1})
    decoder = make(DecoderInput(Schema(kind="AVRO", text=json.dumps(schema))))
    column = decoder.decode(pa.array([encode(schema, entries), value], pa.binary())).column
    assert list(map(dict, column.to_pylist())) == [entries, entries | {"0": -1}]
