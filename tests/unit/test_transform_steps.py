"""Ready-made transforms: columns of any type against the same work on Python values, whatever the batches."""

import hashlib
import hmac
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.config import parse_archive
from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.model.settings import Settings
from kafka_archiver.model.transforms import (
    Drop,
    Flatten,
    Hash,
    Mask,
    Rename,
    Sql,
    StepType,
    Transform,
    fingerprint,
    segments_of,
)
from kafka_archiver.records.formats.shared.columns import HEADER, KEY, VALUE_DECODED
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.transform.base import BatchOrigin, Fields
from kafka_archiver.records.pipeline.transform.chain import chain_of, require_transforms

pytestmark = pytest.mark.unit

SECRET = "k" * 32
KEYS = {"pii": SECRET}
ITEM = pa.struct([pa.field("sku", pa.string()), pa.field("n", pa.int64(), nullable=False)])
DAY = pa.struct([pa.field("e", pa.date32())])
FIELD = pa.field(
    "value",
    pa.struct(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("card", pa.string()),
            pa.field("a", pa.struct([pa.field("b.c", pa.string()), pa.field("d", DAY)])),
            pa.field("items", pa.list_(ITEM)),
            pa.field("deep", pa.list_(pa.list_(ITEM))),
        ]
    ),
)  # fmt: skip
TEXT = st.text(max_size=5)
ITEMS = st.lists(st.none() | st.fixed_dictionaries({"sku": st.none() | TEXT, "n": st.integers(0, 9)}), max_size=3)
VALUES = st.lists(
    st.none()
    | st.fixed_dictionaries(
        {
            "id": st.integers(-5, 5),
            "card": st.none() | TEXT,
            "a": st.none()
            | st.fixed_dictionaries(
                {"b.c": st.none() | TEXT, "d": st.none() | st.fixed_dictionaries({"e": st.none() | st.dates()})}
            ),
            "items": st.none() | ITEMS,
            "deep": st.none() | st.lists(st.none() | ITEMS, max_size=2),
        }
    ),
    max_size=6,
)
STEPS = (
    Mask(fields=("card", "items.sku", "items.n", "deep.sku", "a.`b.c`"), keep=2),
    Hash(fields=("id", "a.d.e", "value.deep.n"), key="pii", fingerprint=fingerprint(SECRET)),
    Rename(names={"items.sku": "n", "items.n": "sku", "a.d": "when"}),
    Drop(fields=("deep.sku", "value.items.sku")),
)


def masked(text: str | None) -> str | None:
    return text and "*" * (len(text) - 2) + text[-2:]


def hashed(value: Any) -> str | None:
    return None if value is None else hmac.new(SECRET.encode(), str(value).encode(), hashlib.sha256).hexdigest()


def each(items: Any, change: Any) -> Any:
    return items and [item if item is None else change(item) for item in items]


def expected(value: dict[str, Any]) -> dict[str, Any]:
    a = value["a"] and {
        "b.c": masked(value["a"]["b.c"]),
        "when": value["a"]["d"] and {"e": hashed(value["a"]["d"]["e"])},
    }
    return {
        "id": hashed(value["id"]),
        "card": masked(value["card"]),
        "a": a,
        "items": each(value["items"], lambda item: {"n": masked(item["sku"])}),
        "deep": each(value["deep"], lambda items: each(items, lambda item: {"n": hashed(item["n"])})),
    }


def flat(value: dict[str, Any]) -> dict[str, Any]:
    a = value["a"] or {"b.c": None, "when": None}
    return {
        "id": value["id"],
        "card": value["card"],
        "a/b.c": a["b.c"],
        "a/when/e": (a["when"] or {"e": None})["e"],
        "items": value["items"],
        "deep": value["deep"],
    }


