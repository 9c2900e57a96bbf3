"""The bytes of a batch are those of its rows, whatever its types, nulls and place in larger buffers."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.records.formats.parquet.sizes import size_of, sizes_of
from kafka_archiver.records.vectors import binaries

pytestmark = pytest.mark.unit

_TEXT = st.text(max_size=3)
_LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), _TEXT),
    (pa.large_string(), _TEXT),
    (pa.binary(), st.binary(max_size=3)),
    (pa.large_binary(), st.binary(max_size=3)),
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(0, 9)),
    (pa.binary(2), st.binary(min_size=2, max_size=2)),
]


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    """A type, and its values, some of them null."""
    kind, values = draw(st.sampled_from(_LEAVES))
    for _ in range(draw(st.integers(0, 2))):
        values = st.none() | values if draw(st.booleans()) else values
        match draw(st.sampled_from(["list", "struct", "map"])):
            case "list":
                kind, values = pa.list_(kind), st.lists(values, max_size=3)
            case "struct":
                kind, values = pa.struct({"a": kind}), st.fixed_dictionaries({"a": values})
            case _:
                kind, values = pa.map_(pa.string(), kind), st.lists(st.tuples(_TEXT, values), max_size=3)
    return kind, st.none() | values if draw(st.booleans()) else values


@given(st.data(), st.lists(columns(), min_size=2, max_size=2))
def test_a_batch_has_the_bytes_of_its_rows(
    data: st.DataObject, drawn: list[tuple[pa.DataType, st.SearchStrategy[Any]]]
) -> None:
    rows = data.draw(st.integers(0, 6))
    arrays = [pa.array(data.draw(st.lists(of, min_size=rows, max_size=rows)), kind) for kind, of in drawn]
    whole = pa.RecordBatch.from_arrays(arrays, ["a", "b"])
    start = data.draw(st.integers(0, rows))
    batch = whole.slice(start, data.draw(st.integers(0, rows - start)))
    assert size_of(batch, list(batch.schema)) == sizes_of(batch, list(batch.schema)).sum()


def test_bytes_in_the_place_of_a_null_do_not_count() -> None:
    _, ends, content = binaries([b"abc", b"defg"]).buffers()
    is_second = pa.py_buffer(np.packbits([0, 1], bitorder="little"))
    batch = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.binary(), 2, [is_second, ends, content])], ["a"])
    assert size_of(batch, list(batch.schema)) == sizes_of(batch, list(batch.schema)).sum() == 4
