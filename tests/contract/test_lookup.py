"""One record by its offset: the right one, with few requests and bytes; and what became of those that are not there."""

import hashlib
import json
import uuid
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.reader.lookup import Lookup, json_lines
from kafka_archiver.reader.metered import Metered
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.contract.test_reading import ABSENT, COUNT, EXPECTED, MASTER, PLAIN, identity, new_lake
from tests.support.lake import FIRST, Lake, hour
from tests.support.topics import DAY, HOUR, Record
from tests.support.twin_archive import TwinArchive

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)


def records(lake: Lake, offset: int, count: int = 1, **options: Any) -> list[dict[str, Any]]:
    batches = list(Lookup(lake.ledger, P0, **options).records(offset, count))
    return [json.loads(line) for batch in batches for line in json_lines(batch, P0).splitlines()]


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("store", [store for store in PLAIN if store["content"] == "record"], ids=identity)
def test_each_offset_gives_its_record_or_what_became_of_it(store: dict[str, Any], sealed: bool) -> None:
    lake = new_lake(sealed, **store)
    lake.run(0)
    for offset in EXPECTED:
        [row] = records(lake, offset)
        assert (row["topic"], row["partition"], row["offset"], row["value"]) == (
            "orders",
            0,
            offset,
            f'{{"n":{offset}}}',
        )
    for offset in ABSENT:
        with pytest.raises(ConfigError, match="is not archived: Kafka had no record there"):
            records(lake, offset)
    with pytest.raises(ConfigError, match=r"no run with offset 12 of orders\[0\]: expected one of \[0, 12\)"):
        records(lake, 12)
    for count in (2, 5, 100):
        assert [row["offset"] for row in records(lake, 2, count)] == [n for n in EXPECTED if n >= 2][:count]
        for batch, entries in Lookup(lake.ledger, P0).located(2, count):
            for offset, entry in zip(batch.column("offset").to_pylist(), entries, strict=True):
                assert entry
                assert to_ms(FIRST) // HOUR + offset % 3 in entry.hours
                assert entry.first_offset <= offset <= entry.last_offset


def noise(offset: int) -> bytes:
    return b'{"n":%d,"noise":"%s"}' % (offset, hashlib.shake_256(b"%d" % offset).hexdigest(10_000).encode())


def large(sealed: bool, **store: Any) -> Lake:
    """400 values of 20 kB that compress to a half, in one object."""
    odd = {(P0, n): {"timestamp": to_ms(FIRST), "value": noise(n)} for n in range(400)}
    encryption = {"encryption": {"client": {"connection": "master_key"}}} if sealed else {}
    settings = {"chunk_records": 1000, **encryption, **store}
    lake = Lake(
        MemoryStore(uuid.uuid4().hex), {P0: Range(0, 400)}, settings, odd=odd, keyring=MASTER if sealed else None
    )
    lake.run(0)
    return lake


BLOCKS = {"format": "block_gzip", "options": {"block_bytes": 65536}}
INDEX = {"codec": "zstd", "content": "record", "options": {"index": True}}
INDEXED_LINES, INDEXED_AVRO = {"format": "jsonl", **INDEX}, {"format": "avro", **INDEX}
GROUPS = {"format": "parquet", "content": "record", "options": {"row_group_rows": 5}}


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize(
    ("store", "requests", "share"),
    [
        ({**BLOCKS, "content": "value"}, 2, 0.02),
        ({**BLOCKS, "content": "record"}, 2, 0.02),
        (GROUPS, 3, 0.06),
        (INDEXED_LINES, 2, 0.15),
        (INDEXED_AVRO, 2, 0.08),
    ],
    ids=["block_gzip-value", "block_gzip-record", "parquet", "jsonl", "avro"],
)
def test_a_record_costs_one_range_of_its_object(
    store: dict[str, Any], requests: int, share: float, sealed: bool
) -> None:
    lake = large(sealed, **store)
    [entry] = lake.manifest(hour(0).id).objects
    for offset in (0, 123, 399):
        metered = Metered(lake.store)
        [batch] = Lookup(replace(lake.ledger, store=metered), P0).records(offset)  # type: ignore[arg-type]
        [row] = [json.loads(line) for line in json_lines(batch, P0).splitlines()]
        assert (row["offset"], row["value"]) == (offset, noise(offset).decode())
        # An encrypted object has a header, and its segments are of 64 KiB.
        assert metered.objects.requests <= requests + sealed
        assert metered.objects.bytes < entry.bytes * share + sealed * (4 << 16)
        assert metered.ledger.requests <= 8 + sealed


