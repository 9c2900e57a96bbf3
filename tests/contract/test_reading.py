"""Archives read back: what was archived, whole and by offset, in every format, also encrypted."""

import re
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver import open_archive
from kafka_archiver.encryption import Keyring
from kafka_archiver.encryption.masters import LocalMaster
from kafka_archiver.messages.errors import ConfigError, IntegrityError, TransientError
from kafka_archiver.model.object_keys import line_document, run_document
from kafka_archiver.model.restore import RestoreSelection
from kafka_archiver.model.settings import Content, Evolution
from kafka_archiver.reader.archive import ArchiveReader
from kafka_archiver.reader.lookup import Lookup
from kafka_archiver.records.formats.registry import get_format, names
from kafka_archiver.store import open_store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.restore.gather import gather
from scripts.stack.s3 import S3
from tests.contract.test_many_schemas import lake_of
from tests.support.lake import FIRST, HOUR, Lake, hour

pytestmark = pytest.mark.contract
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
MASTER = Keyring([LocalMaster(b"1" * 32)])
COUNT = 12
ABSENT = {3, 8}
DECODED = {"columns": [{"name": "n", "type": "int64"}]}
# Every format, codec and content that a YAML can choose without decoders.
PLAIN = [
    {"format": name, "codec": codec, "content": content}
    for name in names()
    for codec in get_format(name).extensions
    for content in sorted(get_format(name).contents)
]
FRAMED = {"format": "bytes", "content": "value", "options": {"framing": "length"}}


def identity(value: Any) -> str:
    return "-".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def new_lake(sealed: bool = False, count: int = COUNT, decoded: bool = False, **store: Any) -> Lake:
    """Two partitions; every record of the first one in one of three hours, in turn, without two offsets."""
    encryption = {"encryption": {"client": {"connection": "master_key"}}} if sealed else {}
    odd = {(P0, n): {"timestamp": to_ms(FIRST) + n % 3 * HOUR, "value": b'{"n":%d}' % n} for n in range(count)}
    odd |= {(P1, n): {"timestamp": to_ms(FIRST), "value": b'{"n":%d}' % n} for n in range(4)}
    lake = Lake(
        MemoryStore(uuid.uuid4().hex), {P0: Range(0, count), P1: Range(0, 4)},
        {"chunk_records": 5, **encryption, **store}, {}, odd, keyring=MASTER if sealed else None,
    )  # fmt: skip
    lake.absent = {(P0, offset) for offset in ABSENT}
    return lake


def reader(lake: Lake) -> ArchiveReader:
    return ArchiveReader(lake.ledger)


def values(batches: Iterable[pa.RecordBatch]) -> list[bytes | None]:
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def offsets(batches: Iterable[pa.RecordBatch]) -> list[int | None]:
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


EXPECTED = [n for n in range(COUNT) if n not in ABSENT]


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("store", [*PLAIN, FRAMED], ids=identity)
def test_what_is_read_is_what_was_archived_in_the_order_of_offsets(store: dict[str, Any], sealed: bool) -> None:
    lake = new_lake(sealed, **store)
    lake.run(0)
    batches = list(reader(lake).read("orders", partitions=0))
    content: Content = store["content"]
    if content == "record":
        assert offsets(batches) == EXPECTED
        assert values(batches) == [b'{"n":%d}' % n for n in EXPECTED]
        assert {name for batch in batches for name in batch.schema.names} >= {"topic", "partition", "timestamp"}
    elif store["format"] == "bytes" and store is not FRAMED:
        # Of several values together nobody knows where one ends, so they have no offset; of one alone it is known.
        for offset, value in zip(offsets(batches), values(batches), strict=True):
            assert (value == b'{"n":%d}' % offset) if offset is not None else value.count(b"n") > 1
        assert b"".join(v or b"" for v in values(batches)).count(b"n") == len(EXPECTED)
    else:
        # Which value has which offset is unknown: three hours in turn.
        assert sorted(map(str, values(batches))) == sorted(str(b'{"n":%d}' % n) for n in EXPECTED)
        assert set(offsets(batches)) <= {None, *EXPECTED}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(max_size=3), min_size=1, max_size=8), st.integers(1, 4), st.sampled_from(["", ",", "ab"]))
