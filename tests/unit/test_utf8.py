"""The rules of UTF-8: Python's verdict, for all short sequences of the bytes at which the ranges of Unicode end."""

from collections.abc import Callable
from itertools import product

import pyarrow as pa
import pytest

from kafka_archiver.records.formats.shared.utf8 import broken_texts, not_utf8, utf8_and_others

pytestmark = pytest.mark.unit

EDGES = bytes.fromhex("00 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")


def is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_it_is_what_python_decodes() -> None:
    values = [bytes(some) for length in range(5) for some in product(EDGES, repeat=length)]
    values += ["é".encode() * 10**6, "é".encode() * 10**6 + b"\xc3"]
    positions = not_utf8(pa.array([None, *values, None], pa.binary()).slice(1))
    assert positions.tolist() == [place for place, value in enumerate(values) if not is_utf8(value)]


@pytest.mark.parametrize("values", [[b"a", None], [b"\xff", None, b"\xfe"], [b"\xff", None, b"a"], [None], []])
def test_each_value_is_on_its_side(values: list[bytes | None]) -> None:
    text, not_text = utf8_and_others(pa.array(values, pa.binary()))
    good = [value is not None and is_utf8(value) for value in values]
    assert text.to_pylist() == [value if ok else None for value, ok in zip(values, good, strict=True)]
    assert not_text.to_pylist() == [None if ok else value for value, ok in zip(values, good, strict=True)]


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda text: text,
        lambda text: pa.StructArray.from_arrays([pa.nulls(len(text)), text], ["a", "b"]),
        lambda text: pa.ListArray.from_arrays(pa.array(range(len(text) + 1), pa.int32()), text),
        lambda text: pa.MapArray.from_arrays(pa.array(range(len(text) + 1), pa.int32()), text.fill_null("b"), text),
        lambda text: pa.MapArray.from_arrays(pa.array(range(len(text) + 1), pa.int32()), numbers(text), text),
    ],
)
def test_broken_text_is_found_at_any_depth(wrapped: Callable[[pa.Array], pa.Array]) -> None:
    text = pa.array([b"\xff", b"a", None, b"\xff", b"", b"\xff"], pa.binary()).cast(pa.string(), safe=False)
    for depth in range(3):
        column = text
        for _ in range(depth + 1):
            column = wrapped(column)
        assert broken_texts(column).tolist() == [0, 3, 5]
        assert broken_texts(column.slice(1, 4)).tolist() == [2]
        assert broken_texts(column.slice(1, 2)).tolist() == []
        if column.type in (pa.string(),) or pa.types.is_map(column.type):
            break


def numbers(text: pa.Array) -> pa.Array:
    return pa.array(range(len(text)), pa.int32())