def run(steps: Any, array: pa.Array, fields: Fields, settings: dict[str, Any] | None = None) -> pa.Array:
    transform_settings = Settings(transform=Transform(steps=steps), **(settings or {}))
    chain = chain_of(transform_settings, fields, BatchOrigin(keys=KEYS))
    batch = pa.record_batch([array], [VALUE_DECODED])
    for transform in chain.transforms:
        batch = transform(batch, Marks())
    column = batch.column(0)
    column.validate(full=True)
    assert chain.fields.value is not None
    assert column.type == chain.fields.value.type
    return column


@given(VALUES, st.integers(0, 5), st.integers(0, 6))
def test_nested_fields_are_changed_and_all_others_stay(values: list[Any], start: int, length: int) -> None:
    some = values[start:][:length]
    array = pa.array(values, FIELD.type).slice(start, length)
    fields = Fields(value=FIELD)
    result = run(STEPS, array, fields)
    assert result.to_pylist() == [value and expected(value) for value in some]
    result = run((*STEPS, Flatten(separator="/")), array, fields)
    assert result.to_pylist() == [value and flat(expected(value)) for value in some]


def test_keys_and_headers_have_steps_too() -> None:
    fields = Fields(pa.field("key", pa.string()), None, {HEADER + "x.y": pa.field("x", pa.binary())})
    steps = (
        Mask(fields=("key",), character="#"),
        Hash(fields=("headers.`x.y`",), key="pii", fingerprint=fingerprint(SECRET)),
    )
    chain = chain_of(Settings(transform=Transform(steps=steps)), fields, BatchOrigin(keys=KEYS))
    batch = pa.record_batch([pa.array(["ab", None]), pa.array([b"\xff", None])], [KEY, HEADER + "x.y"])
    for transform in chain.transforms:
        batch = transform(batch, Marks())
    digest = hmac.new(SECRET.encode(), b"\xff", hashlib.sha256).hexdigest()
    assert batch.to_pylist() == [{KEY: "##", HEADER + "x.y": digest}, {KEY: None, HEADER + "x.y": None}]
    # Objects that need no key have no column of it.
    only = batch.select([HEADER + "x.y"])
    assert chain.transforms[0](only, Marks()) is only


