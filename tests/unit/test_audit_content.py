"""Reading an object through: each kind of fault is found and named, and the checksum is that of its bytes."""

import bz2
import gzip
import io
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.audit.content import PIECE, Pieces, check_records, read_through
from kafka_archiver.audit.readers.base import RecordCoordinates
from kafka_archiver.audit.readers.jsonl import lines
from kafka_archiver.model.layouts.hourly import hour_path
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.ranges import Range
from tests.support.values import plan

HOUR = 3_600_000
TIME = 5 * HOUR
RECORDS = [RecordCoordinates("orders", 3, offset, TIME + offset) for offset in (10, 11, 13)]
ENTRY = ObjectEntry(
    key="k", topic="orders", partition=3, generation=0, chunk_start=10, path=hour_path(5), rows=3, bytes=1,
    checksum="c", etag="e", first_offset=10, last_offset=13, min_timestamp=TIME + 10, max_timestamp=TIME + 13,
)  # fmt: skip


def faults(records: list[RecordCoordinates], /, **entry: Any) -> list[str]:
    return list(check_records(ENTRY.model_copy(update=entry), Range(10, 20), iter(records)))


def test_what_is_as_promised_has_no_fault() -> None:
    assert faults(RECORDS) == []


@pytest.mark.parametrize(
    ("number", "change", "fault"),
    [
        (1, {"offset": 10}, "offset 10 follows 10"),
        (1, {"topic": "other"}, "offset 11 is of other[3]"),
        (1, {"partition": 2}, "offset 11 is of orders[2]"),
        (1, {"timestamp": 6 * HOUR}, "offset 11 has the timestamp 21600000, which is of another hour"),
        (1, {"timestamp": -1}, "offset 11 has the timestamp -1, which is of another hour"),
        (2, {"offset": 20}, "offset 20 is outside its chunk [10, 20)"),
        (2, {"offset": 14}, "it has 14 as last offset"),
        (0, {"offset": 9}, "offset 9 is outside its chunk [10, 20)"),
        (0, {"timestamp": TIME}, "it has 18000000 as smallest timestamp"),
        (2, {"timestamp": TIME + 12}, "it has 18000012 as largest timestamp"),
    ],
)
def test_each_fault_is_named(number: int, change: dict[str, Any], fault: str) -> None:
    records = list(RECORDS)
    records[number] = records[number]._replace(**change)
    assert fault in faults(records)


def test_records_that_are_missing_or_too_many() -> None:
    assert faults([RECORDS[0], RECORDS[2]]) == ["it has 2 rows"]
    assert faults([*RECORDS[:2], RECORDS[1]._replace(offset=12), RECORDS[2]]) == ["it has 4 rows"]
    assert "it has None as first offset" in faults([])


def test_several_rows_of_a_record_are_no_fault_where_the_entry_says_so() -> None:
    twice = [RECORDS[0], RECORDS[1], RECORDS[1], RECORDS[2]]
    assert faults(twice, rows=4, records=3) == []
    assert faults(twice, rows=4, records=2) == ["its rows are of 3 records"]
    assert faults(twice, rows=4) == ["offset 11 follows 11"]
    assert "offset 10 follows 11" in faults([RECORDS[1], RECORDS[0], RECORDS[2]], records=3)


@given(
    st.binary(min_size=1, max_size=200),
    st.integers(1, 50),
    st.lists(st.tuples(st.integers(0, 220), st.integers(0, 60))),
)
def test_pieces_are_the_object_however_it_is_read(data: bytes, length: int, reads: list[tuple[int, int]]) -> None:
    asked: list[int] = []

    def fetch(start: int, length: int) -> bytes:
        asked.append(length)
        return data[start : start + length]

    pieces = Pieces(len(data), fetch, length)
    file, model = io.BufferedReader(pieces, 7), io.BytesIO(data)
    for at, size in reads:
        file.seek(at)
        model.seek(at)
        assert file.read(size) == model.read(size)
    assert pieces.checksum() == f"crc32:{zlib.crc32(data):08x}"
    assert set(asked) <= {length}


def test_what_is_read_in_order_is_fetched_once_and_what_is_not_once_more() -> None:
    asked: list[int] = []
    pieces = Pieces(40, lambda start, length: (asked.append(start), bytes(range(start, start + length)))[1], 10)
    for at in (30, 0, 10, 20):
        pieces.seek(at)
        pieces.read(10)
    assert pieces.checksum() == f"crc32:{zlib.crc32(bytes(range(40))):08x}"
    assert asked == [30, 0, 10, 20, 30]


def test_an_object_that_ends_too_early_is_damage() -> None:
    with pytest.raises(EOFError):
        Pieces(10, lambda start, length: b"01234"[start : start + length], 5).checksum()


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "snappy": lambda data: bytes(cramjam.snappy.compress(data)),
    "lz4": lambda data: bytes(cramjam.lz4.compress(data)),
    "brotli": lambda data: brotli.compress(data, quality=1),
    "bzip2": bz2.compress,
    "deflate": zlib.compress,
}


@pytest.mark.parametrize("codec", CODECS)
def test_lines_are_counted(codec: str) -> None:
    data = b"\n" + b'{"n": 1}\n' * 300_000
    assert lines(io.BytesIO(CODECS[codec](data)), Settings(codec=codec)) == 300_001
    assert lines(io.BytesIO(CODECS[codec](b"")), Settings(codec=codec)) == 0
    with pytest.raises(ValueError, match="the last line has no newline"):
        lines(io.BytesIO(CODECS[codec](data[:-1])), Settings(codec=codec))


@pytest.mark.parametrize(("codec", "error"), [("gzip", (zlib.error, gzip.BadGzipFile)), ("zstd", zstandard.ZstdError)])
def test_a_damaged_stream_is_damage(codec: str, error: Any) -> None:
    data = bytearray(CODECS[codec](bytes(range(256)) * 100 + b"\n"))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(error):
        lines(io.BytesIO(bytes(data)), Settings(codec=codec))


def test_memory_holds_one_piece_whatever_the_size_of_the_object_and_of_its_parts() -> None:
    size = 15 * PIECE // 100 * 100
    data = (b"x" * 99 + b"\n") * (PIECE // 100 + 2)

    def fetch(start: int, length: int) -> bytes:
        at = start % 100
        return data[at : at + min(length, size - start)]

    crc = 0
    for start in range(0, size, PIECE):
        crc = zlib.crc32(fetch(start, PIECE), crc)
    settings = Settings(codec="none", part_bytes=1 << 30)
    entry = ENTRY.model_copy(update={"bytes": size, "rows": size // 100, "checksum": f"crc32:{crc:08x}"})
    tracemalloc.start()
    try:
        content = read_through(entry, plan(settings=settings), fetch)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert content == []
    # The piece that is left, and the one that comes.
    assert peak < 3 * PIECE
