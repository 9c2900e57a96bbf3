"""Records that pass Spark by: each gets what Spark made of it, whatever the batches, and none is lost or made up."""

import json
import math
import uuid
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import IntegrityError, TransientError
from kafka_archiver.model.transforms import Sql
from kafka_archiver.records.pipeline.transform.from_spark import COUNT, ROWS, UNFIT
from kafka_archiver.records.pipeline.transform.spark_types import ForSpark, field_of, spelt
from kafka_archiver.spark import spool as module
from kafka_archiver.spark.failing_records import smallest_failing_range
from kafka_archiver.spark.results import Results
from kafka_archiver.spark.spool import Segment, Spool, sweep
from tests.support.chunks import chunk_of
from tests.support.typed import LEAVES, NESTED, ORDER, column_of

pytestmark = pytest.mark.unit

MADE = json.dumps({"type": "struct", "fields": [{"name": "x", "type": "long"}]})
WHERE = Sql(where="w", select=("*",), made={"orders": MADE})
FUNCTION = Sql(function="m:f", made={"orders": MADE})
# By offset: how many rows, or -1, -2; and where batches end.
DRAWN = st.dictionaries(st.integers(0, 30), st.integers(-2, 3), max_size=12)
CUTS = st.lists(st.integers(0, 12), max_size=3)


def spool_of(segments: list[Segment], failure: Any = None) -> Spool:
    name = uuid.uuid4().hex
    into = Spool(name)
    for segment in segments:
        into.write(segment)
    into.end(failure)
    return Spool(name)


def pieces(items: list[Any], cuts: list[int]) -> Iterator[list[Any]]:
    edges = [0, *sorted(min(cut, len(items)) for cut in cuts), len(items)]
    for start, end in pairwise(edges):
        if start < end:
            yield items[start:end]


def rows_batch(rows: list[tuple[int, int, int, int | None]]) -> pa.RecordBatch:
    chunks, offsets, fates, values = map(list, zip(*rows, strict=True))
    structs = pa.array([None if v is None else {"x": v} for v in values], pa.struct([("x", pa.int64())]))
    columns = [pa.array(chunks, pa.int64()), pa.array(offsets, pa.int64()), pa.array(fates, pa.int64()), structs]
    return pa.record_batch(columns, ["_chunk", "_offset", "_fate", "_row"])


@pytest.mark.parametrize("sql", [WHERE, FUNCTION], ids=["sql", "function"])
@given(DRAWN, CUTS, CUTS, st.sets(st.integers(0, 30)))
def test_each_record_gets_its_rows(
    sql: Sql, drawn: dict[int, int], cuts: list[int], other: list[int], unfit: set[int]
) -> None:
    by_sql = sql.function is None
    fates = {offset: min(fate, 1) if by_sql else max(fate, 0) for offset, fate in sorted(drawn.items())}
    sent = {offset: fate for offset, fate in fates.items() if offset not in unfit}
    # The same offsets in another partition, too.
    chunks = [chunk_of(0, 15), chunk_of(15, 31), chunk_of(0, 31)]
    segments, rows = [], []
    for number, chunk in enumerate(chunks):
        mine = [offset for offset in fates if offset in chunk.range]
        for some in pieces(mine, cuts):
            left = sum(offset in sent for offset in some)
            gone = [offset for offset in some if offset in unfit]
            segments.append(Segment(number, chunk, pa.record_batch({"offset": pa.array(some, pa.int64())}), left, gone))
        for offset in mine:
            if by_sql and offset in sent:
                rows.append((number, offset, sent[offset], 10 * offset if sent[offset] == 1 else None))
            elif offset in sent:
                rows += [(number, offset, 0, 10 * offset + n) for n in range(sent[offset])]
    spool = spool_of(segments)
    counted: dict[tuple[int, int], Any] = {}
    try:
        results = Results(sql, spool, iter(map(rows_batch, pieces(rows, other))))
        while following := results.chunk():
            number, chunk = following
            assert chunk == chunks[number]
            for batch in results.records(number):
                for row in batch.to_pylist():
                    counted[number, row["offset"]] = row[COUNT], [struct["x"] for struct in row[ROWS]]
        results.finish()
    finally:
        spool.remove()
    expected = {
        offset: (UNFIT, []) if offset in unfit else (fate, [10 * offset + n for n in range(max(fate, 0))])
        for offset, fate in fates.items()
    }
    assert counted == {
        (number, offset): rows_
        for number, chunk in enumerate(chunks)
        for offset, rows_ in expected.items()
        if offset in chunk.range
    }


