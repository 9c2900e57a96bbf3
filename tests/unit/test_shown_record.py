"""A record on the page: nothing of it is lost, and nothing of it can do anything."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.orchestration.page.shown_record import ShownRecord, indented

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def shown(**fields: Any) -> ShownRecord:
    record = {"topic": "orders", "partition": 1, "offset": 88, "timestamp": 1_795_219_200_123, "timestamp_type": 0}
    return ShownRecord.of(json.dumps({**record, **fields}).encode())


@given(JSON, st.sampled_from([None, (",", ":"), (" ,\n", " : ")]))
def test_json_laid_out_anew_has_the_same_values_in_the_same_order(
    value: Any, separators: tuple[str, str] | None
) -> None:
    text = json.dumps(value, separators=separators)
    assert indented(indented(text)) == indented(text)
    assert json.dumps(json.loads(indented(text))) == json.dumps(value)


def test_json_laid_out_anew_keeps_how_numbers_and_doubled_keys_are_written() -> None:
    assert indented('{"a":1.10,"a":1e5,"b":[],"c":{"d":[1,2]}}') == (
        '{\n  "a": 1.10,\n  "a": 1e5,\n  "b": [],\n  "c": {\n    "d": [\n      1,\n      2\n    ]\n  }\n}'
    )


def test_a_record_has_its_place_its_time_its_key_and_its_headers() -> None:
    record = shown(
        key="k", value='{"id":1.0}', headers=[{"key": "h", "value": None}, {"key": "b", "value_base64": "AA=="}]
    )
    assert (record.place, record.offset, record.error) == ("orders+1@88", 88, "")
    assert f"{record.moment:%H:%M:%S.%f}" == "00:00:00.123000"
    assert record.fields == (("key", "k"), ("header h", "null"), ("header b, base64", "AA=="))
    assert (record.value, record.note) == ('{\n  "id": 1.0\n}', "JSON, laid out anew")


def test_values_that_are_no_text_say_so() -> None:
    assert [(r.value, r.note) for r in (shown(value=None), shown(value_base64="AA=="), shown(value=""))] == [
        ("", "null"), ("AA==", "base64"), ("", "empty"),
    ]  # fmt: skip


@given(st.text(), st.text(), st.text(), st.integers())
def test_no_part_of_a_record_has_a_control_character(key: str, value: str, error: str, timestamp: int) -> None:
    record = shown(key=key, value=value, error=error, timestamp=timestamp, headers=[{"key": value, "value": key}])
    parts = [record.place, record.error, *(text for pair in record.fields for text in pair), *record.value.split("\n")]
    assert all(part.isprintable() for part in parts)
    assert record.moment or ("timestamp", str(timestamp)) in record.fields


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_a_line_that_is_no_record_is_shown_too(line: bytes) -> None:
    assert ShownRecord.of(line).value or not line.strip() or line.startswith(b"{")
