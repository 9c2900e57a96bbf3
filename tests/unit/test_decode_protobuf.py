"""Protobuf: what Protobuf's own library wrote, and what is no message, read with schemas that change."""

import base64
import json
import re
import zipfile
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from hypothesis import assume, given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.schemas import Reference, Schema
from kafka_archiver.records.decode.base import DecoderInput
from kafka_archiver.records.decode.protobuf.decoder import make
from kafka_archiver.records.decode.protobuf.files import _protoc, compiled

pytestmark = pytest.mark.unit

HEAD = 'syntax = "proto3"; package x; '
DEP = 'syntax = "proto2"; package dep; message Old { optional int32 a = 1 [default = 5]; required int32 r = 2; }'
MAIN = """
syntax = "proto3";
package x;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "dep/old.proto";
// One of everything.
message All {
  enum Kind { NONE = 0; ONE = 1; MINUS = -1; }
  message In { Kind k = 2; sint64 q = 1; repeated fixed32 ids = 3; }
  int32 i = 1; // a number
  int64 l = 2; uint32 u = 3; uint64 v = 4; sint32 s = 5; fixed32 f = 6; sfixed64 g = 7;
  float r = 8; double d = 9; bool b = 10; string t = 11; bytes raw = 12;
  optional string maybe = 13; Kind kind = 14; In in = 15; repeated In many = 16; repeated int32 nums = 17;
  map<string, In> by_name = 18; map<int32, Kind> kinds = 19;
  google.protobuf.Timestamp at = 20; google.protobuf.StringValue name = 21; google.type.Date day = 22;
  oneof one { In y = 24; int32 x = 23; }
  dep.Old old = 25; repeated google.protobuf.Timestamp times = 26; repeated double gauges = 27;
}
message Second { message Third { int64 n = 1; } Third third = 1; }
"""


def proto(text: str, *references: Reference) -> Schema:
    return Schema(kind="PROTOBUF", text=text, references=references)


ALL = proto(MAIN, Reference(name="dep/old.proto", imported=proto(DEP)))
DECODER = make(DecoderInput(ALL))
CLASS = GetMessageClass(compiled(ALL).message("All"))


def decoded(decoder: Any, rows: list[bytes | None]) -> tuple[list[Any], dict[int, str]]:
    """The values and the reasons: of all rows at once, and the same of each row alone."""
    data = pa.array(rows, pa.binary())
    column, reasons, _ = decoder.decode(data)
    assert column.type == decoder.field.type
    column.validate(full=True)
    alone = [decoder.decode(data[row : row + 1]) for row in range(len(data))]
    assert pa.concat_arrays([a.column for a in alone]).equals(column)
    assert {row: a.reasons[0] for row, a in enumerate(alone) if a.reasons} == reasons
    return column.to_pylist(), dict(reasons)


def plain(message: Message) -> dict[str, Any]:
    """A message as the column has it, by the descriptors of Protobuf's own library."""
    fields = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type and field.message_type.GetOptions().map_entry:
            inner = field.message_type.fields_by_name["value"]
            fields[field.name] = {key: plain_value(inner, value[key]) for key in sorted(value)}
        elif field.is_repeated:
            fields[field.name] = [plain_value(field, item) for item in value]
        else:
            fields[field.name] = (
                None if field.has_presence and not message.HasField(field.name) else plain_value(field, value)
            )
    return fields


def plain_value(field: Any, value: Any) -> Any:
    if field.enum_type:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    if not field.message_type:
        return value
    if field.message_type.name == "Timestamp":
        return value.seconds * 1_000_000 + value.nanos // 1000
    return value.value if field.message_type.name == "StringValue" else plain(value)


def comparable(value: Any) -> Any:
    """Return what the decoder returns, as `plain` has it; the order of a map says nothing."""
    if isinstance(value, dict):
        maps = {k: dict(sorted(comparable(value[k]), key=itemgetter(0))) for k in ("by_name", "kinds") if k in value}
        return {k: maps.get(k) if k in maps else comparable(v) for k, v in value.items()}
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)
    if isinstance(value, tuple):
        return (value[0], comparable(value[1]))
    return [comparable(item) for item in value] if isinstance(value, list) else value