@pytest.mark.parametrize(
    ("step", "fields", "settings", "message"),
    [
        (Mask(fields=("card",)), Fields(), {}, "mask card: the value has no decoded columns; set `source.value.d"),
        (Mask(fields=("key.id",)), Fields(), {}, "mask key.id: the key has no decoded columns; set"),
        (Mask(fields=("headers.x",)), Fields(), {}, "mask headers.x: no header is decoded to headers.x; set `source"),
        (Drop(fields=("nope",)), Fields(value=FIELD), {}, "drop nope: value has no field 'nope'; it has id, c"),
        (Drop(fields=("id.x",)), Fields(value=FIELD), {}, "drop id.x: id is of type int64, which has no field 'x'"),
        (Drop(fields=("items.n", "items.sku")), Fields(value=FIELD), {}, "drop items.sku: item would have n"),
        (Hash(fields=("items",), key="pii"), Fields(value=FIELD), {}, "hash items: it is of type struct<sku: "),
        (Rename(names={"card": "id"}), Fields(value=FIELD), {}, "rename card: value would have two fields 'id'"),
        (Flatten(), Fields(value=pa.field("value", pa.string())), {}, "flatten: the value is of type string; expec"),
        (Flatten(), Fields(value=FIELD), {"content": "record"}, "flatten: `store.content: record` stores the bytes"),
        (Mask(fields=("card",)), Fields(value=FIELD), {"content": "both"}, "mask: the objects would keep the b"),
    ],
)  # fmt: skip
def test_a_step_that_does_not_fit_the_columns_is_refused(
    step: Any, fields: Fields, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        chain_of(Settings(transform=Transform(steps=(step,)), **settings), fields)
    assert f"transform.steps: {message}" in str(caught.value)


def test_two_columns_of_one_name_are_not_made_flat() -> None:
    field = pa.field(
        "value", pa.struct([pa.field("a_b", pa.int8()), pa.field("a", pa.struct([pa.field("b", pa.int8())]))])
    )
    with pytest.raises(
        ConfigError, match="two columns would be named 'a_b'; choose another `separator`, or rename one"
    ):
        chain_of(Settings(transform=Transform(steps=(Flatten(),))), Fields(value=field))


def test_another_key_than_that_of_the_plan_is_refused_and_never_shown() -> None:
    step = Hash(fields=("id",), key="pii", fingerprint=fingerprint(SECRET))
    settings = Settings(transform=Transform(steps=(step,)))
    require_transforms(settings, BatchOrigin(keys=KEYS))
    assert SECRET not in repr(BatchOrigin(keys=KEYS)) + settings.model_dump_json()
    with pytest.raises(PermanentError, match="another key than the run was planned with") as caught:
        require_transforms(settings, BatchOrigin(keys={"pii": "other" * 5}))
    assert "other" * 5 not in str(caught.value)
    with pytest.raises(PermanentError, match="the job has no key 'pii'"):
        require_transforms(settings, BatchOrigin())


YAML = "archive: a\nsource: {topics: [orders]}\nstore: {url: s3://b/c}\ntransform: "


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("mask: value.card", Mask(fields=("value.card",))),
        ("mask: [a, b]", Mask(fields=("a", "b"))),
        ("mask: {fields: a, keep: 4}", Mask(fields=("a",), keep=4)),
        ("hash: {fields: [a], key: pii}", Hash(fields=("a",), key="pii")),
        ("drop: [a.b]", Drop(fields=("a.b",))),
        ("rename: {a: b}", Rename(names={"a": "b"})),
        ("rename: {names: {a: b}}", Rename(names={"a": "b"})),
        ("flatten: {separator: .}", Flatten(separator=".")),
        ("flatten: ", Flatten()),
    ],
)
def test_steps_are_short_in_the_yaml(text: str, step: Any) -> None:
    archive = parse_archive(f"{YAML}\n  steps:\n    - {text}\n", "x.yaml")
    assert archive.settings.transform == Transform(steps=(step,))
    assert type(archive).model_validate(archive.model_dump()) == archive


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{steps: [{shred: a}]}", "expected one of mask, hash, drop, rename, flatten with its settings"),
        ("{steps: [{drop: value}]}", "expected a field within the column, as value.id; found the column 'value'"),
        ("{steps: [{drop: headers.x}]}", "expected a field within the column"),
        ("{steps: [{mask: a..b}]}", "expected a field's path like value.card.number"),
        ("{steps: [{hash: {fields: a}}]}", "key` is required"),
        ("{steps: [{hash: {fields: a, key: b, fingerprint: c}}]}", "expected no `fingerprint`; the plan has it"),
        ("{steps: [{mask: {fields: a, keep: -1}}]}", "expected greater than or equal to 0"),
        ("{mapper: split}", "`transform.mapper.function`: expected text that matches pattern"),
        ("{mapper: {function: 'a:b', by: hand}}", "`transform.mapper.by`: expected 'record' or 'batch'; found 'hand'"),
    ],
)
def test_a_mistake_of_the_yaml_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_archive(f"{YAML}{text}\n", "x.yaml")
    assert message in str(caught.value)


def test_no_transform_leaves_no_trace_in_a_plan() -> None:
    assert "transform" not in parse_archive(f"{YAML}{{}}\n", "x").settings.model_dump_json()


def test_paths_have_backticks_for_dots() -> None:
    assert segments_of("a.`b.c`.d") == ("value", "a", "b.c", "d")
    assert segments_of("key.id") == ("key", "id")


