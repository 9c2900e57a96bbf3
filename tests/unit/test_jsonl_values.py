"""Values as lines: what is changed, what is rejected, and what is neither."""

import json
import mmap
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import BadRecordError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats.jsonl.values import one_line_each, value_lines
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.runner import Runner
from kafka_archiver.records.pipeline.stages import stages_of

pytestmark = pytest.mark.unit


def batch(values: list[bytes | None], first: int = 100) -> pa.RecordBatch:
    offsets = pa.array(range(first, first + len(values)), pa.int64())
    return pa.record_batch({"offset": offsets, "timestamp": offsets, "value": pa.array(values, pa.binary())})


def lines(values: list[bytes | None], decode: str = "bytes") -> bytes:
    kept, rejected = Runner(stages_of(Settings.model_validate({"value_decode": decode}))).run(batch(values))
    assert not rejected
    return bytes(value_lines(kept))


def rejected(values: list[bytes | None], decode: str = "bytes") -> dict[int, str]:
    outcome = Runner(stages_of(Settings.model_validate({"value_decode": decode}))).run(batch(values))
    good = [value for offset, value in enumerate(values, 100) if offset not in outcome.rejected]
    assert outcome.kept.column("value").to_pylist() == batch(good).column("value").to_pylist()
    return dict(outcome.rejected)


def test_a_value_is_a_line() -> None:
    values = [b'{"a":1}', b"", None, b"null", b"\xff\x00", b"a\tb\x0b\x0c\x1c\x85", "\u2028".encode()]
    assert lines(values) == b'{"a":1}\n\nnull\nnull\n\xff\x00\na\tb\x0b\x0c\x1c\x85\n\xe2\x80\xa8\n'


def test_line_breaks_between_the_tokens_of_json_become_spaces() -> None:
    pretty = b'{\r\n  "a": "x\\n",\n  "b": [\n1\n]\n}\n'
    assert lines([b"first", pretty, b"\n1", b"\r[\r2]\r", b"last"]) == (
        b'first\n{    "a": "x\\n",   "b": [ 1 ] } \n 1\n [ 2] \nlast\n'
    )
    assert json.loads(lines([pretty])) == json.loads(pretty)


@given(
    st.lists(st.none() | st.recursive(st.integers() | st.text(), st.lists, max_leaves=5), max_size=6),
    st.sampled_from(["\n", "\r", "\r\n"]),
)
def test_pretty_json_stays_the_same_json(documents: list[object], end: str) -> None:
    pretty = [None if d is None else json.dumps(d, indent=2).replace("\n", end).encode() for d in documents]
    written_lines = lines(pretty).split(b"\n")
    assert [json.loads(line) for line in written_lines[:-1]] == documents
    assert written_lines[-1] == b""


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("value", [b"a\nb", b"\n", b'{"a":1}\n{"b":2}', b'{"a":"x\ny"}', b'\xff\n""', b"a\n"])
def test_other_line_breaks_are_rejected(value: bytes, end: bytes) -> None:
    [(offset, reason)] = rejected([b"fine", value.replace(b"\n", end), b"fine"]).items()
    assert offset == 101
    assert "newline or a carriage return" in reason
    assert "set `store.content: record`" in reason


def test_all_bad_records_of_a_batch_are_named_at_once() -> None:
    marks = Marks()
    one_line_each(batch([b"1", b"a\nb", b"[\n1]", b"\r", b"2", b"\r\n"]), marks)
    assert list(marks.rejected) == [101, 103, 105]


@given(st.lists(st.none() | st.sampled_from([b"", b"1", b"[\n1]", b"a\tb", b"a\nb", b"\r"]), max_size=12), st.data())
def test_only_what_has_a_line_break_is_touched_whatever_the_slice_and_the_type(
    values: list[bytes | None], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(values)))
    whole = batch(values)
    if data.draw(st.booleans()):
        whole = whole.set_column(2, "value", whole.column("value").cast(pa.large_binary()))
    marks = Marks()
    kept_lines = one_line_each(whole.slice(start), marks).column("value").to_pylist()
    bad = (b"a\nb", b"\r")
    assert list(marks.rejected) == [100 + n for n, value in enumerate(values) if n >= start and value in bad]
    good = [(a, b) for a, b in zip(values[start:], kept_lines, strict=True) if a not in bad]
    assert [b for _, b in good] == [b"[ 1]" if a == b"[\n1]" else a for a, _ in good]


def test_a_line_break_that_lies_under_a_null_is_nobody_s() -> None:
    data = pa.array([b"a\nb", b"[\n]"]).buffers()
    values = pa.Array.from_buffers(pa.binary(), 2, [pa.py_buffer(b"\x02"), *data[1:]])
    marks = Marks()
    kept_lines = one_line_each(batch([None, b""]).set_column(2, "value", values), marks)
    assert (kept_lines.column("value").to_pylist(), marks.rejected) == ([None, b"[ ]"], {})
    assert bytes(value_lines(kept_lines)) == b"null\n[ ]\n"


def test_the_error_survives_the_way_to_the_driver() -> None:
    error = BadRecordError("orders", 3, {8: "late", 7: "early"})
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.records, copy.offset) == (str(error), {7: "early", 8: "late"}, 7)


class TestDecodeJson:
    def test_documents_and_tombstones_pass(self) -> None:
        values = [b"{}", None, b" 1 ", b"null", b'"\xc3\xbc"', b"[\n]"]
        assert lines(values, "json") == b'{}\nnull\n 1 \nnull\n"\xc3\xbc"\n[ ]\n'

    @pytest.mark.parametrize("value", [b"", b" ", b"{", b"1 2", b"{}{}", b"NaN", b"'a'", b'"\xff"', b'{"a":1,}'])
    def test_others_are_rejected(self, value: bytes) -> None:
        reasons = rejected([b"1", value, b"2", value], "json")
        assert list(reasons) == [101, 103]
        assert all("is not one JSON document" in reason for reason in reasons.values())

    def test_bytes_are_not_looked_at(self) -> None:
        assert lines([b"{", b"\xff"]) == b"{\n\xff\n"


def test_positions_beyond_two_gibibytes_do_not_overflow() -> None:
    # Memory that is never touched, and behind it the values that are.
    large = mmap.mmap(-1, 3 << 30)
    large[-4:] = b'"ab"'
    positions = pa.array([0, len(large) - 4, len(large) - 3, len(large)], pa.int64()).buffers()[1]
    values = pa.Array.from_buffers(pa.large_binary(), 3, [None, positions, pa.py_buffer(large)])
    whole = pa.record_batch({"offset": pa.array([1, 2, 3], pa.int64()), "value": values})
    assert bytes(value_lines(one_line_each(whole.slice(1), Marks()))) == b'"\nab"\n'