def test_the_run_of_an_offset_is_found_with_the_logarithm_of_all_runs() -> None:
    lake = new_lake(content="record", count=0)
    lake.odd = {}
    for number in range(64):
        lake.logs[P0] = Range(0, number + 1)
        lake.run(number)
    for offset in (0, 4, 31, 63):
        metered = Metered(lake.store)
        [batch] = Lookup(replace(lake.ledger, store=metered), P0).records(offset)  # type: ignore[arg-type]
        assert batch.column("offset").to_pylist() == [offset]
        assert metered.ledger.requests <= 7 + 9


def test_the_next_records_are_those_behind_offsets_that_no_run_has() -> None:
    archive = TwinArchive(1, 4, start="latest")
    store = archive.archive.store.model_copy(update={"content": "record"})
    archive.archive = archive.archive.model_copy(update={"store": store})
    archive.twin.produce("orders", [Record(0, DAY + n // 2 * HOUR, b"%d" % n, None, []) for n in range(6)])
    archive.run(0, "backfill")
    archive.run(3, "scheduled")
    archive.twin.produce("orders", [Record(0, DAY + 4 * HOUR, b"%d" % n, None, []) for n in (6, 7)])
    archive.run(4, "scheduled")
    for count, offsets in (1, [0]), (3, [0, 1, 6]), (9, [0, 1, 6, 7]):
        batches = Lookup(archive.ledger, P0).records(0, count)
        assert [offset for batch in batches for offset in batch.column("offset").to_pylist()] == offsets


def test_a_backfill_of_the_newest_generation_comes_before_what_an_older_one_has() -> None:
    """And in an older generation, too, the next records are those behind offsets that no run has."""
    lake = Lake(
        MemoryStore(uuid.uuid4().hex), {P0: Range(0, 9)}, {"content": "record"}, {"recreated_topic": "new_generation"}
    )
    as_yaml = lake.archive.model_dump(by_alias=True, exclude_defaults=True)
    as_yaml["source"]["start"] = "2026-11-20T06:00:00Z"
    lake.configure(type(lake.archive).model_validate(as_yaml))
    lake.run(9)
    lake.run(2, "backfill")
    assert [row["offset"] for row in records(lake, 2, 3)] == [2, 6, 7]
    lake.brokers.ids["orders"] = "another"
    lake.odd = {(P0, n): {"value": b'{"other": %d}' % n} for n in range(9)}
    lake.run(10)
    newest = {n for n in range(9) if row_or_none(lake, n, generation=1)}
    lake.run(3, "backfill")
    for n in newest | {3}:
        row = row_or_none(lake, n, generation=1)
        assert row == row_or_none(lake, n) != row_or_none(lake, n, generation=0)
    assert [row["offset"] for row in records(lake, 2, 3, generation=0)] == [2, 6, 7]


def row_or_none(lake: Lake, offset: int, **options: Any) -> dict[str, Any] | None:
    try:
        [row] = records(lake, offset, **options)
    except ConfigError as error:
        if "has no run with offset" in str(error):
            return None
        raise
    return row


ANY = [{"format": name, "content": "record"} for name in ("jsonl", "avro", "csv")]
ANY += [BLOCKS | {"content": "record"}, GROUPS | {"options": {"row_group_rows": 2}}, INDEXED_LINES, INDEXED_AVRO]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(ANY), st.integers(1, 30), st.sampled_from([3, 30]), st.integers(1, 2), st.booleans())
def test_all_rows_of_so_many_records_are_given(
    store: dict[str, Any], size: int, chunk: int, hours: int, large: bool
) -> None:
    """A mapper makes nothing, one row or two; with large values a batch ends between two rows of a record."""
    texts = [b'{"n": %d, "p": "%s"}' % (n, noise(n) * large) for n in range(size)]
    odd = {(P0, n): {"timestamp": to_ms(FIRST) + n % hours * HOUR, "value": text} for n, text in enumerate(texts)}
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, size)}, {**store, "chunk_records": chunk}, {}, odd)
    as_yaml = lake.archive.model_dump(by_alias=True, exclude_defaults=True)
    as_yaml |= {"transform": {"mapper": "tests.support.mapped:split"}, "policies": {"bad_record": "dead_letter"}}
    lake.configure(type(lake.archive).model_validate(as_yaml))
    lake.run(40)
    rows = [0 if n % 11 == 3 or n % 5 == 4 else 1 + (n % 3 == 1) for n in range(size)]
    archived = [n for n in range(size) if rows[n]]
    for first in archived[:: 1 + len(archived) // 4]:
        for count in (1, 2, 5, 100):
            following = [n for n in archived if n >= first][:count]
            expected = [n for n in following for _ in range(rows[n])]
            assert [row["offset"] for row in records(lake, first, count)] == expected


@pytest.mark.parametrize("store", [GROUPS, BLOCKS, INDEXED_LINES, INDEXED_AVRO], ids=identity)
def test_no_flipped_bit_gives_another_record_or_another_reason(store: dict[str, Any]) -> None:
    """A Parquet file's footer has no checksum: its damage ended the process, or hid the record."""
    lake = new_lake(**{**store, "content": "record"}, chunk_records=COUNT)
    lake.run(0)
    manifest = lake.manifest(hour(0).id)
    entry = next(e for e in manifest.objects if e.partition == 0)
    beside = [e for e in manifest.sidecars if e.sidecar_of == entry.key]
    for key in [e.key for e in (entry, *beside)]:
        whole = lake.store.get(key) or b""
        for at in range(max(0, len(whole) - 2000), len(whole), 3):
            lake.store.put(key, whole[:at] + bytes([whole[at] ^ 1 << at // 3 % 8]) + whole[at + 1 :])
            try:
                [row] = records(lake, entry.last_offset)
            except IntegrityError:
                continue
            assert (row["offset"], row["value"]) == (entry.last_offset, f'{{"n":{entry.last_offset}}}')
        lake.store.put(key, whole)


def test_the_highest_committed_revision_and_the_newest_generation_count() -> None:
    lake = new_lake(content="record")
    lake.run(0)
    lake.rebuild(hour(0).id, keep=True)
    assert records(lake, 4)[0]["offset"] == 4
    for entry in lake.manifest(hour(0).id).objects:
        lake.store.delete(entry.key)
    assert records(lake, 4)[0]["offset"] == 4
    with pytest.raises(ConfigError, match="offset 4 of generation 1"):
        records(lake, 4, generation=1)


def test_a_run_that_is_not_committed_has_no_record_yet() -> None:
    lake = new_lake(content="record")
    lake.run(0, until="written")
    with pytest.raises(ConfigError, match=r"in the plan of run .* which is not committed yet"):
        records(lake, 4)


def test_a_dead_letter_is_named_with_its_object() -> None:
    lake = new_lake(content="record")
    lake.choose(bad_record="dead_letter")
    as_yaml = lake.archive.model_dump(by_alias=True, exclude_defaults=True)
    as_yaml["source"] = {**as_yaml["source"], "value": {"decode": "json"}}
    lake.configure(type(lake.archive).model_validate(as_yaml))
    lake.odd[P0, 4] = {**lake.odd[P0, 4], "value": b"no json"}
    lake.run(0)
    with pytest.raises(
        ConfigError, match=r"is a dead letter; .* `airflow archive print memory://\S+/_dead_letter/orders/"
    ):
        records(lake, 4)
    assert records(lake, 5)[0]["offset"] == 5


def test_a_filtered_record_and_a_value_without_its_offset_are_said() -> None:
    lake = new_lake(content="record")
    lake.odd[P0, 4] = {**lake.odd[P0, 4], "value": None}
    lake.configure(lake.archive.choosing({"null_value": "skip"}))
    lake.run(0)
    with pytest.raises(ConfigError, match="filtered it"):
        records(lake, 4)
    values = new_lake(content="value")
    values.run(0)
    with pytest.raises(ConfigError, match="values without their offsets") as untold:
        records(values, 4)
    [command] = (action.command for action in untold.value.actions)
    assert command.removeprefix(f"airflow archive print {values.store.url}/") in values.stored()
    # That there is none needs no object.
    with pytest.raises(ConfigError, match="Kafka had no record there"):
        records(values, min(ABSENT))


def test_a_missing_or_damaged_object_is_an_error_that_names_it() -> None:
    for store in (BLOCKS, GROUPS, {"format": "jsonl"}):
        lake = new_lake(**{**store, "content": "record"})
        lake.run(0)
        entry = next(e for e in lake.manifest(hour(0).id).objects if e.topic == "orders" and e.partition == 0)
        data = lake.store.get(entry.key) or b""
        lake.store.put(
            entry.key, data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :]
        )
        with pytest.raises(IntegrityError, match=r"orders\+0\+0"):
            records(lake, entry.first_offset)
        lake.store.delete(entry.key)
        with pytest.raises(IntegrityError, match=r"orders\+0\+0\S+ does not exist"):
            records(lake, entry.first_offset)
