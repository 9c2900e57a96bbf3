"""Records that the format cannot hold: refused with the choices, put aside with all Kafka had, or left out; counted."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import BadRecordError
from kafka_archiver.model.object_keys import is_dead_letter
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.state.coverage.dead_letters import READ_OBJECTS, reasons_of
from tests.support.chunks import HOUR, Row, chunk_of, cut, new_store, path_of, read_values, write

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("small_parts")]

GOOD, BAD = (b'{"a":1}', b"7", None), (b"{", b"two\nlines", b"\xff")
DRAWN = st.lists(
    st.tuples(st.sampled_from([0, 1, 2 * HOUR, -1]), st.sampled_from(GOOD + BAD), st.integers(1, 3)), max_size=30
)


def rows_of(drawn: list[tuple[int, bytes | None, int]]) -> list[Row]:
    offset, rows = -1, []
    for timestamp, value, step in drawn:
        offset += step
        rows.append(Row(offset, timestamp, 0, b"key", value, (("h", b"1"), ("h", None))))
    return rows


@given(DRAWN, st.sampled_from(["dead_letter", "skip"]), st.integers(1, 20), st.sampled_from([1, 64]))
@settings(max_examples=80, deadline=None)
def test_good_records_are_archived_and_bad_ones_are_where_the_policy_says(
    drawn: list[tuple[int, bytes | None, int]], policy: str, size: int, open_objects: int
) -> None:
    rows = rows_of(drawn)
    bad = {row.offset for row in rows if row.value in BAD}
    chunk, store = chunk_of(0, (rows[-1].offset if rows else 0) + 1), new_store()
    limits = Limits(memory_bytes=16, open_objects=open_objects, upload_threads=1)
    result = write(chunk, cut(rows, size), store, limits, part_bytes=50, value_decode="json", bad_record=policy)
    account = result.account
    assert account.archived == len(rows) - len(bad)
    assert (account.dead_lettered, account.filtered) == ((len(bad), 0) if policy == "dead_letter" else (0, len(bad)))
    good: dict[str, list[bytes]] = {}
    dead: dict[str, list[int]] = {}
    for row in rows:
        if row.offset in bad:
            dead.setdefault(path_of(row.timestamp), []).append(row.offset)
        else:
            good.setdefault(path_of(row.timestamp), []).append(b"null" if row.value is None else row.value)
    entries = complete([result], store)
    assert {e.path: read_values(store.get(e.key)) for e in entries if not is_dead_letter(e.key)} == good
    letters = {
        e.path: [json.loads(line) for line in gzip.decompress(store.get(e.key)).splitlines()]
        for e in entries
        if is_dead_letter(e.key)
    }
    named = reasons_of(store, [e for e in entries if is_dead_letter(e.key)])
    assert sum(damaged_part.letters for damaged_part in named) == sum(
        len(some) for some in list(letters.values())[:READ_OBJECTS]
    )
    rejected = {path: [letter["offset"] for letter in some] for path, some in letters.items()}
    assert rejected == (dead if policy == "dead_letter" else {})
    for letter in (letter for some in letters.values() for letter in some):
        assert (letter["topic"], letter["partition"], letter["key"]) == (chunk.topic, chunk.partition, "key")
        assert letter["headers"] == [{"key": "h", "value": "1"}, {"key": "h", "value": None}]
        assert letter["error"]
        assert "value" in letter or "value_base64" in letter


@pytest.mark.parametrize("format_", ["jsonl", "avro", "parquet"])
def test_every_format_finds_values_that_are_not_what_decode_says(format_: str) -> None:
    rows = rows_of([(0, b"{", 1), (0, b"1", 1)])
    result = write(
        chunk_of(0, 2),
        cut(rows, 1),
        new_store(),
        format=format_,
        codec="none",
        content="record",
        value_decode="json",
        bad_record="dead_letter",
    )
    assert (result.account.archived, result.account.dead_lettered) == (1, 1)


def test_the_refusal_names_the_command_for_each_choice() -> None:
    rows = rows_of([(0, b"1", 1), (0, b"two\nlines", 1)])
    with pytest.raises(BadRecordError, match=r"offset 1: .*bad_record: dead_letter`.*policies.bad_record: skip`"):
        write(chunk_of(0, 2), cut(rows, 1), new_store())
