"""A dead letter has everything that Kafka had, and is read back as it was; what it lacks, it says."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.plan import Chunk, DeadLetters
from kafka_archiver.model.replayed import with_dead_letters
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats.base import UNREAD
from kafka_archiver.records.formats.unread import HEADER_KEY, OLD_TIME
from kafka_archiver.records.writer import dead_letter_reader
from kafka_archiver.records.writer.bad_records import BadRecords
from kafka_archiver.records.writer.dead_letter_reader import read_letters
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.records.writer.result import ChunkResult, Limits, WriteJob
from kafka_archiver.records.writer.upload import Sender
from kafka_archiver.store.base import Store
from tests.support.chunks import HOUR, Row, batch, chunk_of, cut, new_store, read_json, write

pytestmark = pytest.mark.unit

BYTES = st.none() | st.binary(max_size=8) | st.text(max_size=4).map(str.encode) | st.just(b"\xff\n")
HEADERS = st.lists(st.tuples(st.sampled_from(["h", "h", "", "ü\n"]), BYTES), max_size=3).map(tuple)
TIMES = st.sampled_from([0, 1, HOUR, 2 * HOUR + 5, -1, 2**53, 253_402_300_800_000])
DRAWN = st.lists(st.tuples(st.integers(1, 3), TIMES, st.sampled_from([0, 1]), BYTES, BYTES, HEADERS), max_size=25)


def rows_of(
    drawn: Sequence[tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
) -> list[Row]:
    offset, rows = -1, []
    for step, *fields in drawn:
        offset += step
        rows.append(Row(offset, *fields))
    return rows


def put_aside(chunk: Chunk, batches: Iterator[pa.RecordBatch], store: Store) -> list[ObjectEntry]:
    """Every record as a dead letter."""
    job = WriteJob(archive="a", settings=Settings(), bad_record="dead_letter")
    with Sender(store, 1) as sender, closing(BadRecords(chunk, job, Limits(), sender)) as bad:
        for some in batches:
            if some.num_rows:
                bad.take(some, {offset: f"why {offset}" for offset in some.column("offset").to_pylist()})
        letters = bad.finish()
    return complete([ChunkResult(account=ChunkAccount.nothing_there(chunk), objects=letters)], store)


def as_letters(entries: Sequence[ObjectEntry]) -> list[DeadLetters]:
    return [DeadLetters(key=e.key, rows=e.rows, bytes=e.bytes, checksum=e.checksum) for e in entries]


def as_rows(batches: Iterator[pa.RecordBatch]) -> list[Row]:
    rows = [row for some in batches for row in some.to_pylist()]
    assert all(row.pop("unread") is None for row in rows)
    return [Row(**{**row, "headers": tuple((h["key"], h["value"]) for h in row["headers"])}) for row in rows]


@given(DRAWN, st.integers(1, 9), st.sampled_from([1, 7, 1 << 14]))
@settings(max_examples=100, deadline=None)
def test_a_dead_letter_has_everything_that_kafka_had_and_is_read_back_in_offset_order(
    drawn: list[tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    size: int,
    piece: int,
) -> None:
    rows = rows_of(drawn)
    chunk, store = chunk_of(0, (rows[-1].offset if rows else 0) + 1), new_store()
    entries = put_aside(chunk, cut(rows, size), store)
    # Once with a reader of the tests, once with that of a replay.
    letters_read = [row for entry in entries for row in read_json(store.get(entry.key))]
    assert sorted(letters_read, key=lambda row: row.offset) == rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dead_letter_reader, "PIECE", piece)
        assert as_rows(read_letters(store, chunk, as_letters(entries))) == rows


def test_dead_letters_are_read_piece_by_piece() -> None:
    rows = [Row(n, n % 3 * HOUR, 0, b"k", b"{" + b"x" * 1000) for n in range(9_000)]
    chunk, store = chunk_of(0, len(rows)), new_store()
    entries = put_aside(chunk, cut(rows, 1000), store)
    pieces = list(read_letters(store, chunk, as_letters(entries)))
    assert sum(some.num_rows for some in pieces) == len(rows)
    # gzip makes a hundredth of such lines.
    assert max(some.nbytes for some in pieces) < 6 << 20


@pytest.mark.parametrize(
    ("words", "column", "content", "archived"),
    [(HEADER_KEY, "headers", "value", 1), (HEADER_KEY, "headers", "record", 0), (OLD_TIME, "timestamp", "value", 0)],
)
def test_a_letter_without_a_column_that_is_archived_stays_a_dead_letter(
    words: str, column: str, content: str, archived: int
) -> None:
    chunk, store = chunk_of(0, 1), new_store()
    mark = {"column": column, "reason": f"{words}, and more"}
    whole = batch([Row(0, -1)]).append_column(UNREAD, pa.array([mark], UNREAD.type))
    first = write(chunk, [whole], store, content="record", bad_record="dead_letter")
    letter = as_letters(complete([first], store))
    for _ in range(2):
        again = write(chunk, read_letters(store, chunk, letter), store, content=content, bad_record="dead_letter")
        assert (again.account.archived, again.account.dead_lettered) == (archived, 1 - archived)
        letter = as_letters(complete([again], store)) if not archived else letter


def test_an_object_that_is_not_the_manifests_is_refused() -> None:
    chunk, store = chunk_of(0, 3), new_store()
    [entry] = put_aside(chunk, cut([Row(0, 0), Row(1, 0)], 1), store)
    [item] = as_letters([entry])
    for update in ({"rows": 3}, {"checksum": "crc32:00000000"}):
        with pytest.raises(IntegrityError, match=r"expected . rows with checksum"):
            list(read_letters(store, chunk, [item.model_copy(update=update)]))
    with pytest.raises(IntegrityError, match="records of another topic than others"):
        list(read_letters(store, chunk_of(0, 3, "others"), [item]))


def test_the_account_takes_no_other_number_of_letters_than_it_has() -> None:
    before = ChunkAccount(**chunk_of(0, 5).model_dump(), archived=3, dead_lettered=2)
    read = ChunkAccount(**chunk_of(0, 5).model_dump(), archived=1, filtered=1, absent=3, absent_ranges=((2, 5),))
    after = with_dead_letters(before, read)
    assert (after.archived, after.filtered, after.dead_lettered, after.absent) == (4, 1, 0, 0)
    with pytest.raises(IntegrityError, match="has 2 dead letters, but 1 were read"):
        with_dead_letters(before, read.model_copy(update={"archived": 0}))