WORDS = st.lists(st.integers(0, 2**32 - 1), max_size=3)
INS = st.builds(dict, q=st.integers(-(2**63), 2**63 - 1), k=st.sampled_from([0, 1, -1, 7]), ids=WORDS)
TIMES = st.builds(dict, seconds=st.integers(-62_135_596_800, 253_402_300_799), nanos=st.integers(0, 999_999_999))
INT = st.integers(-(2**31), 2**31 - 1)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "i": INT, "l": st.integers(-(2**63), 2**63 - 1), "u": st.integers(0, 2**32 - 1), "v": st.integers(0, 2**64 - 1),
        "s": INT, "f": st.integers(0, 2**32 - 1), "g": st.integers(-(2**63), 2**63 - 1),
        "r": st.floats(width=32, allow_nan=False), "d": st.floats(allow_nan=False), "b": st.booleans(), "t": st.text(),
        "raw": st.binary(), "maybe": st.text(), "kind": st.sampled_from([0, 1, -1, 9]), "in": INS,
        "many": st.lists(INS, max_size=3), "nums": st.lists(INT, max_size=4),
        "by_name": st.dictionaries(st.text(), st.builds(lambda v: CLASS.In(**v), INS), max_size=3),
        "kinds": st.dictionaries(INT, st.sampled_from([0, 1]), max_size=3), "at": TIMES,
        "name": st.builds(dict, value=st.text()), "day": st.builds(dict, year=INT, month=INT), "x": INT, "y": INS,
        "old": st.builds(dict, a=INT, r=INT), "times": st.lists(TIMES, max_size=2),
        "gauges": st.lists(st.floats(allow_nan=False), max_size=3),
    },
)  # fmt: skip


def message(values: dict[str, Any]) -> Message:
    protobuf_message = CLASS(**{key: value for key, value in values.items() if key != "by_name"})
    for key, value in values.get("by_name", {}).items():
        protobuf_message.by_name[key].CopyFrom(value)
    return protobuf_message


@given(st.lists(MESSAGES, min_size=1, max_size=4))
def test_what_protobuf_writes_is_read(drawn: list[dict[str, Any]]) -> None:
    messages = [message(values) for values in drawn]
    values, reasons = decoded(DECODER, [*(m.SerializeToString(deterministic=True) for m in messages), None])
    assert reasons == {}
    assert comparable(values) == [*map(plain, messages), None]


@given(MESSAGES, st.data())
def test_bytes_that_are_no_message_are_never_a_wrong_row(drawn: dict[str, Any], data: st.DataObject) -> None:
    row = message(drawn).SerializeToString(deterministic=True)
    place = data.draw(st.integers(0, len(row)))
    other = data.draw(
        st.sampled_from([row[:place], row + b"\xff", row[place:]])
        | st.binary(max_size=20)
        | st.binary(min_size=1, max_size=2).map(lambda b: row[:place] + b + row[place + 1 :])
    )
    values, reasons = decoded(DECODER, [row, other, row])
    assert comparable([values[0], values[2]]) == [plain(message(drawn))] * 2
    assert set(reasons) <= {1}
    if not reasons:
        # A tag of more than five bytes, or of a field above 536,870,911, is read here; see the guide of formats.
        assume(not re.search(rb"[\x80-\xff]{4}", other))
        parsed = CLASS.FromString(other)
        assert repr(comparable(values[1])) == repr(plain(parsed))
    else:
        assert values[1] is None


def test_types_and_documentation() -> None:
    parts = {part.name: part for part in DECODER.field.type}
    assert DECODER.field.metadata == {b"doc": b"One of everything.", b"avro.name": b"x.All"}
    assert parts["i"].metadata == {b"doc": b"a number"}
    assert {name: str(parts[name].type) for name in ("v", "kind", "in", "by_name", "at", "name", "day", "times")} == {
        "v": "uint64",
        "kind": "string",
        "in": "struct<k: string, q: int64, ids: list<item: uint32>>",
        "by_name": "map<string, struct<k: string, q: int64, ids: list<item: uint32>>>",
        "at": "timestamp[us, tz=UTC]",
        "name": "string",
        "day": "struct<year: int32, month: int32, day: int32>",
        "times": "list<item: timestamp[us, tz=UTC]>",
    }
    assert DECODER.field.nullable


def test_times_out_of_range_and_deep_groups_are_refused() -> None:
    late, early = CLASS(at={"seconds": 253_402_300_800}), CLASS(times=[{"seconds": 0}, {"seconds": -(2**62)}])
    deep = b"\xf3\x3f" * 1_000_000
    rows = [
        CLASS(i=1).SerializeToString(deterministic=True),
        late.SerializeToString(deterministic=True),
        early.SerializeToString(deterministic=True),
        deep,
        b"\xf3\x3f\xf4\x3f",
    ]
    values, reasons = decoded(DECODER, rows)
    assert [value and value["i"] for value in values] == [1, None, None, None, 0]
    assert "not in the years 1 to 9999" in reasons[1]
    assert "not in the years 1 to 9999" in reasons[2]
    assert "do not fit their Protobuf message" in reasons[3]


