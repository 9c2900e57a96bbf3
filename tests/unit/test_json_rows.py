"""JSON in C (rows.c) beside JSON in Python: one gives what the other gives."""

import json
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.records.decode.base import DecoderInput
from kafka_archiver.records.decode.json_text import decoder as decoding
from kafka_archiver.records.decode.json_text.columns import from_columns
from kafka_archiver.records.decode.json_text.compiled import compiled
from kafka_archiver.records.decode.json_text.decoder import make_json
from kafka_archiver.records.decode.json_text.schema import columns_of
from kafka_archiver.records.rows.library import library

pytestmark = [pytest.mark.unit, pytest.mark.skipif(library() is None, reason="rows.c is not compiled")]
COLUMNS: list[dict[str, Any]] = [
    {"name": "s", "type": "string"},
    {"name": "i", "type": "int64"},
    {"name": "small", "type": "int32"},
    {"name": "f", "type": "float64"},
    {"name": "narrow", "type": "float32"},
    {"name": "b", "type": "bool"},
    {"name": "at", "type": "timestamp[ms]"},
    {"name": "é/", "type": "string"},
    {"name": "list", "type": "list", "items": {"type": "list", "items": "int64"}},
    {"name": "map", "type": "map", "items": "string"},
    {"name": "in", "type": "struct", "columns": [{"name": "a", "type": "int64"}, {"name": "b", "type": "string"}]},
]
SCHEMA = from_columns(COLUMNS)
INTEGERS = st.integers(-(2**63) - 2, 2**63 + 2) | st.integers(-5, 5)
# As people and programs write numbers, and as nobody may.
NUMBERS = st.one_of(
    INTEGERS.map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        ["-0", "-0.0", "0.0", "1.0", "1e2", "1E-7", "1e22", "1e23", "123456789012345678", "5e-324", "1e400"]
    ),
    st.sampled_from(["01", "1.", "-", ".5", "+1", "1e", "0x1", "NaN", "9007199254740993", "0.1000000000000000055"]),
    st.from_regex(r"-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)
# Digits that a double or an integer of 64 bits has just, or just not; powers of ten that a double has just, or not.
BOUNDS = [
    *("0", "0.0", "0e1", "9007199254740992", "9007199254740993", "900719925474099.3", "999999999999999999"),
    *("2147483647", "2147483648", "2147483649", "9223372036854775807", "9223372036854775808", "9223372036854775809"),
    *("18446744073709551615", "18446744073709551616", "99999999999999999999", "1e22", "1e23", "3e-22", "3e-23", "7e-1"),
    *("0.100000000000000001", "0.1000000000000000055", "1234567890123456789e-18", "16777217", "3.4028235677973366e38"),
]
TEXTS = st.one_of(
    st.text(max_size=20).map(json.dumps),
    st.text(max_size=20).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(['"\\/\\b\\f"', '"\\x"', '"\\', '"a', "'a'", '"\\ud800"', '"2026-11-25T10:00:00Z"', '"\t"']),
)
PLAIN = NUMBERS | TEXTS | st.sampled_from(["null", "true", "false", "nul", "", "{}", "[]", "[1]", '{"a":1}'])
LISTS = st.lists(st.lists(NUMBERS, max_size=2).map(lambda items: f"[{','.join(items)}]"), max_size=3)
MAPS = st.lists(st.tuples(TEXTS, TEXTS), max_size=3)
SPACES = st.sampled_from(["", "", "", " ", "\n\t\r ", "\f"])
FITTING: dict[str, st.SearchStrategy[str]] = {
    "s": TEXTS,
    "i": INTEGERS.map(str),
    "small": st.integers(-(2**31) - 1, 2**31).map(str),
    "f": NUMBERS,
    "narrow": NUMBERS,
    "b": st.sampled_from(["true", "false"]),
    "at": INTEGERS.map(str) | st.just('"2026-11-25T10:00:00.123Z"'),
    "é/": TEXTS,
    "list": LISTS.map(lambda items: f"[{','.join(items)}]"),
    "map": MAPS.map(lambda pairs: "{" + ",".join(f"{name}:{value}" for name, value in pairs) + "}"),
    "in": st.tuples(INTEGERS, TEXTS).map(lambda pair: f'{{"b":{pair[1]},"a":{pair[0]}}}'),
}


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Return an object in any order of names, mostly of the columns, and what somebody may have done to it."""
    names = draw(st.lists(st.sampled_from([*FITTING, "other"]), max_size=8))
    if draw(st.integers(0, 3)):
        names = list(dict.fromkeys(names))
    pairs = [
        (
            json.dumps(name, ensure_ascii=draw(st.booleans())),
            draw(FITTING.get(name, PLAIN) if draw(st.integers(0, 5)) else PLAIN),
        )
        for name in names
    ]
    space = draw(SPACES)
    text = space + "{" + ",".join(f"{space}{name}{space}:{space}{value}{space}" for name, value in pairs) + "}" + space
    data = text.encode("utf-8", "surrogatepass")
    place = draw(st.integers(0, len(data)))
    return draw(
        st.sampled_from(
            [data] * 6 + [data[:place], data + b"x", data[:place] + b"\xff" + data[place + 1 :], b"null", b"[]"]
        )
    )


def compare(rows: list[bytes]) -> None:
    """Decode both ways. Each row's result must be the same."""
    in_c = make_json(DecoderInput(SCHEMA))
    with mock.patch.object(decoding, "compiled", return_value=None):
        in_python = make_json(DecoderInput(SCHEMA))
    data = pa.array(rows, pa.binary())
    column, reasons, _ = in_c.decode(data)
    column.validate(full=True)
    expected = in_python.decode(data)
    assert dict(reasons) == dict(expected.reasons)
    assert column.type == expected.column.type
    assert column.to_string(window=1000) == expected.column.to_string(window=1000)
    # -0.0 is written otherwise than 0.0.
    assert repr(column.to_pylist()) == repr(expected.column.to_pylist())


@given(st.lists(documents(), min_size=1, max_size=6))
def test_both_give_the_same_of_odd_documents(rows: list[bytes]) -> None:
    compare(rows)


def test_both_give_the_same_of_numbers_at_the_bounds_of_what_c_reads() -> None:
    numbers = [f"{sign}{digits}" for digits in BOUNDS for sign in ("", "-")]
    compare([f'{{"{name}":{number}}}'.encode() for number in numbers for name in ("i", "small", "f", "narrow")])


def test_c_reads_plain_documents_and_none_of_odd_ones() -> None:
    in_c = compiled(columns_of(SCHEMA, "value", 2)[1])
    assert in_c is not None
    plain = (
        b'{"s":"a\\n\\"","i":-1,"small":2,"f":0.1,'
        b'"narrow":1.5,"b":true,"at":3,"list":[[1],[]],"map":{"x":"y"},"in":null}'
    )
    odd = [b'{"s":"\\u0041"}', b'{"other":1}', b'{"i":1,"i":2}', b'{"i":1.0}', b'{"at":"2026-11-25"}', b"{} {}"]
    data = pa.array([plain, *odd], pa.binary())
    parts = decoding.bounds(data)
    passed = in_c.read(*parts)
    assert passed is not None
    column, bad = passed
    assert bad.tolist() == [False] + [True] * len(odd)
    assert column.to_pylist()[0]["s"] == 'a\n"'
