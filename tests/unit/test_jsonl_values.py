"""Values as lines: what is changed, what is refused, and what is neither."""

import json
import mmap
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.errors import BadRecordError
from kafka_archiver.formats.base import Target
from kafka_archiver.formats.jsonl import JsonLines
from kafka_archiver.formats.jsonl.values import value_lines
from kafka_archiver.plan import Decode, Settings

pytestmark = pytest.mark.unit


def target(decode: Decode = "bytes", codec: str = "none") -> Target:
    return Target(topic="orders", partition=3, key="k", settings=Settings(codec=codec, value_decode=decode))


def batch(values: list[bytes | None], first: int = 100) -> pa.RecordBatch:
    offsets = pa.array(range(first, first + len(values)), pa.int64())
    return pa.record_batch({"offset": offsets, "value": pa.array(values, pa.binary())})


def lines(values: list[bytes | None], decode: Decode = "bytes") -> bytes:
    return bytes(value_lines(batch(values), target(decode)))


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
    found = lines(pretty).split(b"\n")
    assert [json.loads(line) for line in found[:-1]] == documents
    assert found[-1] == b""


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize(
    "values", [[b"a\nb"], [b"\n"], [b'{"a":1}\n{"b":2}'], [b'{"a":"x\ny"}'], [b'\xff\n""'], [b"a\n"]]
)
def test_other_line_breaks_are_refused(values: list[bytes], end: bytes) -> None:
    values = [value.replace(b"\n", end) for value in values]
    with pytest.raises(
        BadRecordError, match=r"orders\[3\] offset 101: .* newline or a carriage return .* `store.content: record`"
    ) as caught:
        lines([b"fine", *values, b"fine"])
    assert caught.value.offset == 101


def test_all_bad_records_of_a_batch_are_named_at_once() -> None:
    with pytest.raises(BadRecordError, match=r"offset 101: .*; and 2 more of the same batch") as caught:
        lines([b"1", b"a\nb", b"[\n1]", b"\r", b"2", b"\r\n"])
    assert list(caught.value.records) == [101, 103, 105]
    assert caught.value.reason == caught.value.records[101]


def test_nothing_of_a_refused_batch_is_taken() -> None:
    encoder = JsonLines().encoder(target(codec="gzip"))
    again = JsonLines().encoder(target(codec="gzip"))
    encoder.write(batch([b"1"]))
    with pytest.raises(BadRecordError):
        encoder.write(batch([b"2", b"a\nb"]))
    encoder.write(batch([b"2"]))
    again.write(batch([b"1", b"2"]))
    assert encoder.finish() == again.finish()


def test_the_error_survives_the_way_to_the_driver() -> None:
    error = BadRecordError("orders", 3, {8: "late", 7: "early"})
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.records, copy.offset) == (str(error), {7: "early", 8: "late"}, 7)


class TestDecodeJson:
    def test_documents_and_tombstones_pass(self) -> None:
        values = [b"{}", None, b" 1 ", b"null", b'"\xc3\xbc"', b"[\n]"]
        assert lines(values, "json") == b'{}\nnull\n 1 \nnull\n"\xc3\xbc"\n[ ]\n'

    @pytest.mark.parametrize("value", [b"", b" ", b"{", b"1 2", b"{}{}", b"NaN", b"'a'", b'"\xff"', b'{"a":1,}'])
    def test_others_are_refused(self, value: bytes) -> None:
        with pytest.raises(BadRecordError, match=r"offset 101: .* is not one JSON document") as caught:
            lines([b"1", value, b"2", value], "json")
        assert list(caught.value.records) == [101, 103]

    def test_bytes_are_not_looked_at(self) -> None:
        assert lines([b"{", b"\xff"]) == b"{\n\xff\n"


def test_positions_beyond_two_gibibytes_do_not_overflow() -> None:
    # Memory that is never touched, and behind it the values that are.
    large = mmap.mmap(-1, 3 << 30)
    large[-4:] = b'"ab"'
    positions = pa.array([0, len(large) - 4, len(large) - 3, len(large)], pa.int64()).buffers()[1]
    values = pa.Array.from_buffers(pa.large_binary(), 3, [None, positions, pa.py_buffer(large)])
    whole = pa.record_batch({"offset": pa.array([1, 2, 3], pa.int64()), "value": values})
    assert bytes(value_lines(whole.slice(1), target())) == b'"\nab"\n'