@pytest.mark.parametrize(
    "row",
    [
        # x and y, y and x; an entry of by_name without anything, and with a key only.
        bytes.fromhex("b80105 c201020802"),
        bytes.fromhex("c201020802 b80105"),
        bytes.fromhex("920100"),
        bytes.fromhex("9201030a0161"),
    ],
)
def test_the_last_member_of_a_oneof_counts_and_a_value_that_a_map_leaves_out_is_its_default(row: bytes) -> None:
    usual = message({"i": 1}).SerializeToString()
    values, reasons = decoded(DECODER, [usual, row, usual])
    assert not reasons
    assert comparable(values[1]) == plain(CLASS.FromString(row))


@pytest.mark.parametrize(
    "row",
    [
        # gauges of two, seven and 129 bytes; with a tag of five bytes; ids of three bytes, in `in` and in a map.
        bytes.fromhex("da01 02 0000"),
        bytes.fromhex("da01 07") + bytes(7),
        bytes.fromhex("da01 8101") + bytes(129),
        bytes.fromhex("da81808000 02 0000"),
        bytes.fromhex("7a05 1a03") + bytes(3),
        bytes.fromhex("920107 1205 1a03") + bytes(3),
    ],
)
def test_packed_numbers_of_a_wrong_length_are_refused(row: bytes) -> None:
    usual = message({"gauges": [1.5], "in": {"ids": [1, 2]}})
    values, reasons = decoded(DECODER, [usual.SerializeToString(), row, usual.SerializeToString()])
    assert comparable([values[0], values[2]]) == [plain(usual)] * 2
    assert "do not fit their Protobuf message" in reasons[1]


def frame(number: int, indexes: bytes, value: bytes) -> bytes:
    return b"\0" + number.to_bytes(4) + indexes + value


def test_frames_say_which_message_it_is() -> None:
    value = b"\x08\x05"
    first = make(DecoderInput(ALL, {7: ALL}, True))
    rows = [
        frame(7, b"\0", value),
        frame(7, b"\2\0", value),
        frame(7, b"\2\2", value),
        frame(7, b"", b""),
        frame(7, b"\0", b"\x08"),
    ]
    values, reasons = decoded(first, [*rows, None])
    assert [v and v["i"] for v in values] == [5, 5, None, None, None, None]
    assert reasons[2] == (
        "the message has the indexes [1], expected [0]: it is Second, not All; "
        "to decode Second, set `source.value.message: Second`"
    )
    assert decoded(first, [frame(7, b"\2\x7e", value)])[1][0] == "the message has the indexes [63], expected [0]"
    assert reasons[3] == "the bytes have no message indexes after the schema id"
    assert "unexpected EOF" in reasons[4]
    nested = make(DecoderInput(ALL, {7: ALL}, True, message="Second.Third"))
    assert decoded(nested, [frame(7, b"\4\2\0", value)]) == ([{"n": 5}], {})


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        (
            "message M { int32 a = 1; string gone = 2; }",
            "message M { int64 b = 1; int32 new = 3; }",
            {"b": 5, "new": 0},
        ),
        ("message M { int32 a = 1; }", "message M { optional int32 n = 2; }", {"n": None}),
        ("message First { string s = 9; } message M { int32 a = 1; }", "message M { int32 a = 1; }", {"a": 5}),
        ("message M { int32 a = 1; }", "message M { repeated int32 a = 1; }", {"a": [5]}),
        ("message M { int64 a = 1; }", "message M { int32 a = 1; }", "field a (1): found type int64, expected int32"),
        ("message M { int32 a = 1; }", "message M { string a = 1; }", "found type int32, expected string"),
        ("message M { int32 a = 1; }", "message M { sint32 a = 1; }", "found type int32, expected sint32"),
        ("message M { repeated int32 a = 1; }", "message M { int32 a = 1; }", "found a repeated field"),
        ("message N { int32 a = 1; }", "message M { int32 a = 1; }", "has no message x.M; it has x.N"),
        (
            "enum E { A = 0; B = 5; } message M { E a = 1; }",
            "enum E { A = 0; C = 5; } message M { E a = 1; }",
            "found B for the enum's number 5, expected C",
        ),
    ],
)
def test_a_message_is_read_as_the_schema_that_the_run_writes(writer: str, reader: str, expected: Any) -> None:
    reader_proto = proto(HEAD + writer)
    decoder = make(DecoderInput(proto(HEAD + reader), {3: reader_proto}, True))
    indexes = b"\2\2" if "First" in writer else b"\0"
    values, reasons = decoded(decoder, [frame(3, indexes, b"\x08\x05")])
    if isinstance(expected, str):
        assert expected in reasons[0]
        assert f"schema id 3 ({reader_proto.fingerprint})" in reasons[0]
    else:
        assert (values, reasons) == ([expected], {})