@pytest.mark.parametrize(
    ("sql", "rows", "message"),
    [
        (WHERE, [(0, 1, 1, 1)], "Spark got 2 records and returned 1 rows"),
        (FUNCTION, [(0, 2, 0, 1), (0, 1, 0, 1)], "in another order"),
        (FUNCTION, [(0, 0, 0, 1)], "or of other records"),
        (FUNCTION, [(0, 9, 0, 1)], "Spark returned a row of offset 9, which was not read"),
    ],
)
def test_what_spark_must_not_return_is_a_fault(sql: Sql, rows: list[Any], message: str) -> None:
    spool = spool_of([Segment(0, chunk_of(0, 10), pa.record_batch({"offset": pa.array([1, 2], pa.int64())}), 2, [])])
    results = Results(sql, spool, iter([rows_batch(rows)]))
    with pytest.raises(IntegrityError, match=message):
        drain(results)
    spool.remove()


def drain(results: Results) -> None:
    while following := results.chunk():
        list(results.records(following[0]))
    results.finish()


def test_what_made_the_reader_fail_comes_to_the_writer() -> None:
    segment = Segment(0, chunk_of(0, 10), pa.record_batch({"offset": pa.array([1], pa.int64())}), 0, [])
    spool = spool_of([segment], TransientError("the brokers do not answer"))
    results = Results(FUNCTION, spool, iter([]))
    assert results.chunk() == (0, chunk_of(0, 10))
    with pytest.raises(TransientError, match="the brokers do not answer"):
        list(results.records(0))
    spool.remove()


def test_a_chunk_without_records_is_told_too_and_spools_of_dead_tasks_are_removed() -> None:
    empty = Segment(0, chunk_of(0, 10), pa.record_batch({"offset": pa.array([], pa.int64())}), 0, [])
    spool = spool_of([empty])
    results = Results(FUNCTION, spool, iter([]))
    assert results.chunk() == (0, chunk_of(0, 10))
    assert list(results.records(0)) == []
    assert results.chunk() is None
    assert spool._folder not in list(sweep())
    # Another task of this process: the lock on the first one is free.
    other = Spool(uuid.uuid4().hex)
    assert spool._folder in list(sweep())
    other.remove()


def test_the_records_of_a_reader_that_has_ended_wait_for_a_writer_that_starts_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    segment = Segment(0, chunk_of(0, 10), pa.record_batch({"offset": pa.array([1], pa.int64())}), 1, [])
    spool = spool_of([segment])
    # The reader's process has its next task, and the writer's has not started: nobody has the lock.
    other = Spool(uuid.uuid4().hex)
    assert spool._folder not in list(sweep())
    assert spool.take() == segment
    # From now on the writer's lock says whether it lives.
    assert spool._folder in list(sweep())
    abandoned = spool_of([segment])
    third = Spool(uuid.uuid4().hex)
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0)
    assert abandoned._folder in list(sweep())
    for left in (other, third):
        left.remove()


def test_a_reader_whose_writer_has_failed_ends_without_an_error_that_would_hide_the_writers() -> None:
    name = uuid.uuid4().hex
    reader = Spool(name)
    Spool(name).remove()
    with pytest.raises(TransientError, match="Temporary files in") as failure:
        reader.write(Segment(0, chunk_of(0, 10), pa.record_batch({"offset": pa.array([1], pa.int64())}), 1, []))
    reader.end(failure.value)
    reader.end()


@pytest.mark.parametrize("name", ["value", *LEAVES, *NESTED])
def test_every_type_has_one_that_spark_knows_and_what_it_makes_is_stored(name: str) -> None:
    kind = ORDER.type if name == "value" else ORDER.type.field(name).type
    converted = ForSpark(pa.field("value", kind))
    described = json.dumps(spelt(converted.field.type))
    # A further round changes nothing.
    assert json.dumps(spelt(ForSpark(field_of(described)).field.type)) == described
    values: list[Any] = [None]
    if name != "value":
        values.append((LEAVES[name] if name in LEAVES else (None, NESTED[name][1]))[1])
    column = column_of(pa.field("value", kind), values).column(0)
    if name == "huge":
        return
    array = converted.array(column)
    assert (array.type, len(array), array.null_count) == (converted.field.type, len(values), 1)


@given(bad=st.integers(0, 63), alone=st.booleans())
def test_the_record_on_which_a_function_fails_is_found(bad: int, alone: bool) -> None:
    chunks = [chunk_of(0, 20), chunk_of(20, 64)]
    fails = lambda some: any(bad in chunk.range for chunk in some) and (alone or sum(c.range.size for c in some) > 7)  # noqa: E731
    [smallest_chunk] = smallest_failing_range(chunks, fails, math.inf)
    assert bad in smallest_chunk.range
    assert smallest_chunk.range.size == 1 if alone else smallest_chunk.range.size > 7
    assert smallest_failing_range(chunks, fails, 0) == chunks
    assert smallest_failing_range(chunks, lambda _: False, math.inf) == chunks