def test_steps_behind_sql_are_checked_once_spark_has_said_which_columns_there_are() -> None:
    sql = Sql(select=("value.id AS x",))
    step = Mask(fields=("x",))
    unknown = chain_of(
        Settings(transform=Transform(sql=sql, steps=(step,))), Fields(value=FIELD), BatchOrigin("orders")
    )
    assert len(unknown.transforms) == 1
    schema_json = '{"type": "struct", "fields": [{"name": "x", "type": "string"}]}'
    known = sql.model_copy(update={"made": {"orders": schema_json}})
    for steps, message in [((step,), ""), ((Mask(fields=("id",)),), "mask id: value has no field 'id'; it has x")]:
        settings = Settings(transform=Transform(sql=known, steps=steps))
        if message:
            with pytest.raises(ConfigError, match=message):
                chain_of(settings, Fields(value=FIELD), BatchOrigin("orders"))
        else:
            assert len(chain_of(settings, Fields(value=FIELD), BatchOrigin("orders")).transforms) == 2


LISTED = pa.field(
    "value",
    pa.struct(
        [
            pa.field("id", pa.binary(16), metadata={"avro.logicalType": "uuid"}),
            pa.field("tags", pa.list_(pa.list_(pa.string()))),
            pa.field("numbers", pa.list_(pa.int64())),
        ]
    ),
)
ID = UUID("123e4567-e89b-12d3-a456-426614174000")
ROW = {"id": ID.bytes, "tags": [["abc", None], None, []], "numbers": [7]}


def test_hash_and_mask_go_to_each_item_of_a_list_and_a_uuid_is_its_text() -> None:
    steps = (
        Hash(fields=("id", "numbers"), key="pii", fingerprint=fingerprint(SECRET)),
        Mask(fields=("tags",), keep=1),
    )
    array = pa.array([None, ROW], LISTED.type)[1:]
    [row] = run(steps, array, Fields(value=LISTED)).to_pylist()
    assert row == {"id": hashed(ID), "tags": [["**c", None], None, []], "numbers": [hashed(7)]}


@pytest.mark.parametrize(("precision", "scale"), [(12, 8), (40, 10), (9, 0)])
def test_a_decimal_is_hashed_as_its_digits_as_json_lines_have_them(precision: int, scale: int) -> None:
    digits = ["0", "1", "-12", "123456789"]
    numbers = [Decimal(f"{text}e-{scale}") for text in digits]
    field = pa.field("value", pa.struct([pa.field("n", pa.decimal256(precision, scale))]))
    array = pa.array([{"n": number} for number in numbers], field.type)
    plain, exponent = (
        [row["n"] for row in run([step], array, Fields(value=field)).to_pylist()]
        for step in (
            Hash(fields=("n",), key="pii", fingerprint=fingerprint(SECRET)),
            Hash(fields=("n",), key="pii", fingerprint=fingerprint(SECRET), rules=2),
        )
    )
    assert plain == [hashed(f"{number:f}") for number in numbers]
    # As plans before have it.
    assert exponent == [hashed(str(number)) for number in numbers]


def test_a_step_of_an_old_plan_keeps_its_rules() -> None:
    old = f'{{"steps": [{{"step": "hash", "fields": ["id"], "key": "pii", "fingerprint": "{fingerprint(SECRET)}"}}, '
    steps = Transform.model_validate_json(old + '{"step": "mask", "fields": ["tags"]}]}', strict=True).steps
    [row] = run(steps, pa.array([ROW], LISTED.type), Fields(value=LISTED)).to_pylist()
    assert row == {
        "id": hmac.new(SECRET.encode(), ID.bytes, hashlib.sha256).hexdigest(),
        "tags": None,
        "numbers": [7],
    }
    # A new plan keeps its own.
    new = Transform(steps=(Mask(fields=("tags",)),))
    assert Transform.model_validate_json(new.model_dump_json(), strict=True) == new


class Forgotten(StepType):
    """A step that does not say which fields it touches."""

    MAKER: ClassVar[str] = "tests:nothing"
    step: str = "forgotten"


def test_a_step_that_does_not_say_what_it_touches_cannot_be_made() -> None:
    with pytest.raises(TypeError, match=r"abstract method '?touches"):
        Forgotten()  # type: ignore[abstract]
