"""Records of which a reader could not read something: the policy for bad records decides, where it is needed at all."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import BadRecordError, IntegrityError
from kafka_archiver.model.object_keys import is_dead_letter
from kafka_archiver.records.formats.base import UNREAD
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.spark.sink import only
from kafka_archiver.values.ranges import TopicPartition
from tests.support.chunks import HOUR, Row, batch, chunk_of, facts, new_store, read_values, write

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("small_parts")]


class Marked(NamedTuple):
    """A record, and which column a reader could not read."""

    row: Row
    column: str | None


def cut(marked: Sequence[Marked], size: int) -> Iterator[pa.RecordBatch]:
    """Cut records into batches as readers give them: a batch without such a record has no column for it."""
    for start in range(0, len(marked), size):
        some = marked[start : start + size]
        cut_batch = batch([m.row for m in some])
        if any(m.column for m in some):
            marks = [{"column": m.column, "reason": f"no {m.column}"} if m.column else None for m in some]
            cut_batch = cut_batch.append_column(UNREAD, pa.array(marks, UNREAD.type))
        yield cut_batch


@st.composite
def records(draw: st.DrawFn) -> list[Marked]:
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from([0, 1, HOUR, -1]),
                st.sampled_from([b"1", b'{"a":2}', None, b"{", b"a\nb"]),
                st.sampled_from([None, None, "headers", "timestamp"]),
                st.integers(1, 3),
            ),
            min_size=1,
            max_size=25,
        )
    )
    offset, messages = -1, []
    for time, value, column, step in drawn:
        offset += step
        time = -1 if column == "timestamp" else time
        headers = () if column == "headers" else (("h", b"1"),)
        messages.append(Marked(Row(offset, time, 0, b"k", value, headers), column))
    return messages


@given(
    records(),
    st.sampled_from(["dead_letter", "skip"]),
    st.sampled_from(["value", "record"]),
    st.integers(1, 25),
    st.sampled_from([1, 64]),
)
def test_the_policy_decides_and_neither_batches_nor_limits_matter(
    marked: list[Marked], policy: str, content: str, size: int, open_objects: int
) -> None:
    chunk, store = chunk_of(0, marked[-1].row.offset + 1), new_store()
    options = {"part_bytes": 50, "value_decode": "json", "content": content, "bad_record": policy}
    limits = Limits(memory_bytes=16, open_objects=open_objects, upload_threads=1)
    result = write(chunk, cut(marked, size), store, limits, **options)  # type: ignore[arg-type]
    assert facts(result) == facts(write(chunk, cut(marked, len(marked)), **options))  # type: ignore[arg-type]

    # Nobody needs the headers of a record whose value alone is stored.
    needed = {"timestamp"} if content == "value" else {"timestamp", "headers"}
    expected = {}
    for row, column in marked:
        reasons = []
        if column in needed:
            reasons = [f"no {column}"]
        elif row.value in (b"{", b"a\nb"):
            reasons = ["not one JSON document", *([f"no {column}"] if column else [])]
        if reasons:
            expected[row.offset] = reasons
    account = result.account
    bad = account.dead_lettered if policy == "dead_letter" else account.filtered
    assert (account.archived, bad) == (len(marked) - len(expected), len(expected))
    entries = complete([result], store)
    letters = [
        json.loads(line)
        for entry in entries
        if is_dead_letter(entry.key)
        for line in read_values(store.get(entry.key) or b"")
    ]
    if policy == "dead_letter":
        assert {letter["offset"] for letter in letters} == set(expected)
        rows = {m.row.offset: m.row for m in marked}
        for letter in letters:
            parts = letter["error"].split("; ")
            assert all(part in " ".join(parts) for part in expected[letter["offset"]])
            # What could be read is there, what could not is not made up.
            row = rows[letter["offset"]]
            assert (letter["timestamp"], letter["key"]) == (row.timestamp, "k")
            assert letter["value"] == (None if row.value is None else row.value.decode())
            assert [(h["key"], h["value"].encode()) for h in letter["headers"]] == list(row.headers)
    else:
        assert letters == []


def test_they_are_refused_with_the_reason_and_the_command_for_each_choice() -> None:
    rows = [Marked(Row(0, 0), None), Marked(Row(1, 0), "headers"), Marked(Row(2, 0), "headers")]
    with pytest.raises(
        BadRecordError,
        match=r"orders\[3\] offset 1: no headers; and 1 more of the same batch\. .*"
        r"airflow dags trigger archive_a --conf '.*bad_record: dead_letter`.*policies.bad_record: skip`",
    ):
        write(chunk_of(0, 3), cut(rows, 3), content="record")


def from_spark(times: list[int], **columns: list[object]) -> pa.RecordBatch:
    count = len(times)
    fields = {"topic": ["t"] * count, "partition": pa.array([0] * count, pa.int32()), "offset": range(7, 7 + count)}
    return pa.RecordBatch.from_pydict({**fields, "timestamp": pa.array(times, pa.int64()), **columns})


OLD = -2_177_452_800_001


def test_a_time_that_spark_does_not_give_exactly_is_none_and_says_so() -> None:
    plain = only(from_spark([OLD + 1, 5]), TopicPartition("t", 0))
    assert plain.schema.names == ["offset", "timestamp"]
    heads = [[{"key": "h\ufffd", "value": b""}], [], [{"key": "h", "value": None}], []]
    headers = pa.array(heads, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    rows = only(from_spark([OLD, 5, OLD - 1, -(2**60)], headers=headers), TopicPartition("t", 0)).to_pylist()
    assert [row["timestamp"] for row in rows] == [-1, 5, -1, -1]
    why = "its time is before 1901, which Spark's Kafka source does not give exactly"
    # The other reader cannot read the first one's header.
    other = "; `source.reader: native` stores it as it is"
    reasons = [row["unread"] and row["unread"]["reason"] for row in rows]
    assert reasons == [why, None, why + other, why + other]
    assert {row["unread"]["column"] for row in rows if row["unread"]} == {"timestamp"}


def test_spark_never_mixes_partitions_in_a_task() -> None:
    mixed = from_spark([1, 2]).set_column(1, "partition", pa.array([0, 1], pa.int32()))
    with pytest.raises(IntegrityError, match="mixed partitions"):
        only(mixed, TopicPartition("t", 0))