def test_values_that_nobody_can_tell_apart_have_no_offset(rows: list[bytes], chunk: int, separator: str) -> None:
    lake = new_lake(format="bytes", options={"separator": separator}, chunk_records=chunk)
    lake.logs = lake.brokers.logs = {P0: Range(0, len(rows))}
    lake.odd, lake.absent = {(P0, n): {"timestamp": to_ms(FIRST), "value": row} for n, row in enumerate(rows)}, set()
    lake.run(0)
    batches = list(reader(lake).read("orders"))
    assert all(value == rows[n] for n, value in zip(offsets(batches), values(batches), strict=True) if n is not None)
    end = separator.encode()
    assert b"".join((value or b"") + end for value in values(batches)) == b"".join(row + end for row in rows)
    known = set(offsets(batches)) - {None}
    assert known >= {n for n in range(len(rows)) if chunk == 1 and not (end and end in rows[n])}
    for n in range(len(rows)):
        if n in known:
            assert values(Lookup(lake.ledger, P0).records(n)) == [rows[n]]
        else:
            with pytest.raises(ConfigError, match="values without their offsets"):
                list(Lookup(lake.ledger, P0).records(n))


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("store", [*PLAIN, FRAMED], ids=identity)
def test_a_flipped_bit_is_refused_and_a_missing_object_is_an_error_that_names_it(
    store: dict[str, Any], sealed: bool
) -> None:
    lake = new_lake(sealed, **store)
    lake.run(0)
    for entry in lake.manifest(hour(0).id).objects[:3]:
        data = lake.store.get(entry.key) or b""
        place = len(data) // 2
        lake.store.put(entry.key, data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with pytest.raises(IntegrityError) as error:
            list(reader(lake).read("orders"))
        assert entry.key in str(error.value)
        lake.store.delete(entry.key)
        with pytest.raises(IntegrityError, match="does not exist") as error:
            list(reader(lake).read("orders"))
        assert entry.key in str(error.value)
        lake.store.put(entry.key, data)


@pytest.mark.parametrize("format_", ["jsonl", "avro", "parquet", "csv"])
@pytest.mark.parametrize("content", ["value", "both"])
def test_decoded_columns_are_read_with_the_types_of_the_plan(format_: str, content: str) -> None:
    lake = new_lake(format=format_, content=content, **({"metadata": ["offset"]} if content == "value" else {}))
    as_yaml = lake.archive.model_dump(by_alias=True, exclude_defaults=True)
    as_yaml["source"] = {**as_yaml["source"], "value": {"decode": "json", "schema": DECODED["columns"]}}
    lake.configure(type(lake.archive).model_validate(as_yaml))
    lake.run(0)
    table = pa.Table.from_batches(list(reader(lake).read("orders", partitions=0)))
    assert table.schema.field("n").type == pa.int64()
    assert table.column("n").to_pylist() == table.column("offset").to_pylist() == EXPECTED


@settings(max_examples=40, deadline=None)
@given(st.integers(0, COUNT), st.integers(1, COUNT), st.integers(0, 3), st.integers(1, 3))
def test_any_offsets_and_any_hours_are_read_exactly(start: int, length: int, first: int, hours: int) -> None:
    lake = LAKES.setdefault("record", new_lake(content="record"))
    if not lake.stored():
        lake.run(0)
    times = (f"2026-11-20T{first:02d}", f"2026-11-20T{first + hours:02d}")
    offsets_read = offsets(reader(lake).read("orders", hours=times, offsets=(start, start + length), partitions=0))
    assert offsets_read == [n for n in EXPECTED if start <= n < start + length and first <= n % 3 < first + hours]


LAKES: dict[str, Lake] = {}


def test_only_the_highest_committed_revision_counts() -> None:
    lake = new_lake(content="record")
    lake.run(0)
    lake.rebuild(hour(0).id, keep=True)
    lake.rebuild(hour(0).id, keep=True, until="written")
    read: list[str] = []
    get = lake.store.read
    lake.store.read = lambda key, *ends: read.append(key) or get(key, *ends)  # type: ignore[method-assign,assignment,func-returns-value]
    assert offsets(reader(lake).read("orders", partitions=0)) == EXPECTED
    assert offsets(reader(lake).read("orders", "2026-11-20T00", partitions=0)) == [n for n in EXPECTED if n % 3 == 0]
    assert {key for key in read if "+r1." not in key and not key.startswith("_")} == set()


def test_several_runs_are_read_one_after_the_other() -> None:
    lake = new_lake(content="record", count=30)
    lake.logs[P0] = Range(10, 20)
    lake.run(0)
    lake.logs[P0] = Range(0, 30)
    lake.run(1)
    lake.run(2)
    assert offsets(reader(lake).read("orders", partitions=0)) == sorted(
        offset for offset in range(10, 30) if offset not in ABSENT
    )


def test_what_cannot_be_told_is_an_error_and_not_a_guess() -> None:
    lake = new_lake()
    lake.run(0)
    with pytest.raises(ConfigError, match="values without their offsets"):
        list(reader(lake).read("orders", offsets=(1, 3), partitions=0))
    with pytest.raises(ConfigError, match="has no topic 'invoices'; found orders"):
        list(reader(lake).read("invoices"))
    for hours in ("2026-11-20T00:30", ("2026-11-20T01", "2026-11-20T01"), "yesterday"):
        with pytest.raises(ConfigError, match="hours: expected"):
            list(reader(lake).read("orders", hours))
    with pytest.raises(ConfigError, match="offsets: expected"):
        list(reader(lake).read("orders", offsets=(3, 3)))
    for by_day in (new_lake(layout="daily"), new_lake(layout="daily", format="mak", content="record")):
        by_day.run(0)
        with pytest.raises(ConfigError, match="its rows do not tell which"):
            list(reader(by_day).read("orders", "2026-11-20T00", partitions=0))


@pytest.mark.parametrize(
    ("selection", "refused"),
    [
        ({"partitions": 7}, "has no partition 7 of orders; found 0, 1"),
        ({"partitions": [0, 7]}, "has no partition 7 of orders; found 0, 1"),
        ({"partitions": "0"}, "partitions: expected a number"),
        ({"partitions": -1}, "partitions: expected a number"),
        ({"partitions": []}, "partitions: expected a number"),
        ({"generation": 1}, "has no generation 1 of orders: the newest is 0"),
        ({"generation": "0"}, "generation: expected a number"),
        ({"offsets": 5}, "offsets: expected"),
        ({"offsets": ("1", "2")}, "offsets: expected"),
        ({"offsets": (1, 2, 3)}, "offsets: expected"),
        ({"hours": 5}, "hours: expected"),
        ({"hours": ("2026-11-20T00", "2026-11-20T01", "2026-11-20T02")}, "hours: expected"),
        ({"hours": "0001-01-01T00+14:00"}, "hours: expected"),
    ],
)
def test_a_selection_of_what_is_not_there_or_not_understood_is_refused(selection: Any, refused: str) -> None:
    lake = LAKES.setdefault("record", new_lake(content="record"))
    if not lake.stored():
        lake.run(0)
    with pytest.raises(ConfigError, match=refused):
        list(reader(lake).read("orders", **selection))
    assert list(reader(lake).read("orders", "9999-12-31T23")) == []
    assert offsets(reader(lake).read("orders", ["2026-11-20T00", "2026-11-20T02"], (np.int64(0), 2), np.int64(0)))


def test_a_plan_that_is_not_the_committed_one_is_refused() -> None:
    """Its offsets select runs, and its settings tell how to read their objects."""
    lake = new_lake(content="record")
    run = lake.run(0)
    flips = ((b'"ranges": [\n        [\n          0,', b'"ranges": [\n        [\n          4,'), (b'"gzip"', b'"czip"'))
    ask = [partial(reader(lake).read, "orders"), partial(reader(lake).read, "orders", "2026-11-20T00")]
    ask.append(partial(Lookup(lake.ledger, P0).records, 7))
    ask.append(lambda: gather(lake.ledger, RestoreSelection(topics=("orders",))).runs)
    empty = lake.planned(run).model_copy(update={"partitions": ()}).to_bytes()
    # All records and a restore are asked for by the line, those of an hour and one record by the run's own documents.
    refusals = {
        line_document(lake.name, 1): [True, False, False, True],
        run_document(lake.name, run, "plan"): [True, True, True, False],
    }
    for key, refused in refusals.items():
        whole = lake.store.get(key) or b""
        for before, after in flips:
            assert before in whole
            lake.store.put(key, whole.replace(before, after, 1))
            assert [answer(function) for function in ask] == refused
        lake.store.put(key, whole)
    lake.store.put(line_document(lake.name, 1), empty)
    assert [answer(ask[0]), answer(ask[3])] == [True, True]


def answer(function: Callable[[], Iterable[Any]]) -> bool:
    """Return True if a plan is refused."""
    try:
        return not list(function())
    except IntegrityError as error:
        if "is not the one that was committed" not in str(error):
            raise
        return True


def test_a_run_that_a_rebuild_replaces_while_it_is_read_is_not_called_damaged() -> None:
    lake = new_lake(content="record")
    lake.run(0)
    batches = reader(lake).read("orders", partitions=0)
    assert offsets([next(batches)])[0] == EXPECTED[0]
    lake.rebuild(hour(0).id)
    with pytest.raises(TransientError, match=r"was replaced by \w+\+r1 while it was read: read again"):
        list(batches)
    assert offsets(reader(lake).read("orders", partitions=0)) == EXPECTED


def test_without_the_key_nothing_of_an_encrypted_archive_is_read() -> None:
    lake = new_lake(sealed=True)
    lake.run(0)
    lake.use(None)
    with pytest.raises(ConfigError, match="no master key is given"):
        list(reader(lake).read("orders"))


@pytest.mark.parametrize("evolution", ["NONE", "BACKWARD"])
def test_records_of_different_schemas_are_merged_by_offset(evolution: Evolution) -> None:
    """With NONE each schema has an object and columns of its own; the records alternate."""
    lake = lake_of(evolution)
    lake.run(COUNT * 4)
    batches = list(reader(lake).read("orders"))
    offsets_read = offsets(batches)
    assert offsets_read == sorted(offsets_read, key=lambda offset: offset or 0)
    assert len(offsets_read) == lake.manifest(hour(COUNT * 4).id).rows
    own = [row for batch in batches for row in batch.to_pylist()]
    assert all({row[name] for name in row if name in "nx"} <= {row["offset"], None} for row in own)
    kinds = {tuple(batch.schema.names) for batch in batches}
    assert (len(kinds) > 3) == (evolution == "NONE")
    several = [row for batch in Lookup(lake.ledger, P0).records(offsets_read[3] or 0, 5) for row in batch.to_pylist()]
    assert [row["offset"] for row in several] == offsets_read[3:8]


def test_of_a_log_that_was_made_anew_each_generation_is_read() -> None:
    lake = Lake(
        MemoryStore(uuid.uuid4().hex), {P0: Range(0, 6)}, {"content": "record"}, {"recreated_topic": "new_generation"}
    )
    lake.run(6)
    lake.logs[P0] = Range(0, 3)
    lake.odd = {(P0, offset): {"value": b'{"other": %d}' % offset} for offset in range(3)}
    lake.run(7)
    assert offsets(reader(lake).read("orders")) == [*range(6), *range(3)]
    assert values(reader(lake).read("orders", generation=1)) == [b'{"other": %d}' % n for n in range(3)]
    assert offsets(reader(lake).read("orders", generation=0)) == [*range(6)]
    of_newest = [values(Lookup(lake.ledger, P0).records(n)) for n in (1, 4)]
    assert of_newest == [[b'{"other": 1}'], [b'{"n": 4}']]
    assert values(Lookup(lake.ledger, P0, 0).records(1)) == [b'{"n": 1}']


def test_what_a_backfill_took_is_in_its_place() -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 9)}, {"content": "record"})
    as_yaml = lake.archive.model_dump(by_alias=True, exclude_defaults=True)
    as_yaml["source"]["start"] = "2026-11-20T06:00:00Z"
    lake.configure(type(lake.archive).model_validate(as_yaml))
    lake.run(9)
    assert offsets(reader(lake).read("orders")) == [6, 7, 8]
    with pytest.raises(ConfigError, match=r"expected one of \[6, 9\)"):
        list(Lookup(lake.ledger, P0).records(2))
    lake.run(2, "backfill")
    assert offsets(reader(lake).read("orders")) == [2, 6, 7, 8]
    assert values(Lookup(lake.ledger, P0).records(2)) == [b'{"n": 2}']
    assert offsets(reader(lake).read("orders", "2026-11-20T02")) == [2]


