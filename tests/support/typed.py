"""Decoded records: a schema with every type, any schema of hypothesis, and records of it through a format."""

import io
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

import pyarrow as pa
from hypothesis import strategies as st

from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.registry import get_format, resolve
from kafka_archiver.records.formats.shared.columns import schema_of, shaped
from kafka_archiver.records.formats.shared.plain_types import bare, rebuilt, seen_as
from tests.support.chunks import Row, batch

Cells = dict[str, Any]


def named(name: str, kind: pa.DataType, doc: str = "", /, **about: str) -> pa.Field:
    """A field with what a decoder says of it."""
    metadata = ({"doc": doc} if doc else {}) | {f"avro.{key}": value for key, value in about.items()}
    return pa.field(name, kind, metadata=metadata or None)


MONEY = pa.struct([named("amount", pa.decimal128(38, 4)), named("currency", pa.string(), "ISO 4217")])
LEAVES: dict[str, tuple[pa.DataType, Any]] = {
    "yes": (pa.bool_(), True),
    "tiny": (pa.int8(), -128),
    "small": (pa.int32(), -5),
    "large": (pa.int64(), -(2**63)),
    "unsigned": (pa.uint64(), 2**64 - 1),
    "half": (pa.float32(), 0.5),
    "rate": (pa.float64(), 0.1),
    "text": (pa.string(), "Ömlaut\n\0"),
    "raw": (pa.binary(), b"\xff\x00"),
    "hash": (pa.binary(4), b"\x00\x01\x02\xff"),
    "price": (pa.decimal128(10, 2), Decimal("-12345678.90")),
    "huge": (pa.decimal256(76, 10), Decimal("1e-10")),
    "day": (pa.date32(), date(2026, 11, 22)),
    "clock": (pa.time32("ms"), time(23, 59, 59, 999000)),
    "precise": (pa.time64("us"), time(1, 2, 3, 4)),
    "at_ms": (pa.timestamp("ms", "UTC"), datetime(2026, 11, 22, 12, tzinfo=UTC)),
    "at_us": (pa.timestamp("us", "UTC"), datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    "local": (pa.timestamp("us"), datetime(2026, 11, 22, 12, tzinfo=UTC).replace(tzinfo=None)),
    "id": (pa.uuid(), UUID("00112233-4455-6677-8899-aabbccddeeff")),
}
NESTED: dict[str, tuple[pa.Field, Any]] = {
    "state": (
        named("state", pa.string(), "Where it is", name="shop.State", symbols='["NEW", "PAID"]'),
        "PAID",
    ),
    "total": (named("total", MONEY, name="shop.Money"), {"amount": Decimal("1.5000"), "currency": "EUR"}),
    "items": (
        named(
            "items",
            pa.list_(
                pa.field(
                    "item",
                    pa.struct([named("price", MONEY, name="shop.Money"), pa.field("tags", pa.list_(pa.string()))]),
                    metadata={"avro.name": "shop.Item"},
                )
            ),
            "What was bought",
        ),
        [{"price": {"amount": Decimal("0.0001"), "currency": None}, "tags": ["a", None]}, None],
    ),
    "labels": (pa.field("labels", pa.map_(pa.string(), pa.int64())), [("a", 1), ("b", None)]),
    "by_number": (pa.field("by_number", pa.map_(pa.int32(), pa.string())), [(-1, "x")]),
}
# Every type once, nested ones too, with names and documentation.
ORDER = pa.field(
    "value",
    pa.struct([*(pa.field(name, kind) for name, (kind, _) in LEAVES.items()), *(f for f, _ in NESTED.values())]),
    metadata={"avro.name": "shop.Order", "doc": "An order"},
)
FULL: Cells = {name: value for name, (_, value) in (LEAVES | NESTED).items()}
EMPTY: Cells = dict.fromkeys(FULL)
BOTH = schema_of("both", value=ORDER)
FORMATS = ("avro", "csv", "jsonl", "parquet")


def physical(schema: pa.Schema) -> pa.Schema:
    """The schema with moments as numbers: the ends of their ranges are no Python dates."""

    def number(field: pa.Field) -> pa.Field:
        kind = field.type
        if pa.types.is_temporal(kind):
            return field.with_type(pa.int32() if kind.bit_width == 32 else pa.int64())
        return field.with_type((pa.types.is_nested(kind) and rebuilt(kind, number)) or kind)

    return pa.schema(list(map(number, bare(schema))))


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[Cells]:
    """All rows, moments as numbers. Compare them as text: NaN is not NaN."""
    return [row for item in batches for row in seen_as(item, physical(item.schema)).to_pylist()]


def column_of(field: pa.Field, values: Sequence[Any]) -> pa.RecordBatch:
    """Decoded values as a batch of one column. Moments may be numbers."""
    schema = pa.schema([field])
    return seen_as(pa.RecordBatch.from_pylist([{field.name: _bytes(v)} for v in values], bare(schema)), schema)


def _bytes(value: Any) -> Any:
    """UUIDs as bytes, which Arrow wants inside structs."""
    if isinstance(value, dict):
        return {name: _bytes(child) for name, child in value.items()}
    return value.bytes if isinstance(value, UUID) else value


def decoded(rows: Sequence[Row], values: Sequence[Any], field: pa.Field = ORDER) -> pa.RecordBatch:
    """The rows with their decoded values, as a slice of something larger."""
    raw = batch([*rows[:1], *rows, *rows[:1]])
    table = column_of(field.with_name("value_decoded"), [*values[:1], *values, *values[:1]])
    for name, column in zip(raw.schema.names, raw.columns, strict=True):
        table = table.append_column(name, column)
    return table.slice(min(1, len(rows)), len(rows))


NUMBERS = (float("nan"), float("-inf"), -0.0, 5e-324, 1e16, None)


def as_if_decoded(item: pa.RecordBatch) -> pa.RecordBatch:
    """Records with a decoded value, made of their bytes: full of text, or of nothing but the bytes; null for null."""

    def cells(offset: int, value: bytes | None) -> Cells | None:
        if value is None:
            return None
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return EMPTY | {"raw": value}
        labels = [(text[:99], offset % 7), ("", None)]
        return FULL | {"text": text, "raw": value, "labels": labels[: 1 + bool(text)], "rate": NUMBERS[offset % 6]}

    places = zip(item.column("offset").to_pylist(), item.column("value").to_pylist(), strict=True)
    values = column_of(ORDER.with_name("value_decoded"), [cells(*place) for place in places])
    return item.append_column("value_decoded", values.column(0))


def target_of(name: str, schema: pa.Schema = BOTH, codec: str = "", **settings: Any) -> Target:
    """An object of a format."""
    target = resolve(Settings(format=name, codec=codec, **{"content": "both", **settings}), decoded=True)
    key = "Ömlaut/date=2026-11-21/hour=05/%C3%96mlaut+3+00000000000000000000.jsonl.gz"
    return Target(topic="Ömlaut", partition=3, key=key, settings=target, schema=schema)


def encode(target: Target, batches: Iterable[pa.RecordBatch]) -> bytes:
    """The object of batches that are not shaped yet."""
    encoder = get_format(target.settings.format).encoder(target)
    pieces = [bytes(piece) for item in batches for piece in encoder.write(shaped(item, target.schema))]
    return b"".join([*pieces, *map(bytes, encoder.finish())])


def read(target: Target, data: bytes) -> list[pa.RecordBatch]:
    """Return what the format's reader gives."""
    return list(get_format(target.settings.format).read(io.BytesIO(data), target))


def recut(item: pa.RecordBatch, places: Iterable[int]) -> Iterable[pa.RecordBatch]:
    """The same rows in other batches."""
    ends = sorted({0, item.num_rows, *(place % (item.num_rows + 1) for place in places)})
    return [item.slice(0, 0), *(item.slice(start, end - start) for start, end in pairwise(ends))]


NAMES = st.sampled_from(["a", "b", "Item", "x_1", "offset_", "Record", "Header"])
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _number(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


def values_of(field: pa.Field) -> st.SearchStrategy[Any]:
    """Values of a column, null among them where they may be."""
    kind = field.type
    if pa.types.is_struct(kind):
        strategy: st.SearchStrategy[Any] = st.fixed_dictionaries({child.name: values_of(child) for child in kind})
    elif pa.types.is_map(kind):
        pairs = st.tuples(values_of(kind.key_field), values_of(kind.item_field))
        strategy = st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])
    elif pa.types.is_list(kind):
        strategy = st.lists(values_of(kind.value_field), max_size=3)
    elif pa.types.is_time(kind):
        strategy = st.integers(0, 86_400 * _UNITS[kind.unit] - 1)
    elif pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        strategy = st.integers(-most, most).map(
            lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -kind.scale))
        )
    elif kind == pa.uuid():
        strategy = st.binary(min_size=16, max_size=16)
    elif pa.types.is_fixed_size_binary(kind):
        strategy = st.binary(min_size=kind.byte_width, max_size=kind.byte_width)
    elif pa.types.is_boolean(kind):
        strategy = st.booleans()
    elif pa.types.is_floating(kind):
        strategy = st.floats(width=kind.bit_width)
    elif pa.types.is_string(kind):
        symbols = (field.metadata or {}).get(b"avro.symbols")
        strategy = st.sampled_from(json.loads(symbols)) if symbols else st.text(max_size=9)
    elif pa.types.is_binary(kind):
        strategy = st.binary(max_size=9)
    elif pa.types.is_null(kind):
        return st.none()
    else:
        strategy = _number(kind.bit_width, not pa.types.is_unsigned_integer(kind))
    return st.none() | strategy if field.nullable else strategy