def test_a_compiled_file_as_base64() -> None:
    """The form that confluent's Python client registers."""
    [dep] = _protoc({"dep/old.proto": DEP}, {}, "")
    old = Reference(
        name="dep/old.proto", imported=proto(base64.b64encode(dep.SerializeToString(deterministic=True)).decode())
    )
    main = _protoc({"dep/old.proto": DEP, "main.proto": MAIN}, {}, "")[-1]
    assert main.name == "main.proto"
    for text in (MAIN, base64.b64encode(main.SerializeToString(deterministic=True)).decode()):
        schema = proto(text, old)
        decoder = make(DecoderInput(schema))
        values, reasons = decoded(decoder, [CLASS(old={"a": 3, "r": 4}).SerializeToString(deterministic=True)])
        assert reasons == {}
        assert values[0]["old"] == {"a": 3, "r": 4}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (proto("message A { int32 a = ; }"), "schema:1:23: Expected field number"),
        (proto(HEAD + "message A { A a = 1; }"), "message x.A contains itself"),
        (proto(HEAD), "has no message"),
        (proto('syntax = "proto2"; message A { optional group G = 1 { optional int32 a = 1; } }'), "A.g is a group"),
        (proto(HEAD + 'import "no.proto"; message A { int32 a = 1; }'), "no.proto: File not found"),
        (proto(MAIN, Reference(name="../x.proto", imported=proto(DEP))), r"imports \.\./x.proto; expected a path"),
    ],
)
def test_schemas_that_are_refused(schema: Schema, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make(DecoderInput(schema))


# Google's own types of any JSON, in each place that a field has.
ANY_JSON = """message M {
  google.protobuf.Struct s = 1; google.protobuf.ListValue l = 2; google.protobuf.Value v = 3;
  repeated google.protobuf.Struct many = 4; map<string, google.protobuf.Value> by_name = 5;
  oneof o { google.protobuf.Struct chosen = 6; int32 other = 7; }
}"""
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)
JSON_OBJECTS = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=200), JSON_VALUES, max_size=3)


@given(JSON_OBJECTS, JSON_OBJECTS, st.lists(JSON_VALUES, max_size=3), JSON_VALUES)
def test_structs_are_json_text(first: Any, more: Any, listed: Any, value: Any) -> None:
    """A message that the bytes have twice is merged."""
    wire, twice = Struct(), Struct()
    wire.update(first)
    twice.update(more)
    items, single = ListValue(), Value()
    items.extend(listed)
    ParseDict(value, single)
    entry = tagged(1, b"k") + tagged(2, single.SerializeToString())
    parts = [(1, wire), (1, twice), (2, items), (3, single), (4, wire), (4, twice), (6, wire)]
    row = b"".join(tagged(number, part.SerializeToString()) for number, part in parts) + tagged(5, entry)
    schema = proto(f'syntax = "proto3"; import "google/protobuf/struct.proto"; {ANY_JSON}')
    [read], reasons = decoded(make(DecoderInput(schema)), [row])
    assert not reasons
    assert json.loads(read["s"]) == first | more
    assert json.loads(read["l"]) == listed
    assert (None if read["v"] is None else json.loads(read["v"])) == value
    assert list(map(json.loads, read["many"])) == [first, more]
    assert read["by_name"] == [("k", read["v"])]
    assert read["chosen"] == read["many"][0]
    assert read["many"][0] == json.dumps(first, sort_keys=True, ensure_ascii=False)


def tagged(number: int, body: bytes) -> bytes:
    """Return a field of bytes."""
    size = len(body)
    digits = b"".join(
        bytes([size >> 7 * n & 127 | (128 if size >> 7 * (n + 1) else 0)]) for n in range(5) if size >> 7 * n
    )
    return bytes([number << 3 | 2]) + (digits or b"\0") + body


def test_a_struct_says_what_json_cannot() -> None:
    schema = proto(f'syntax = "proto3"; import "google/protobuf/struct.proto"; {ANY_JSON}')
    decoder = make(DecoderInput(schema))
    infinite = Value(number_value=float("-inf")).SerializeToString()
    rows, reasons = decoded(decoder, [tagged(3, infinite), b"", tagged(1, tagged(1, b"\xff")), tagged(1, b"")])
    assert [row and (row["s"], row["v"]) for row in rows] == [(None, '"-Infinity"'), (None, None), None, ("{}", None)]
    assert list(reasons) == [2]