WHOLE = [{"format": name, "content": "record"} for name in ("jsonl", "avro", "parquet", "csv", "block_gzip")]
WHOLE.append({"format": "mak", "content": "record", "options": {"version": 2}})
BYTES = st.none() | st.binary(max_size=12) | st.text(max_size=6).map(str.encode)
DRAWN = st.lists(
    st.fixed_dictionaries(
        {
            "timestamp": st.sampled_from([-1, 0, to_ms(FIRST), to_ms(FIRST) + HOUR, 2**53, 253_402_300_800_000]),
            "timestamp_type": st.sampled_from([0, 1]),
            "key": BYTES,
            "value": BYTES,
            "headers": st.lists(st.tuples(st.text(max_size=4), BYTES), max_size=3).map(tuple),
        }
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("store", WHOLE, ids=identity)
@settings(max_examples=10, deadline=None)
@given(DRAWN, st.booleans(), st.integers(1, 6), st.sets(st.integers(0, 11), max_size=4))
def test_whatever_kafka_had_is_read_back(
    store: dict[str, Any], rows: list[dict[str, Any]], sealed: bool, chunk: int, absent: set[int]
) -> None:
    lake = new_lake(sealed, **{**store, "chunk_records": chunk})
    lake.logs = lake.brokers.logs = {P0: Range(0, len(rows))}
    lake.odd, lake.absent = {(P0, n): row for n, row in enumerate(rows)}, {(P0, n) for n in absent}
    lake.run(0)
    rows_read = [row for batch in reader(lake).read("orders") for row in batch.to_pylist()]
    expected = [
        {"topic": "orders", "partition": 0, "offset": n, **rows[n]} for n in range(len(rows)) if n not in absent
    ]
    assert [{**row, "headers": tuple((h["key"], h["value"]) for h in row["headers"])} for row in rows_read] == expected
    for row in expected[:2]:
        [batch] = Lookup(lake.ledger, P0).records(row["offset"])
        assert batch.column("value").to_pylist() == [row["value"]]


def test_nothing_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = new_lake(content="record")
    lake.run(0)
    monkeypatch.setattr(MemoryStore, "list", lambda *_: pytest.fail("the store was listed"))
    assert offsets(reader(lake).read("orders", partitions=0)) == EXPECTED
    assert offsets(reader(lake).read("orders", "2026-11-20T01", partitions=0)) == [1, 4, 7, 10]
    assert offsets(Lookup(lake.ledger, P0).records(4)) == [4]


def test_no_record_of_a_damaged_object_is_given_before_the_damage_is_found() -> None:
    """Lines without a codec have no checksum of their own. The last one of 5 MB is damaged."""
    lake = new_lake(format="jsonl", codec="none", content="record", chunk_records=100)
    lake.logs[P0], lake.absent = Range(0, 50), set()
    lake.odd = {(P0, n): {"timestamp": to_ms(FIRST), "value": b"%02d" % n * 50_000} for n in range(50)}
    lake.run(0)
    entry = next(entry for entry in lake.manifest(hour(0).id).objects if entry.rows == 50)
    data = lake.store.get(entry.key) or b""
    lake.store.put(entry.key, data.replace(b"4949", b"4948"))
    given_before: list[pa.RecordBatch] = []
    with pytest.raises(IntegrityError, match=r"expected .* with checksum"):
        given_before.extend(reader(lake).read("orders", partitions=0))
    assert not given_before


def test_a_program_opens_an_archive_of_a_real_server_with_a_url_and_options(s3: S3) -> None:
    options = {**s3.options(), "region_name": "us-east-1"}
    url = f"s3://{s3.bucket}/{uuid.uuid4().hex}"
    lake = Lake(open_store(url, options), {P0: Range(0, 9)}, {"format": "parquet", "content": "record"}, name="orders")
    lake.run(9)
    archive = open_archive(url, "orders", options)
    assert offsets(archive.read("orders", offsets=(2, 7))) == [2, 3, 4, 5, 6]
    assert values(Lookup(archive.ledger, P0).records(5)) == [b'{"n": 5}']
    entry = lake.manifest(hour(9).id).objects[1]
    lake.store.delete(entry.key)
    with pytest.raises(IntegrityError, match=rf"{re.escape(entry.key)} does not exist"):
        list(archive.read("orders"))