_LEAF = st.sampled_from(
    [kind for kind, _ in LEAVES.values()]
    + [pa.null(), pa.int16(), pa.uint8(), pa.uint16(), pa.uint32(), pa.time64("ns"), pa.decimal128(1, 0)]
    + [pa.timestamp("ms"), pa.timestamp("ns", "UTC"), pa.timestamp("ns"), pa.decimal128(5, 5), pa.binary(16)]
)


def _field(kind: pa.DataType, name: str = "item") -> st.SearchStrategy[pa.Field]:
    """Nullable or not, with a name of its own or without."""
    names = st.sampled_from([None, {"avro.name": "shop.Thing", "doc": "A thing"}])
    if kind == pa.string():
        names |= st.just({"avro.name": "shop.Sort", "avro.symbols": '["A", "B", "C"]'})
    nullable = st.just(True) if pa.types.is_null(kind) else st.booleans()
    return st.builds(lambda null, metadata: pa.field(name, kind, null, metadata), nullable, names)


def _struct(kinds: st.SearchStrategy[pa.DataType], most: int = 4) -> st.SearchStrategy[pa.DataType]:
    pairs = st.lists(st.tuples(NAMES, kinds), min_size=1, max_size=most, unique_by=lambda pair: pair[0].lower())
    return pairs.flatmap(lambda some: st.tuples(*(_field(kind, name) for name, kind in some))).map(pa.struct)


TYPES = st.recursive(
    _LEAF,
    lambda kinds: (
        kinds.flatmap(_field).map(pa.list_)
        | _struct(kinds)
        | st.tuples(st.sampled_from([pa.string(), pa.int32(), pa.uint64(), pa.bool_()]), kinds).map(
            lambda pair: pa.map_(*pair)
        )
    ),
    max_leaves=6,
)
VALUES = _struct(TYPES, 6).map(lambda kind: pa.field("value", kind)) | TYPES.map(lambda kind: pa.field("value", kind))
