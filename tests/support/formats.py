"""All combinations of format, codec and content; difficult records; batches with different cuts and memory layouts."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from kafka_archiver.model.settings import Content, Settings
from kafka_archiver.records.formats.avro import encoder as avro
from kafka_archiver.records.formats.base import SCHEMAS, Encoder, Target
from kafka_archiver.records.formats.parquet import encoder as parquet
from kafka_archiver.records.formats.registry import extension_of, get_format, names, resolve
from kafka_archiver.records.formats.shared import blocks, compress
from kafka_archiver.records.formats.shared.columns import schema_of, shaped
from kafka_archiver.records.formats.shared.records import COLUMNS
from kafka_archiver.records.pipeline.base import Marks
from tests.support.chunks import LAST_MS, Row, batch
from tests.support.typed import ORDER, as_if_decoded
from tests.support.typed import rows_of as typed_rows


class Case(NamedTuple):
    """One way to write an object. `options`: those that are not the format's defaults. `typed`: of decoded values."""

    format: str
    codec: str
    content: Content
    options: tuple[tuple[str, Any], ...] = ()
    typed: bool = False

    @property
    def name(self) -> str:
        typed = ["typed"] if self.typed else []
        return "-".join([*self[:3], *typed, *(f"{name}={value}" for name, value in self.options)])

    @property
    def settings(self) -> Settings:
        settings = Settings(format=self.format, codec=self.codec, content=self.content, options=dict(self.options))
        return resolve(settings, decoded=self.typed)

    @property
    def schema(self) -> pa.Schema:
        return schema_of(self.content, value=ORDER) if self.typed else SCHEMAS[self.content]

    @property
    def target(self) -> Target:
        key = f"Ömlaut/date=2026-11-21/hour=05/%C3%96mlaut+3+00000000000000000000{extension_of(self.settings)}"
        return Target(topic="Ömlaut", partition=3, key=key, settings=self.settings, schema=self.schema)

    def encoder(self) -> Encoder:
        return get_format(self.format).encoder(self.target)

    def fitting(self, item: pa.RecordBatch) -> pa.RecordBatch:
        """The batch after the format's stage, which must not reject records, or as if it was decoded."""
        if self.typed:
            return shaped(as_if_decoded(item), self.schema)
        stage = get_format(self.format).stage(self.settings)
        marks = Marks()
        fitted = stage(item, marks) if stage else item
        assert not marks
        return fitted

    def encode(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        encoder = self.encoder()
        pieces = [bytes(piece) for item in batches for piece in encoder.write(self.fitting(item))]
        return b"".join([*pieces, *map(bytes, encoder.finish())])


Options = dict[str, list[tuple[tuple[str, Any], ...]]]
# Options besides the defaults that are tested as much.
INDEX = ("index", True)
OPTIONS: Options = {
    "avro": [(INDEX,)],
    "jsonl": [(INDEX,)],
    "block_gzip": [(("block_bytes", 65536),)],
    "mak": [(("version", 2),)],
}
TYPED_OPTIONS: Options = {"parquet": [(("readers", "spark"),)], "avro": [(INDEX,)], "jsonl": [(INDEX,)]}
ALL_CASES = [
    Case(name, codec, content, options)
    for name in names()
    for codec in get_format(name).extensions
    for content in sorted(get_format(name).contents)
    for options in ((), *OPTIONS.get(name, ()))
    if codec == "zstd" or INDEX not in options
]
TYPED_CASES = [
    Case(name, codec, content, options, typed=True)
    for name in names()
    for codec in get_format(name).extensions
    for content in sorted(get_format(name).typed)
    for options in ((), *TYPED_OPTIONS.get(name, ()))
    if codec == "zstd" or INDEX not in options
]
# Formats of text share their codecs: one of them stands for all.
CASES = [
    case
    for case in ALL_CASES
    if case.format in ("avro", "parquet") or case[:3:2] == ("jsonl", "value") or case.codec in ("none", "gzip", "zstd")
]
RECORD_CASES = [case for case in CASES if case.content == "record"]
# Of each format and content one codec, for what a codec does not change.
ONE_CODEC = [case for case in CASES if case.codec == "zstd" or case.format == "block_gzip"]
# For what takes long.
FEW_TYPED = [case for case in TYPED_CASES if case.content == "both" and case.codec in ("none", "gzip")]


def each(cases: list[Case]) -> pytest.MarkDecorator:
    """A test for each case."""
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


every_case, every_record_case, one_codec = each(CASES), each(RECORD_CASES), each(ONE_CODEC)
one_codec_of_records = each([case for case in ONE_CODEC if case in RECORD_CASES])
one_codec_typed_too = each(ONE_CODEC + [case for case in FEW_TYPED if case.codec == "none"])
every_combination, few_typed_too = each(ALL_CASES + TYPED_CASES), each(CASES + FEW_TYPED)

TEXT = 'ü€😀 \u2028\u2029\x85 "quoted" \\ \b\t\x1f </script>'.encode()
NOT_UTF8 = (b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"ok\x80")
MEGABYTE = bytes(range(256)) * 4096
ODD = [
    Row(0, 0, 0, b"k", b'{"a":1}'),
    Row(1, -1, 0, None, None),
    Row(2, LAST_MS, 1, b"", b"", (("", b""), ("", None))),
    Row(5, 1763700000000, 1, b"k", b"null", (("b", b"1"), ("a", b"2"), ("b", b"1"), ("b", None))),
    Row(6, 1763700000001, 0, TEXT, TEXT, (("kopfzeile \u2028 😀", TEXT),)),
    Row(7, 1763700000000, 0, b"\x00", b"\x00a\x00", (("\x00", b"\x00"),)),
    *(Row(20 + i, 1763700000000, 0, bad, bad, (("h", bad), ("h", b"fine"))) for i, bad in enumerate(NOT_UTF8)),
    Row(40, 1763700000000, 0, b"k", b'{"a":\n\r\n  "b\\n"}\n', ()),
    Row(41, 1763700000000, 0, b"a\r", b"a\r", ()),
    Row(42, 1763700000000, 0, b"lines", b"one\ntwo\r\n\n", ()),
    Row(43, 1763700000000, 0, None, b'"' + b"x" * 1_000_000 + b'"', ()),
    Row(44, 1763700000000, 0, MEGABYTE, MEGABYTE, (("big", MEGABYTE), ("empty", b""))),
    Row(2**62, 1763700000000, 0, b'{"json":"key"}', b"[1,2]", tuple((f"h{i}", b"v") for i in range(300))),
]

# A sample of https://github.com/minimaxir/big-list-of-naughty-strings, what CSV may trip over, and ten megabytes.
NAUGHTY = [
    "undefined", "NULL", "(null)", "\\N", "NaN", "-0", "1E+02", "0x0", "true", "1,5", "1;5", "a|b", "a\tb",
    ",", ",,", ";", '"', '""', '"""', "'", "''", '"\'"\'', 'a"b', '"a"', "'a'", "\\", '\\"', "\\\\", "#",
    "# x", "=1+1", "@SUM(1)", "-1", " ", " a ", "\t", "\n", "\r", "\r\n", "\n\n", '"\n', '\n"', "a\nb,c\n",
    "\x00", "\x01", "\x1f", "\x7f", "\x85", "\ufeff", "\ufffe", "\u2028", "田中さん",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "ﷺ", "<script>alert(1)</script>", "../../etc/passwd",
    "%s%n", "$HOME", "x" * 10_000_000,
]  # fmt: skip


def fit_for(case: Case, rows: Sequence[Row]) -> list[Row]:
    """The rows that the case can hold: JSON lines have values of one line, text no newline, CSV values of UTF-8."""

    def fits(row: Row) -> bool:
        value = row.value or b""
        if case.typed or case.content == "record" or case.format == "bytes":
            return True
        if case.format == "csv":
            return value.decode(errors="replace").encode() == value
        return b"\n" not in value if case.format == "text" else row.offset == 40 or not {10, 13} & set(value)

    return [row for row in rows if fits(row)]


Read = list[Row] | list[bytes | None] | list[str]


def expected(case: Case, rows: Sequence[Row]) -> Read:
    """The expected result of reading. Rows of typed columns are text, because NaN is not NaN."""
    if case.typed:
        place = {"topic": case.target.topic, "partition": case.target.partition} if case.content == "both" else {}
        return [repr(place | row) for row in typed_rows([case.fitting(batch(rows))])]
    if case[0] == "mak" and not case.options:
        return [Row(r.offset, -1, 0, r.key or b"", r.value or b"") for r in rows]
    if case.content == "record":
        return list(rows)
    values = [row.value for row in rows]
    if case.format == "bytes":
        whole = b"".join(value or b"" for value in values)
        return [whole] if whole else []
    if case.format == "text":
        return [value or b"" for value in values]
    one_line = {40: b'{"a":     "b\\n"} ', 5: None} if case.format in ("jsonl", "block_gzip") else {}
    return [one_line.get(r.offset, r.value) for r in rows]


def rows_of(batches: Iterable[pa.RecordBatch], case: Case) -> Read:
    """The batches of a format's reader, in the form of `expected`."""
    if case.typed:
        return [repr(row) for row in typed_rows(batches)]
    if case.content == "value":
        return [value for item in batches for value in item.column("value").to_pylist()]
    rows = []
    for item in batches:
        for *fields, headers in zip(*(column.to_pylist() for column in item.columns[2:]), strict=True):
            rows.append(Row(*fields, headers=tuple((h["key"], h["value"]) for h in headers)))
    return rows


def recut(rows: Sequence[Row], places: Iterable[int]) -> Iterator[pa.RecordBatch]:
    """The rows cut at these places: in turn as a slice, with large types, and as a copy."""
    ends = sorted({0, len(rows), *(p % (len(rows) + 1) for p in places)})
    yield batch([])
    for number, (start, end) in enumerate(pairwise(ends)):
        piece = batch(rows[start:end])
        if number % 3 == 1:
            yield pa.RecordBatch.from_arrays(
                [c.cast(f.type) for c, f in zip(piece.columns, COLUMNS, strict=True)], schema=COLUMNS
            )
        elif number % 3 == 2:
            yield pa.concat_batches([piece, batch([])])
        else:
            yield piece
        yield batch([])


@contextmanager
def small_limits() -> Iterator[None]:
    """Slices, blocks and row groups so small that a few records fill several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compress, "SLICE", 50)
        patch.setattr(avro, "_BLOCK", 200)
        patch.setattr(parquet, "_ROW_GROUP", 500)
        patch.setattr(blocks, "most_bytes", lambda _: 120)
        yield


def spilling(encoder: Encoder, batches: Iterable[pa.RecordBatch], directory: Path, every: int) -> bytes:
    """The encoder's bytes if it spills after every few batches."""
    pieces = []
    for number, item in enumerate(batches):
        pieces += [bytes(piece) for piece in encoder.write(item)]
        if number % every == 0:
            encoder.spill(directory)
    return b"".join([*pieces, *map(bytes, encoder.finish())])


def _some_bytes() -> st.SearchStrategy[bytes]:
    return st.binary(max_size=80) | st.text(max_size=30).map(str.encode)


def rows_strategy(case: Case) -> st.SearchStrategy[list[Row]]:
    """Records with increasing offsets, which the case can hold."""
    values = _some_bytes()
    if case.content == "value":
        values = values.map(lambda value: value.translate(None, b"\r\n"))
    if case[:3:2] == ("csv", "value"):
        values = st.text(max_size=40).map(str.encode)
    row = st.builds(
        Row,
        offset=st.just(0),
        timestamp=st.sampled_from([-1, 0, 1763700000000, LAST_MS]) | st.integers(-1, 2**63 - 1),
        timestamp_type=st.sampled_from([0, 1]),
        key=st.none() | _some_bytes(),
        value=st.none() | values,
        headers=st.lists(st.tuples(st.text(max_size=5), st.none() | _some_bytes()), max_size=3).map(tuple),
    )
    return st.lists(row, max_size=25).map(lambda rows: [r._replace(offset=i * 3) for i, r in enumerate(rows)])
