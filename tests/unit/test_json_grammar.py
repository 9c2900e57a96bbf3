"""The text of one JSON document: the grammar of RFC 8259, as Python's strict parser has it, on any stack."""

import json
import sys
import threading
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_archiver.records.json_grammar import DEEPEST, _walk, is_json
from kafka_archiver.records.writer.result import Limits
from tests.support.chunks import HOUR, Row, chunk_of, cut, facts, write

pytestmark = pytest.mark.unit


def strict(value: bytes) -> bool:
    """Python's verdict, where neither sizes of numbers nor words that are none of JSON's count."""

    def refuse(word: str) -> Any:
        raise ValueError(word)

    try:
        json.loads(value.decode(), parse_constant=refuse, parse_int=str, parse_float=str)
    except ValueError:
        return False
    return True


PIECES = [
    *'{}[]",:019-+.eE\\/u \t\n\r\x00\x1f\x7f\x0b', "true", "false", "null", "NaN", "Infinity", "\\u12", "\\ud83d",
    "\\udc00", "\\n", "\\x", "\\/", "é", "\ufeff", "\u2028", '"k":', "[1,", "{}",
]  # fmt: skip
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
texts = (
    st.lists(st.sampled_from(PIECES), max_size=10).map("".join)
    | st.builds(lambda d, indent, plain: json.dumps(d, indent=indent, ensure_ascii=plain), documents,
                st.sampled_from([None, 0, 2]), st.booleans())
)  # fmt: skip


@st.composite
def edited(draw: st.DrawFn) -> bytes:
    """A text, in which something may be left out, put in, or be another byte."""
    value = draw(texts.map(str.encode) | st.binary(max_size=20))
    at = draw(st.integers(0, len(value)))
    what = draw(st.just(b"") | st.sampled_from(PIECES).map(str.encode) | st.binary(max_size=2))
    return value[:at] + what + value[at + draw(st.integers(0, 1)) :]


@given(edited())
@example(b'"\\ud800"')
@example(b'["cut in the middle of an emoji: \\ud83d"]')
@example(b'"\\\\ud800"x')
@example(b"1e999")
@example(b"-0.0E-99999")
@example(b"9" * 5000)
@example(b'{"a":1,"a":2}')
@example(b"\xef\xbb\xbf{}")
@example(b'"\xed\xa0\x80"')
@example(b"[NaN]")
@example(b"[1,]")
@example(b"{} {}")
@example(b"")
def test_it_is_the_grammar_by_either_way(value: bytes) -> None:
    expected = strict(value)
    assert is_json(value) == expected
    try:
        value.decode()
    except UnicodeDecodeError:
        return
    assert _walk(value) == expected


def called_from(depth: int, value: bytes) -> bool:
    return called_from(depth - 1, value) if depth else is_json(value)


def in_a_thread(value: bytes) -> bool:
    verdicts: list[bool] = []
    thread = threading.Thread(target=lambda: verdicts.append(called_from(7, value)))
    thread.start()
    thread.join()
    return verdicts[0]


NESTS = {"arrays": (b"[", b"]"), "objects": (b'{"k": ', b"}")}


@pytest.mark.parametrize("inner", [b"1", b"1e999", b'"\\ud800"', b'"[[[["', b"x"])
@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("depth", [1, 300, 700, 900, 940, 980, DEEPEST, DEEPEST + 1, 5000, 100_000])
def test_how_deep_it_may_be_does_not_depend_on_the_callers_stack(depth: int, nest: str, inner: bytes) -> None:
    opened, closed = NESTS[nest]
    value = opened * depth + inner + closed * depth
    expected = depth <= DEEPEST and inner != b"x"
    assert {called_from(deep, value) for deep in (0, 30, 300, 600, 850)} == {expected}
    assert in_a_thread(value) == expected


def test_nor_on_how_deep_python_may_go() -> None:
    before = sys.getrecursionlimit()
    value = b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1)
    wide = b"[" + b"[]," * 5000 + b"1]"
    try:
        sys.setrecursionlimit(20_000)
        assert (is_json(value), is_json(value[1:-1]), is_json(wide)) == (False, True, True)
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("depth", [*range(930, 1000, 6), DEEPEST, DEEPEST + 1])
def test_limits_of_a_task_never_change_what_is_json(depth: int) -> None:
    deep = b"[" * depth + b"1e999" + b"]" * depth
    rows = [*(Row(n, n * HOUR, value=b"1") for n in range(3)), Row(3, 3 * HOUR, value=deep)]
    written = [
        facts(
            write(chunk_of(0, 4), cut(rows, 10), limits=Limits(open_objects=n), bad_record="skip", value_decode="json")
        )
        for n in (64, 2)
    ]
    assert written[0] == written[1]
    assert written[0]["account"]["archived"] == 3 + (depth <= DEEPEST)