def test_files_are_compiled_beside_archives_with_a_folder_of_the_same_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of Spark has the job's jars and zips on its path, and some of them have google/."""
    with zipfile.ZipFile(tmp_path / "some.jar", "w") as jar:
        jar.writestr("google/", "")
        jar.writestr("google/readme.txt", "x")
    monkeypatch.syspath_prepend(str(tmp_path / "some.jar"))
    text = 'syntax = "proto3"; import "google/type/date.proto"; message M { google.type.Date d = 1; }'
    rows, reasons = decoded(make(DecoderInput(proto(text))), [b"\x0a\x02\x08\x05"])
    assert (rows, reasons) == ([{"d": {"year": 5, "month": 0, "day": 0}}], {})


@pytest.mark.parametrize(
    ("text", "row", "value"),
    [
        # A oneof says which message it was, also if that one is empty.
        (
            'syntax = "proto3"; message M { oneof e { A a = 1; B b = 2; } } message A { int32 n = 1; } message B {}',
            b"\x12\0",
            {"a": None, "b": True},
        ),
        ('syntax = "proto3"; message M {}', b"", True),
        # Messages that are there twice are merged, and wrappers are messages.
        (
            'syntax = "proto3"; import "google/protobuf/wrappers.proto";'
            "message M { google.protobuf.Int32Value s = 1; }",
            b"\x0a\x02\x08\x05\x0a\x00",
            {"s": 5},
        ),
        # The types of Google's library are messages like others, but for Timestamp, wrappers and Empty.
        (
            'syntax = "proto3"; import "google/protobuf/any.proto"; import "google/protobuf/duration.proto"; import '
            '"google/protobuf/field_mask.proto"; import "google/protobuf/empty.proto"; message M { google.protobuf.Any '
            "a = 1; repeated google.protobuf.Duration d = 2; google.protobuf.FieldMask f = 3; map<string, "
            "google.protobuf.Empty> e = 4; }",
            b"\x0a\x06\x0a\x01u\x12\x01\0\x12\x02\x10\x05\x1a\x03\x0a\x01p\x22\x05\x0a\x01k\x12\0",
            {
                "a": {"type_url": "u", "value": b"\0"},
                "d": [{"seconds": 0, "nanos": 5}],
                "f": {"paths": ["p"]},
                "e": [("k", True)],
            },
        ),
        # A default of proto2 is not taken for what is not there; an extension is an unknown field.
        (
            'syntax = "proto2"; message M { optional string s = 1 [default = "d"]; extensions 100 to 199; }'
            "extend M { optional int32 x = 100; }",
            b"\xa0\x06\x05",
            {"s": None},
        ),
        # Fields of edition 2023 have presence.
        ('edition = "2023"; message M { int32 a = 1; int32 b = 2; }', b"\x08\x05", {"a": 5, "b": None}),
    ],
)
def test_messages_that_say_odd_things_are_read(text: str, row: bytes, value: Any) -> None:
    assert decoded(make(DecoderInput(proto(text))), [row]) == ([value], {})


def test_a_schema_with_aliases_of_enums_is_read_as_itself() -> None:
    schema = proto(
        'syntax = "proto3"; message M { E e = 1; }'
        "enum E { option allow_alias = true; NONE = 0; STARTED = 1; RUNNING = 1; }"
    )
    rows, reasons = decoded(make(DecoderInput(schema, {7: schema}, True)), [frame(7, b"\0", b"\x08\1")])
    assert (rows, reasons) == ([{"e": "STARTED"}], {})


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        # Protobuf's own library drops such a number of proto2 among the unknown fields.
        (b"\x08\x07", {"e": "7", "m": [], "s": None}),
        (b"\x12\x05\x0a\x01a\x10\x01\x12\x05\x0a\x01a\x10\x02", {"e": None, "m": [("a", 1), ("a", 2)], "s": None}),
        # Proto2's library takes such text.
        (b"\x1a\x02\xff\xfe", None),
        (b"\x12\x05\x0a\x01\xff\x10\x01", None),
    ],
)
def test_odd_values_are_the_same_in_both_languages(syntax: str, row: bytes, expected: Any) -> None:
    fields = "optional E e = 1; map<string, int32> m = 2; optional string s = 3;"
    text = f'syntax = "{syntax}"; enum E {{ A = 0; B = 1; }} message M {{ {fields} }}'
    rows, reasons = decoded(make(DecoderInput(proto(text))), [row])
    assert rows == [expected]
    assert ("invalid UTF-8" in reasons.get(0, "")) == (expected is None)
