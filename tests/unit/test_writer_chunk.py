"""Each record once, in the hour of its timestamp; an account of every offset; the same bytes however it was done."""

import logging
import pickle
import zlib
from collections import defaultdict
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.records.writer.part import part_size
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.values.gaps import unpack
from tests.support.chunks import (
    HOUR,
    LAST_MS,
    Row,
    batch,
    chunk_of,
    cut,
    facts,
    new_store,
    path_of,
    read_json,
    read_parquet,
    read_values,
    write,
)

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("small_parts")]

START = 1000
HOURS = (0, 1, 2, 495_000, 495_001, LAST_MS // HOUR)
TIMES = st.one_of(
    st.sampled_from([-1, -(2**63), 2**63 - 1, LAST_MS, LAST_MS + 1, 0]),
    st.builds(lambda h, ms: h * HOUR + ms, st.sampled_from(HOURS), st.sampled_from([0, 1, HOUR // 2, HOUR - 1])),
)
BYTES = st.none() | st.binary(max_size=8) | st.just(b'{"a": "\xc3\xa4"}')
# A line feed in a value that is not JSON is refused by the format: another test's matter.
VALUES = BYTES.filter(lambda value: value is None or not {*b"\r\n"} & {*value})
STEPS = st.one_of(st.just(1), st.just(1), st.integers(1, 5))
HEADERS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3).map(tuple)
RECORDS = st.lists(st.tuples(STEPS, TIMES, st.integers(0, 1), BYTES, VALUES, HEADERS), max_size=40)


def rows_of(
    drawn: list[tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
) -> list[Row]:
    offset, rows = START - 1, []
    for step, *fields in drawn:
        offset += step
        rows.append(Row(offset, *fields))
    return rows


def expected(rows: list[Row]) -> dict[str, list[Row]]:
    filed = defaultdict(list)
    for row in rows:
        filed[path_of(row.timestamp)].append(row)
    return dict(filed)


def _line(row: Row) -> bytes:
    return b"null" if row.value is None else row.value


@given(RECORDS, st.integers(0, 3), st.integers(1, 50))
@pytest.mark.parametrize(
    ("options", "read"),
    [({"format": "jsonl", "codec": "gzip"}, read_json), ({"format": "parquet", "codec": "zstd"}, read_parquet)],
)
@settings(max_examples=60, deadline=None)
def test_every_record_once_in_the_hour_of_its_timestamp(
    options: dict[str, str], read: Callable[[bytes], list[Row]], drawn: list, tail: int, size: int
) -> None:
    rows = rows_of(drawn)
    end = (rows[-1].offset if rows else START) + 1 + tail
    store = new_store()
    result = write(chunk_of(START, end), cut(rows, size), store, content="record", part_bytes=100, **options)
    assert not list(store.list(""))
    entries = complete([result], store, threads=2)
    by_path = {entry.path: read(store.get(entry.key)) for entry in entries}
    assert by_path == expected(rows)
    for entry in entries:
        mine = by_path[entry.path]
        assert (entry.rows, entry.first_offset, entry.last_offset) == (len(mine), mine[0].offset, mine[-1].offset)
        assert entry.min_timestamp == min(row.timestamp for row in mine)
        assert entry.max_timestamp == max(row.timestamp for row in mine)
        assert entry.bytes == len(store.get(entry.key))
        assert entry.checksum == f"crc32:{zlib.crc32(store.get(entry.key)):08x}"
        assert entry.key.startswith(f"orders/{entry.path}/orders+3+{START:020d}.")
    assert [entry.key for entry in entries] == sorted(entry.key for entry in entries)


@given(RECORDS, st.integers(0, 3), st.booleans())
@settings(max_examples=100, deadline=None)
def test_the_account_explains_every_offset(drawn: list, tail: int, skip: bool) -> None:
    rows = rows_of(drawn)
    chunk = chunk_of(START, (rows[-1].offset if rows else START) + 1 + tail)
    store = new_store()
    result = write(chunk, cut(rows, 7), store, null_value="skip" if skip else "archive")
    dropped = [row for row in rows if skip and row.value is None]
    offsets_seen = {row.offset for row in rows}
    account = result.account
    # Validates that the counts add up and the ranges are the absent offsets.
    assert ChunkAccount.model_validate(account.model_dump()) == account
    assert (account.chunk, account.archived, account.filtered) == (chunk, len(rows) - len(dropped), len(dropped))
    absent = [offset for pair in account.absent_ranges for offset in range(*pair)]
    assert absent == [offset for offset in range(chunk.start, chunk.end) if offset not in offsets_seen]
    assert all(a[1] < b[0] for a, b in zip(account.absent_ranges, account.absent_ranges[1:], strict=False))
    kept = [row for row in rows if row not in dropped]
    by_path = {e.path: read_values(store.get(e.key)) for e in complete([result], store)}
    assert by_path == {path: [_line(row) for row in mine] for path, mine in expected(kept).items()}


@given(RECORDS, st.integers(1, 50), st.integers(1, 50), st.sampled_from([0, 1, 300]), st.integers(1, 4))
@pytest.mark.parametrize(("format_", "codec"), [("jsonl", "gzip"), ("parquet", "zstd")])
@settings(max_examples=60, deadline=None)
def test_neither_batches_nor_limits_can_be_told_from_the_objects(
    format_: str, codec: str, drawn: list, size: int, other: int, memory_bytes: int, open_objects: int
) -> None:
    rows = rows_of(drawn)
    chunk = chunk_of(START, START + 300)
    options = {"content": "record", "format": format_, "codec": codec, "part_bytes": 100}
    whole = write(chunk, cut(rows, size), **options)
    limits = Limits(memory_bytes=memory_bytes, open_objects=open_objects, upload_threads=1)
    assert facts(write(chunk, cut(rows, other), limits=limits, **options)) == facts(whole)


def test_parts_are_cut_at_fixed_places() -> None:
    values = [bytes([65 + i % 26]) * 997 for i in range(100)]
    rows = [Row(i, 5, value=value) for i, value in enumerate(values)]
    results = [
        write(chunk_of(0, 100), cut(rows, size), limits=limits, part_bytes=7000, codec="none")
        for size in (1, 3, 100)
        for limits in (Limits(), Limits(memory_bytes=1), Limits(memory_bytes=9000, upload_threads=1))
    ]
    # 99,800 bytes: fourteen parts of 7,000 and one of 1,800.
    assert [part.size for part in results[0].objects[0].upload.parts] == [7000] * 14 + [1800]
    assert all(facts(result) == facts(results[0]) for result in results)
    exact = write(chunk_of(0, 7), cut(rows[:7], 7), part_bytes=998, codec="none")
    assert [part.size for part in exact.objects[0].upload.parts] == [998] * 7


def test_an_object_of_which_equal_parts_would_be_too_many_has_larger_ones() -> None:
    rows = [Row(i, 5, value=b"%08d" % i * 100) for i in range(1400)]
    store = new_store()
    result = write(chunk_of(0, 1400), cut(rows, 300), store, codec="none", part_bytes=100)
    # 1.1 MB; the twin takes 10,000 parts, as S3 does, and so at most 1 MB in such of 100.
    assert [p.size for p in result.objects[0].upload.parts[:-1]] == [
        part_size(number, 100) for number in range(1, len(result.objects[0].upload.parts))
    ]
    assert len(result.objects[0].upload.parts) < 3200
    [entry] = complete([result], store)
    assert store.get(entry.key) == b"".join(row.value + b"\n" for row in rows)


@pytest.mark.parametrize(
    ("offsets", "named"),
    [
        ([10, 12, 11], "offset 11 after 12"),
        ([10, 11, 11], "offset 11 after 11"),
        ([9, 10], "offset 9, which is outside"),
        ([18, 19, 20], "offset 20, which is outside"),
        ([20], "offset 20, which is outside"),
        ([10, 2**63 - 1], f"offset {2**63 - 1}, which is outside"),
        ([10, -(2**63)], f"offset {-(2**63)}, which is outside"),
    ],
)
@pytest.mark.parametrize("size", [1, 10])
def test_a_reader_that_jumps_or_repeats_is_found_out(offsets: list[int], named: str, size: int) -> None:
    rows = [Row(offset, 5) for offset in offsets]
    with pytest.raises(IntegrityError, match=f"orders.3. .10, 20.: the reader gave {named}"):
        write(chunk_of(10, 20), cut(rows, size))


def test_half_a_million_gaps_are_no_work() -> None:
    offsets = pa.array(range(0, 1_000_000, 2), pa.int64())
    table = pa.record_batch(
        [offsets, pa.repeat(5, len(offsets)).cast(pa.int64()), pa.repeat(pa.scalar(b"x"), len(offsets))],
        ["offset", "timestamp", "value"],
    )
    account = write(chunk_of(0, 1_000_000), [table]).account
    assert (account.archived, account.absent) == (500_000, 500_000)
    assert unpack(0, 1_000_000, account.absent_ranges)[:2].tolist() == [[1, 2], [3, 4]]
    # As ranges they were seven megabytes, and a validator or a named tuple a gap made that three times as large.
    assert len(pickle.dumps(account)) < 200_000


def test_a_chunk_without_records_has_no_objects() -> None:
    chunk = chunk_of(5, 9)
    result = write(chunk, [batch([])])
    assert (result.objects, result.account) == ((), ChunkAccount.nothing_there(chunk))


def test_five_thousand_hours_in_one_chunk(tmp_path) -> None:
    hours = [i * 7919 % 5000 * 14_000 for i in range(10_000)]
    rows = [Row(i, hour * HOUR, value=b"%d" % i) for i, hour in enumerate(hours)]
    store = new_store()
    limits = Limits(memory_bytes=1 << 20, spill_directory=tmp_path)
    result = write(chunk_of(0, len(rows)), cut(rows, 500), store, limits)
    assert len(result.objects) == 5000
    by_path = {e.path: read_values(store.get(e.key)) for e in complete([result], store)}
    assert by_path == {path: [_line(row) for row in mine] for path, mine in expected(rows).items()}
    assert not list(tmp_path.iterdir())


def test_results_survive_pickling() -> None:
    result = write(chunk_of(0, 3), cut([Row(0, 5), Row(2, HOUR)], 1))
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_line_in_the_log_says_what_was_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafka_archiver")
    write(chunk_of(1000, 3000), cut([Row(i, i * HOUR) for i in range(1000, 3000)], 100))
    assert "chunk orders[3] [1000, 3000): 2,000 records, 2000 objects, 0." in caplog.text
    assert "records/s" in caplog.text
