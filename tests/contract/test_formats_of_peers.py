"""The files of kafka-connect-s3 and kafkatos3, byte by byte, read with the standard library."""

import gzip
import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_archiver.audit.readers.mak import MakFile
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import HasSidecar
from kafka_archiver.records.formats.mak import encoder as mak_encoder
from kafka_archiver.records.formats.registry import get_format
from tests.support.chunks import Row, batch
from tests.support.formats import (
    ODD,
    RECORD_CASES,
    Case,
    expected,
    recut,
    rows_of,
    rows_strategy,
    small_limits,
)

pytestmark = pytest.mark.contract

MAKS = [case for case in RECORD_CASES if case.format == "mak"]
every_mak = pytest.mark.parametrize("case", MAKS, ids=lambda case: case.name)
every_content = pytest.mark.parametrize("content", ["value", "record"])
DECOMPRESS = {
    "none": bytes,
    "gzip": gzip.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read(),
}
LARGE = [
    Row(1, 0, 0, b"k", b'"' + b"x" * 10_000_000 + b'"', ()),
    Row(2, 0, 0, b"k", b"{}", tuple((f"h{i}", b"v%d" % i if i % 3 else None) for i in range(5000))),
]


def mak(case: Case, data: bytes) -> MakFile:
    return MakFile(io.BytesIO(DECOMPRESS[case.codec](data)))


@every_mak
@pytest.mark.parametrize("rows", [ODD, LARGE, []], ids=["odd", "large", "none"])
def test_an_independent_parser_reads_mak(case: Case, rows: list[Row]) -> None:
    parsed = mak(case, case.encode([batch(rows)]))
    assert parsed.size == len(DECOMPRESS[case.codec](case.encode([batch(rows)])))
    assert (parsed.header["topic"], parsed.header["partition"]) == ("Ömlaut", 3)
    records = list(parsed.records())
    if parsed.version == 1:
        assert [r[:3] for r in records] == [(r.key or b"", r.value or b"", r.offset) for r in rows]
    else:
        assert [(r.offset, r.timestamp, r.timestamp_type, r.key, r.value, r.headers) for r in records] == rows


@every_mak
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=rows_strategy(Case("mak", "none", "record")), places=st.lists(st.integers(0, 25), max_size=4))
def test_both_readers_read_the_same(case: Case, rows: list[Row], places: list[int]) -> None:
    with small_limits():
        data = case.encode(recut(rows, places))
    assert rows_of(get_format("mak").read(io.BytesIO(data), case.target), case) == expected(case, rows)
    assert [(r.key, r.value) for r in mak(case, data).records()] == [(r.key, r.value) for r in expected(case, rows)]  # type: ignore[union-attr]


def header(magic: bytes, last: int, size: int) -> bytes:
    text = '{"topic":"Ömlaut","partition":3,"startoffset":7,"starttime":1763700000.25}'.encode()
    return magic + struct.pack(">QQQ", last, size, len(text)) + text


ROWS = [Row(7, 1763700000250, 1, None, b"a\n", (("h", b"\xff"), ("ü", None))), Row(9, -1, 0, b"", b"\xff")]


def test_version_1_is_kafkatos3_s() -> None:
    body = struct.pack(">QQ2sQ", 0, 2, b"a\n", 7) + struct.pack(">QQ1sQ", 0, 1, b"\xff", 9)
    start = header(b"MAK", 9, 0)
    whole = header(b"MAK", 9, len(start) + len(body)) + body
    assert Case("mak", "none", "record").encode([batch(ROWS)]) == whole


def test_version_2_keeps_everything() -> None:
    first = struct.pack(">qq2sQqiI", -1, 2, b"a\n", 7, 1763700000250, 1, 2)
    headers = struct.pack(">Q1sq1s", 1, b"h", 1, b"\xff") + struct.pack(">Q2sq", 2, "ü".encode(), -1)
    body = first + headers + struct.pack(">qq1sQqiI", 0, 1, b"\xff", 9, -1, 0, 0)
    start = header(b"MA2", 9, 0)
    whole = header(b"MA2", 9, len(start) + len(body)) + body
    assert Case("mak", "none", "record", (("version", 2),)).encode([batch(ROWS)]) == whole


def test_a_mak_file_holds_what_is_compressed_and_spills_it(tmp_path: Path) -> None:
    encoder = Case("mak", "gzip", "record").encoder()
    for number in range(20):
        list(encoder.write(batch([Row(number, 0, value=b"x" * 1_000_000)])))
    assert encoder.pending < 2_000_000
    encoder.spill(tmp_path)
    assert len(list(MakFile(io.BytesIO(gzip.decompress(b"".join(map(bytes, encoder.finish()))))).records())) == 20


@pytest.mark.parametrize("change", [lambda file: file.truncate(5), lambda file: file.write(b"other")])
def test_a_disk_that_returns_other_bytes_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[BinaryIO], object]
) -> None:
    files: list[BinaryIO] = []
    monkeypatch.setattr(mak_encoder, "nameless", lambda _: files.append(open_(tmp_path)) or files[0])
    encoder = Case("mak", "none", "record").encoder()
    list(encoder.write(batch(ODD)))
    encoder.spill(tmp_path)
    files[0].seek(0)
    change(files[0])
    with pytest.raises(IntegrityError, match="other bytes were read"):
        list(encoder.finish())


def open_(directory: Path) -> BinaryIO:
    return (directory / "spilled").open("w+b", buffering=0)


@every_content
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), places=st.lists(st.integers(0, 25), max_size=4))
def test_each_chunk_of_block_gzip_is_a_gzip_file_of_its_own(
    content: str, data: st.DataObject, places: list[int]
) -> None:
    case = Case("block_gzip", "gzip", content)  # type: ignore[arg-type]
    rows = data.draw(rows_strategy(case))
    lines = Case("jsonl", "none", content).encode([batch(rows)]).splitlines(keepends=True)  # type: ignore[arg-type]
    with small_limits():
        encoder = case.encoder()
        pieces = [bytes(piece) for item in recut(rows, places) for piece in encoder.write(case.fitting(item))]
        whole = b"".join([*pieces, *map(bytes, encoder.finish())])
        assert isinstance(encoder, HasSidecar)
        chunks = json.loads(encoder.sidecar())["chunks"]
    assert gzip.decompress(whole) == b"".join(lines)
    row = end = 0
    for chunk in chunks:
        assert chunk["byte_offset"] == end
        end += chunk["byte_length"]
        unpacked = gzip.decompress(whole[chunk["byte_offset"] : end])
        own = lines[row : row + chunk["num_records"]]
        assert unpacked == b"".join(own)
        assert len(unpacked) == chunk["byte_length_uncompressed"]
        assert len(unpacked) <= 120 or len(own) == 1
        assert chunk["first_record_offset"] == rows[row].offset
        row += len(own)
    assert row == len(rows)
    assert end == len(whole) or not rows


@every_content
def test_block_gzip_takes_large_values_and_many_headers(content: str) -> None:
    case = Case("block_gzip", "gzip", content, (("block_bytes", 65536),))  # type: ignore[arg-type]
    data = case.encode([batch(LARGE)])
    assert rows_of(get_format("block_gzip").read(io.BytesIO(data), case.target), case) == expected(case, LARGE)
