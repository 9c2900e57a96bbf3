"""The paths of records by their values: never one for two values, and no record without a place or a mark."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.model.layouts.registry import form_of, named, place_in, resolve
from kafka_archiver.model.layouts.segment import segment
from kafka_archiver.model.object_keys import ObjectName
from kafka_archiver.model.settings import EventTime, Settings
from kafka_archiver.records.formats.shared.plain_types import LOGICAL
from kafka_archiver.records.pipeline.base import NONE, TIME, Marks
from kafka_archiver.records.pipeline.filing.event_time import time_stage
from kafka_archiver.records.pipeline.filing.paths import LONGEST_KEY, LayoutStage, Paths
from kafka_archiver.records.pipeline.filing.values import Extract, as_texts
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.records.writer.result import Limits
from tests.support.chunks import Row, batch, chunk_of, cut, facts, new_store, read_values, write

pytestmark = pytest.mark.unit

NULL = "__HIVE_DEFAULT_PARTITION__"
STRANGE = [
    "",
    ".",
    "..",
    "/",
    "a/b",
    "a",
    "A",
    "+",
    "%",
    "%2F",
    "é",
    "e\u0301",
    "\u0000",
    NULL,
    "%5F" + NULL[1:],
    "_ledger",
]
STRANGE += [
    "a-b",
    "a_b",
    "-",
    "=",
    "a=b",
    "x" * 1000,
    "x" * 999 + "y",
    "é" * 500,
    "\ud83d",
    "\ud83d\ude00",
    "1",
    "null",
    "+1",
]
VALUES = st.none() | st.sampled_from(STRANGE) | st.text(max_size=20) | st.integers(-(2**70), 2**70) | st.booleans()
LAYOUTS: list[Any] = [
    {"fields": ["value.a", "value.b"], "missing": "null"},
    {"fields": ["value.a", "value.b"], "missing": "null", "style": "values"},
    {"fields": ["value.a", "value.b"], "missing": "null", "longest": 40},
    {"path": "{topic}/{value.a}-{value.b}", "missing": "null"},
    {"path": "{topic}/x{value.a}_{partition}_{value.b}/{yyyy}", "missing": "null", "null_name": "none"},
    {"name": "confluent_field", "fields": ["value.a", "value.b"], "missing": "null", "directory_delimiter": "--"},
    {"name": "lenses_values", "fields": ["value.a", "value.b"], "missing": "null"},
]


def settings_of(layout: Any, **more: Any) -> Settings:
    name, options = named(layout)
    return resolve(Settings(**{"layout": name, "layout_options": options, "value_decode": "json", **more}))


def filed(settings: Settings, rows: Sequence[Row], most: int | None = None) -> tuple[list[str], Marks]:
    """The key of each row, empty if it has none, and the marks."""
    form, chunk, marks = form_of(settings), chunk_of(0, 10**6), Marks()
    paths = Paths(form, chunk, settings, most)
    parts = paths.parts(batch(rows), marks).tolist()
    gone = set(marks.offsets().tolist())
    own = ObjectName(chunk.topic, chunk.partition, chunk.start)
    keys = [
        form.key(own, paths.path(p), ".x") if r.offset not in gone else "" for r, p in zip(rows, parts, strict=True)
    ]
    return keys, marks


def text(value: Any) -> str | None:
    """Return the text of a value in a path."""
    return None if value is None else value if isinstance(value, str) else json.dumps(value)


def documents(values: Sequence[Any]) -> list[Row]:
    return [Row(n, 0, value=json.dumps(v).encode("utf-8", "surrogatepass")) for n, v in enumerate(values)]


@given(st.sampled_from(LAYOUTS), st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12))
def test_records_share_a_key_if_and_only_if_they_have_the_same_values(
    layout: Any, pairs: list[tuple[Any, Any]]
) -> None:
    settings = settings_of(layout)
    keys, marks = filed(settings, documents([{"a": a, "b": b} for a, b in pairs]))
    assert not marks
    for key, pair in zip(keys, pairs, strict=True):
        for other, other_pair in zip(keys, pairs, strict=True):
            assert (key == other) == ([*map(text, pair)] == [*map(text, other_pair)])
        assert len(key.encode()) <= LONGEST_KEY
        assert place_in(settings, key) == ObjectName("orders", 3, 0)
        assert not {"", ".", ".."} & set(key.split("/"))
        assert key.split("/")[0] not in ("_ledger", "_dead_letter")


@given(
    st.text(), st.text(), st.sampled_from(["", "-", "_.", "~"]), st.sampled_from([NULL, "none"]), st.integers(40, 300)
)
def test_a_text_of_a_path_is_of_one_value(value: str, other: str, also: str, null: str, longest: int) -> None:
    text = segment(value, also, null, longest)
    assert len(text) <= longest
    assert text not in (null, "", ".", "..")
    assert not set(also + "/") & set(text)
    assert (text == segment(other, also, null, longest)) == (value == other)


@given(st.lists(VALUES, min_size=1, max_size=30), st.integers(1, 30))
def test_every_record_is_in_exactly_one_object_however_it_is_read(values: list[Any], size: int) -> None:
    settings = settings_of({"fields": ["value.a"], "missing": "null"})
    update = {name: getattr(settings, name) for name in ("layout", "layout_options", "value_decode")}
    rows = [
        row._replace(value=json.dumps({"a": v, "n": n}).encode())
        for n, (row, v) in enumerate(zip(documents(values), values, strict=True))
    ]
    store, chunk = new_store(), chunk_of(0, len(rows))
    result = write(chunk, cut(rows, size), store, Limits(memory_bytes=64 << 10, open_objects=2), **update)
    assert facts(result) == facts(write(chunk, cut(rows, 1000), **update))
    numbers = [
        json.loads(line)["n"] for e in complete([result], store) for line in read_values(store.get(e.key) or b"")
    ]
    assert sorted(numbers) == list(range(len(rows)))
    assert len(result.objects) == len({text(value) for value in values})


@pytest.mark.parametrize(
    ("missing", "kept", "rejected", "filtered"),
    [("bad_record", [2], [0, 1, 3, 4, 5], []), ("null", [0, 1, 2, 3, 5], [4], []), ("skip", [2], [4], [0, 1, 3, 5])],
)
def test_a_record_without_the_value(missing: str, kept: list[int], rejected: list[int], filtered: list[int]) -> None:
    rows = [
        *documents([{"a": None}, {"b": 1}, {"a": "x"}, 7, {"a": {"b": 1}}]),
        Row(5, 0, value=None),
    ]
    keys, marks = filed(settings_of({"fields": ["value.a"], "missing": missing}), rows)
    assert [n for n, key in enumerate(keys) if key] == kept
    assert sorted(marks.rejected) == rejected
    assert marks.filtered().tolist() == filtered
    assert "value.a is an object, which has no place in a path" in marks.rejected[4]
    if missing == "bad_record":
        assert marks.rejected[0] == (
            "it cannot be filed: value.a is null or missing (`store.layout.missing` was bad_record)"
        )
    if missing == "null":
        assert f"/a={NULL}/" in keys[0]


def test_the_reason_names_what_is_missing() -> None:
    rows = [row._replace(key=key) for row, key in zip(documents([{"a": 1}, {}, {}]), [None, b"k", None], strict=True)]
    _, marks = filed(settings_of({"fields": ["value.a", "key"]}), rows)
    missing = ["key is", "value.a is", "value.a and key are"]
    for offset, what in enumerate(missing):
        assert marks.rejected[offset].startswith(f"it cannot be filed: {what} null or missing")


def test_keys_and_headers_are_values_too() -> None:
    rows = [
        Row(0, 0, key=b"k", headers=(("x", b"1"), ("x", b"2"))),
        Row(1, 0, key=b"\xff", headers=(("x", b"1"),)),
        Row(2, 0, key=b"", headers=()),
        Row(3, 0, key=None, headers=(("x", None),)),
    ]
    settings = settings_of({"fields": ["key", "header.x"], "missing": "null"})
    assert settings.whole_records
    keys, marks = filed(settings, rows)
    folders = [key.removeprefix("orders/").rpartition("/")[0] for key in keys]
    assert folders == ["key=k/x=2", "", f"key=+/x={NULL}", f"key={NULL}/x={NULL}"]
    assert marks.rejected == {1: "key is no UTF-8 text, so it has no place in a path"}


def test_fields_inside_of_others_and_of_json_keys() -> None:
    rows = [Row(0, 0, key=b'{"id": 1.50}', value=b'{"a": {"b": "x", "b": "y"}}')]
    settings = settings_of(
        {"fields": ["value.a.b", "key.id", {"field": "value.a.b", "as": "again"}]}, key_decode="json"
    )
    assert filed(settings, rows)[0] == ["orders/b=y/id=1.50/again=y/orders+3+00000000000000000000.x"]


def test_buckets_of_a_field_are_few() -> None:
    settings = settings_of({"fields": [{"field": "value.user", "buckets": 16}]})
    keys, _ = filed(settings, documents([{"user": f"u{n}"} for n in range(500)]), most=16)
    assert sorted({key.split("/")[1] for key in keys}) == [f"user={n:02d}" for n in range(16)]


def test_too_many_paths_stop_the_chunk_and_name_the_field() -> None:
    settings = settings_of({"fields": ["value.country", "value.user"]})
    rows = documents([{"country": n % 2, "user": n} for n in range(11)])
    with pytest.raises(
        PermanentError, match=r"more than 10 paths \(`store.max_paths`\); value.user has 11 values"
    ) as failure:
        filed(settings, rows, most=10)
    assert "buckets: `{field: value.user, buckets: 64}`" in str(failure.value)
    assert len(set(filed(settings, rows, most=11)[0])) == 11


def test_a_rejected_record_counts_for_no_limit_and_without_fields_no_field_is_advised() -> None:
    settings = settings_of({"fields": ["value.user"], "missing": "null"})
    _, marks = filed(settings, documents([{"user": [0]}, {"user": 1}, {"user": [2]}]), most=1)
    assert sorted(marks.rejected) == [0, 2]
    with pytest.raises(PermanentError, match=r"For later plans choose another `store.layout`, or a smaller"):
        filed(settings_of({"offsets": 1}), documents([{}, {}]), most=1)


def test_a_key_that_s3_does_not_take_is_a_bad_record() -> None:
    fields = [f"value.f{n}" for n in range(4)]
    settings = settings_of({"fields": fields, "longest": 300})
    long = {f"f{n}": "x" * 250 for n in range(4)}
    keys, marks = filed(settings, documents([long, {**long, "f0": "", "f1": "", "f2": ""}]))
    assert keys[0] == ""
    assert keys[1]
    assert marks.rejected == {0: "its key would have more than 760 bytes below `store.url`"}


@pytest.mark.parametrize(
    ("layout", "name", "message"),
    [
        ({"path": "{topic}/{value.a}{value.b}"}, "", "expected text between two placeholders"),
        ({"path": "{topic}/{value.a}x{value.b}"}, "", "that begins with no letter"),
        ({"path": "{topic}/{what}"}, "", r"the placeholder \{what\}: expected \{topic\}, "),
        ({"path": "{topic}/{yyyy"}, "", "a brace in '{topic}/{yyyy' has no other brace"),
        ({"path": "{topic}/{'a}"}, "", "is not closed"),
        ({"path": "{topic}//{yyyy}"}, "", "divided by single slashes"),
        ({"path": "{topic}/../{yyyy}"}, "", "divided by single slashes"),
        ({"path": "_x/{topic}"}, "", "does not begin with _"),
        ({"path": "{yyyy}"}, "{partition}_{start}", r"store.name: expected \{topic\} in the name or as a folder"),
        ("hourly", "{topic}+{start}", r"expected \{partition\} in the name"),
        ("hourly", "{topic}+{partition}", r"expected \{start\} in the name"),
        ("hourly", "{topic}+{partition}{start}", "expected text between two placeholders"),
        ("hourly", "{partition}-{start}-{topic}", r"something after \{topic\} at the end"),
        ("hourly", "{partition}+r{start}+{topic}.", r"without \+g, \+r, \+k and \+s"),
        ("hourly", "{topic}/{partition}+{start}", "a name without slashes"),
        ("hourly", ".{topic}+{partition}+{start}", r"does not begin with _ or \., which Spark skips"),
        ({"fields": ["value.`a.b`"]}, "", "expected a field without backticks"),
        ("hourly", "{topic}+{partition}+{start}+{HH}", r"expected only \{topic\}, \{partition\} and \{start\}"),
        ({"path": "{topic}/{start}"}, "", r"expected \{start\} only in the name"),
        ({"path": "{topic}/{value.a}", "missing": "null", "null_name": "a/b"}, "", "letters, digits"),
        ({"path": "{topic}/{value.a}-{value.b}", "missing": "null", "null_name": "a-b"}, "", "without '-'"),
        ({"fields": ["value.a", "key.a"]}, "", "a column of its own for each field, found 'a' twice"),
        ({"fields": ["values.a"]}, "", "a field like value.country, key, key.id or header.x, found 'values.a'"),
        ({"fields": ["key.a"]}, "", "key.a is a field of the key, so it needs `source.key.decode: json`"),
        ({"name": "daily", "timezone": "Mars"}, "", "the name of a time zone"),
        ({"name": "daily", "locale": "en"}, "{topic}+{partition}+{start", "a brace in"),
        ({"name": "daily", "zone_data": "x"}, "", "is what the archiver adds to its plans"),
        ({"name": "daily", "hours": 1}, "", "`store.layout.hours` is not an option: layout daily has timezone, locale"),
        ({"timezone": "UTC"}, "", "expected `name`"),
        ({"path": "{topic}/{yyyy}", "every": "1y"}, "", "a time like 30s, 15m"),
    ],
)  # fmt: skip
def test_a_layout_that_makes_no_sense_is_refused(layout: Any, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_of(layout, name=name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("{topic}-{partition:5}-{start:12}", "a-1-00003-000000000042"),
        ("{start}.{partition}", "42.3"),
        ("part-{topic}_{partition:3}@{start:20}!", "part-a-1_003@00000000000000000042!"),
    ],
)
def test_names_of_the_archive_s_own(name: str, expected: str) -> None:
    settings = settings_of("hourly", name=name)
    place = ObjectName("a-1", 3, 42, 0, 7)
    key = form_of(settings).key(place, "date=x-y-z/hour=05", ".avro", "+s3")
    assert key == f"a-1/date=x-y-z/hour=05/{expected}+r7+s3.avro"
    assert place_in(settings, key) == place


TYPED: list[tuple[pa.Array, list[str | None]]] = [
    (pa.array([UUID(int=1).bytes, None], pa.uuid()), [str(UUID(int=1)), None]),
    (pa.array([b"ab", b"\xff\xff"], pa.binary(2)), ["ab", "no UTF-8"]),
    (pa.array([0, 10**8], pa.date32()), ["1970-01-01", "100000000"]),
    # Arrow's text would be 17036-07-06 of the first, and no text that is a date of the other.
    (pa.array([2**62, -(2**62)], pa.timestamp("us")), [str(2**62), str(-(2**62))]),
    (pa.array([1, None], pa.timestamp("us", "UTC")), ["1970-01-01 00:00:00.000001Z", None]),
]


@pytest.mark.parametrize(("column", "texts"), TYPED, ids=lambda column_type: str(getattr(column_type, "type", "")))
def test_each_value_of_a_column_has_a_text_of_its_own(column: pa.Array, texts: list[str | None]) -> None:
    indices, actual = as_texts(column)
    shown = ["no UTF-8" if text is None else text for text in actual]
    assert [None if n is None else shown[n] for n in indices.to_pylist()] == texts


def test_16_bytes_that_avro_calls_a_uuid_are_one() -> None:
    inner = pa.field("id", pa.binary(16), metadata={LOGICAL: b"uuid"})
    column = pa.StructArray.from_arrays([pa.array([UUID(int=7).bytes, None], pa.binary(16))], fields=[inner])
    text = Extract("value.id", Settings(value_decode="avro"))(pa.record_batch([column], ["value_decoded"]))
    assert text.values.to_pylist() == [str(UUID(int=7)), None]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([-1, -1000, -1001, 0, 1999, None], pa.timestamp("us")), [-1, -1, -2, 0, 1, NONE]),
        (pa.array([-1, 1_999_999], pa.timestamp("ns", "UTC")), [-1, 1]),
        (pa.array([253_402_300_799, 253_402_300_800, 2**62], pa.timestamp("s")), [253_402_300_799_000, NONE, NONE]),
        (pa.array([2**62, -(2**62)], pa.timestamp("us")), [NONE, NONE]),
        (pa.array([-1, 2**31 - 1], pa.date32()), [-86_400_000, NONE]),
    ],
    ids=lambda column_type: str(getattr(column_type, "type", "")),
)
def test_times_of_columns_are_rounded_down_and_of_the_years_1_to_9999(column: pa.Array, expected: list[int]) -> None:
    stage = time_stage(Settings(value_decode="avro", time=EventTime(source="value", field="t")))
    assert stage
    numbers = pa.array(range(len(column)), pa.int64())
    values = pa.StructArray.from_arrays([column], ["t"])
    marks = Marks()
    filed = stage(pa.record_batch([numbers, numbers, values], ["offset", "timestamp", "value_decoded"]), marks)
    assert filed.column(TIME).to_pylist() == expected
    assert sorted(marks.rejected) == [n for n, time in enumerate(expected) if time == NONE]


def test_a_row_without_the_value_is_left_out_and_the_other_rows_of_its_record_stay() -> None:
    values = [b'{"a":1}', b"{}", b'{"a":2}', b"{}", b"{}", b'{"a":{}}', b"{}"]
    rows = [Row(offset, 0, value=value) for offset, value in zip([0, 0, 0, 1, 1, 2, 2], values, strict=True)]
    settings = settings_of({"fields": ["value.a"], "missing": "skip"})
    marks = Marks()
    result = LayoutStage(Paths(form_of(settings), chunk_of(0, 9), settings), hours=True)(batch(rows), marks)
    assert result.filter(pc.less(result["offset"], 1))["value"].to_pylist() == [b'{"a":1}', b'{"a":2}']
    assert (marks.filtered().tolist(), list(marks.rejected)) == ([1], [2])
