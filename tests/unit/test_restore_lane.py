"""The records that a restore takes of an archive, where they go, and what is refused."""

import base64
import json
import uuid
import zlib
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.object_keys import hour_document, line_document, restore_document, run_document
from kafka_archiver.model.restore import Partitioner, RestoreOptions, RestorePlan, RestoreSelection, SelectedHeader
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.reader.archive import ArchiveReader
from kafka_archiver.reader.metered import Metered
from kafka_archiver.reader.runs import Plans, runs_of_hours
from kafka_archiver.records.formats.shared.records import COLUMNS
from kafka_archiver.state.restores import last_restores
from kafka_archiver.store import open_store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.restore.digests import RunningDigest, StrongDigest, payload_bytes
from kafka_archiver.work.restore.exact import NotExactError
from kafka_archiver.work.restore.gather import _slices
from kafka_archiver.work.restore.lane import Lane
from kafka_archiver.work.restore.partitioners import murmur2, partition_of, partitions_of
from kafka_archiver.work.restore.plan import plan_restore
from tests.support.kafka_twin import KafkaTwin
from tests.support.lake import FIRST, HOUR, Lake, hour

pytestmark = pytest.mark.unit

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
START = int(FIRST.timestamp() * 1000)
LAST = 12


def lake_of(odd: dict[Any, dict[str, Any]], runs: tuple[int, ...] = (3, LAST - 1), **more: Any) -> Lake:
    name = uuid.uuid4().hex
    MemoryStore(name)
    store: dict[str, Any] = {"content": "record", "codec": "none", **more.pop("settings", {})}
    limit = more.pop("max_value_bytes", None)
    lake = Lake(open_store(f"memory://{name}/", {}), {T0: Range(0, LAST), T1: Range(2, LAST)}, store, odd=odd, **more)
    source = lake.archive.source.model_copy(update={"max_value_bytes": limit})
    lake.configure(lake.archive.model_copy(update={"source": source}))
    for number in runs:
        lake.run(number)
    return lake


def key_of(offset: int) -> bytes | None:
    return [b"a", b"b", None, b"\xff"][offset % 4]


@cache
def archive() -> Lake:
    """Two partitions, records out of order in time, keys and headers; offset 5 of each is a dead letter."""
    odd = {}
    for name in (T0, T1):
        for offset in range(LAST):
            odd[name, offset] = {
                "key": key_of(offset),
                "timestamp": START + (offset * 5 % LAST) * HOUR,
                "headers": (("h", b"%d" % (offset % 3)), ("n", None)) if offset % 2 else (),
                "value": b"x" * 100 if offset == 5 else b'{"n": %d}' % offset,
            }
    return lake_of(
        odd,
        settings={"chunk_records": 4},
        policies={"bad_record": "dead_letter"},
        max_value_bytes=50,
    )


def planned(lake: Lake, selection: RestoreSelection, partitions: int = 2, **more: Any) -> RestorePlan:
    twin = KafkaTwin(lambda: 0)
    twin.create_topic("t", partitions)
    return plan_restore(lake.ledger, twin, RestoreRequest(uuid.uuid4().hex, selection, **more))


def lanes(lake: Lake, plan: RestorePlan) -> dict[TopicPartition, list[tuple[int, int]]]:
    """Return the source partition and the offset of each record, by target partition."""
    places = {}
    for name in plan.targets():
        lane = Lane(lake.ledger, plan, name, frozenset(plan.options.allow))
        places[name] = [
            (lane.sources[batch.source].partition, offset)
            for batch in lane.batches()
            if batch
            for offset in batch.records.column("offset").to_pylist()
        ]
    return places


def row(name: TopicPartition, offset: int) -> dict[str, Any]:
    return archive().odd[name, offset]


selections = st.fixed_dictionaries(
    {},
    optional={
        "partitions": st.sampled_from([(0,), (1,), (0, 1)]),
        "hours": st.tuples(st.integers(0, LAST), st.integers(1, LAST)),
        "offsets": st.tuples(st.integers(0, LAST), st.integers(1, LAST)),
        "as_of": st.integers(0, LAST),
        "keys": st.lists(st.sampled_from([b"a", b"b", b"\xff"]), min_size=1, max_size=2),
        "header": st.sampled_from([("h", None), ("h", b"1"), ("n", None)]),
    },
)


# An hour that has a dead letter alone.
@example({"hours": (1, 1)})
@given(selections)
@settings(max_examples=60, deadline=None)
def test_a_selection_takes_the_records_that_it_says_each_once_and_in_order(asked: dict[str, Any]) -> None:
    first, count = asked.get("hours", (0, 2 * LAST))
    start, size = asked.get("offsets", (0, 2 * LAST))
    hour = START // HOUR
    selection = RestoreSelection(
        topics=("t",),
        partitions=asked.get("partitions", ()),
        hours=(hour + first, hour + first + count) if "hours" in asked else None,
        offsets=(start, start + size) if "offsets" in asked else None,
        as_of=START + asked["as_of"] * HOUR if "as_of" in asked else None,
        keys=tuple(base64.b64encode(key).decode() for key in asked.get("keys", ())),
        headers=(
            SelectedHeader(
                name=asked["header"][0],
                value=asked["header"][1] and base64.b64encode(asked["header"][1]).decode(),
            ),
        )
        if "header" in asked
        else (),
    )

    def is_selected(name: TopicPartition, offset: int) -> bool:
        record = row(name, offset)
        at = (record["timestamp"] - START) // HOUR
        names = {key for key, _ in record["headers"]}
        header, value = asked.get("header", (None, None))
        return (
            name.partition in asked.get("partitions", (0, 1))
            and first <= at < first + count
            and start <= offset < start + size
            and ("as_of" not in asked or at < asked["as_of"])
            and ("keys" not in asked or record["key"] in asked["keys"])
            and (header is None or (header in names and (value is None or (header, value) in record["headers"])))
        )

    expected = {
        name: [(name.partition, o) for o in range(0 if name == T0 else 2, LAST) if is_selected(name, o)]
        for name in (T0, T1)
    }
    if not any(expected.values()) and not (selection.by_content or "offsets" in asked):
        with pytest.raises(ConfigError, match="nothing in archive"):
            planned(archive(), selection)
        return
    try:
        plan = planned(archive(), selection)
    except ConfigError:
        assert not any(expected.values())
        return
    taken = lanes(archive(), plan)
    assert {name: places for name, places in taken.items() if places} == {
        name: places for name, places in expected.items() if places
    }
    total = sum(map(len, taken.values()))
    assert plan.records == total if plan.exact else plan.records >= total


def test_a_partition_that_the_archive_lacks_is_named() -> None:
    with pytest.raises(ConfigError, match=r"has no partition 7, 9 of t; it has 0, 1$"):
        planned(archive(), RestoreSelection(topics=("t",), partitions=(0, 7, 9)))


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # From the tests of Kafka's Java client.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_javas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


@given(
    st.lists(st.none() | st.binary(max_size=20) | st.binary(min_size=250, max_size=270)),
    st.sampled_from(["same", "murmur2", "crc32"]),
    st.integers(1, 7),
    st.integers(0, 3),
)
def test_many_keys_at_once_have_the_partitions_of_each(
    keys: list[bytes | None], partitioner: Partitioner, partitions: int, first: int
) -> None:
    array = pa.array(keys, pa.large_binary()).slice(first)
    chosen = partitions_of(array, partitioner, partitions, 5).tolist()
    assert chosen == [partition_of(key, partitioner, partitions, 5) for key in keys[first:]]


@pytest.mark.parametrize("partitioner", ["murmur2", "crc32"])
def test_another_number_of_partitions_gets_each_record_once_by_its_key(partitioner: Partitioner) -> None:
    plan = planned(archive(), RestoreSelection(topics=("t",)), 3, partitioner=partitioner)
    taken = lanes(archive(), plan)
    assert sorted(place for places in taken.values() for place in places) == [
        *((0, o) for o in range(LAST)),
        *((1, o) for o in range(2, LAST)),
    ]
    for target, places in taken.items():
        assert places == sorted(places)
        for partition, offset in places:
            key = key_of(offset)
            hashed = (murmur2(key) & 0x7FFFFFFF if partitioner == "murmur2" else zlib.crc32(key)) if key else partition
            assert target.partition == hashed % 3


def test_dead_letters_are_records_like_the_others_or_left_out_or_alone() -> None:
    choices = {"with": list(range(LAST)), "without": [o for o in range(LAST) if o != 5], "only": [5]}
    for choice, offsets in choices.items():
        plan = planned(archive(), RestoreSelection.model_validate({"topics": ("t",), "dead_letters": choice}))
        assert lanes(archive(), plan)[T0] == [(0, offset) for offset in offsets]
        assert plan.records == 2 * len(offsets) - 2 * (choice != "only")
        assert sum(source.dead_letters for source in plan.sources) == 2 * (choice != "without")


def test_only_the_highest_committed_revision_counts() -> None:
    lake = lake_of({}, runs=(3,))
    lake.rebuild("20261120T030000Z")
    plan = planned(lake, RestoreSelection(topics=("t",)))
    [page, *_] = lake.ledger.restore_pages(plan.restore, plan.sources[0])
    assert [run for run, _ in page.runs] == ["20261120T030000Z+r1"]
    assert lanes(lake, plan)[T0] == [(0, offset) for offset in range(LAST)]


def test_the_audit_knows_the_documents_of_a_restore_and_no_others() -> None:
    lake = lake_of({}, runs=(3,))
    plan = planned(lake, RestoreSelection(topics=("t",)))
    assert [finding.kind for finding in lake.audit().findings] == []
    lake.store.put(restore_document(lake.name, plan.restore, "pages/other"), b"{}")
    assert [finding.kind for finding in lake.audit().findings] == ["unexplained"]


INEXACT = {
    "timestamps": {"timestamp": 0},
    "headers": {"headers": (("a\0b", b"1"), ("c", b"2"))},
}


@pytest.mark.parametrize("change", INEXACT)
def test_what_the_client_cannot_write_is_refused_and_changed_if_that_is_allowed(change: Any) -> None:
    lake = lake_of({(T0, 1): INEXACT[change]})
    plan = planned(lake, RestoreSelection(topics=("t",)))
    with pytest.raises(NotExactError, match=rf"t\[0\] offset 1 .* 1 records cannot .*--allow {change}"):
        lanes(lake, plan)
    allowing = planned(lake, RestoreSelection(topics=("t",)), options=RestoreOptions(allow=(change,)))
    assert len(lanes(lake, allowing)[T0]) == LAST
    batches = Lane(lake.ledger, allowing, T0, frozenset({change})).batches()
    [record] = [r for b in batches if b for r in b.records.to_pylist() if r["offset"] == 1]
    assert record["timestamp"] == 1 if change == "timestamps" else record["headers"] == [{"key": "c", "value": b"2"}]


def test_values_alone_are_refused_with_their_number_before_anything_is_frozen() -> None:
    lake = lake_of({}, settings={"content": "value"})
    with pytest.raises(NotExactError, match="22 records cannot be restored exactly: the archive has only their values"):
        planned(lake, RestoreSelection(topics=("t",)))
    assert last_restores(lake.ledger).restores == ()
    plan = planned(lake, RestoreSelection(topics=("t",)), options=RestoreOptions(allow=("values_only",)))
    assert lanes(lake, plan)[T0] == [(0, offset) for offset in range(LAST)]


records = st.lists(
    st.fixed_dictionaries(
        {
            "timestamp": st.integers(-1, 2**40),
            "key": st.none() | st.binary(max_size=5),
            "value": st.none() | st.binary(max_size=5),
            "headers": st.lists(
                st.fixed_dictionaries({"key": st.text(max_size=3), "value": st.none() | st.binary(max_size=3)}),
                max_size=3,
            ),
        }
    ),
    max_size=8,
)


@given(records, records, st.lists(st.integers(0, 8), max_size=3))
@settings(max_examples=100, deadline=None)
def test_digests_do_not_depend_on_batches_and_differ_for_other_records(
    some: list[dict[str, Any]], other: list[dict[str, Any]], cuts: list[int]
) -> None:
    def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([{"offset": 0, "timestamp_type": 0, **each} for each in rows], schema=COLUMNS)

    whole = batch(some)
    running, strong = RunningDigest(), StrongDigest()
    edges = [0, *sorted(cut for cut in cuts if cut < len(some)), len(some)]
    for start, end in pairwise(edges):
        running = RunningDigest(running.text).add(whole.slice(start, end - start))
        strong.add(whole.slice(start, end - start))
    alone, again = RunningDigest().add(whole), StrongDigest()
    again.add(whole)
    assert (running.text, strong.text) == (alone.text, again.text)
    second_digest = StrongDigest()
    second_digest.add(batch(other))
    assert (second_digest.text == again.text) == (some == other)
    sizes = [
        len(each["key"] or b"")
        + len(each["value"] or b"")
        + sum(len(h["key"].encode()) + len(h["value"] or b"") for h in each["headers"])
        for each in some
    ]
    assert payload_bytes(whole).tolist() == sizes


def test_the_proofs_of_many_hours_are_listed_and_not_asked_for_one_by_one() -> None:
    lake, first = archive(), START // HOUR
    store = Metered(lake.store)
    plans = Plans(replace(lake.ledger, store=store))  # type: ignore[arg-type]
    select = partial(_slices, RestoreSelection(topics=("t",)))
    before = store.ledger.requests
    many = runs_of_hours(plans, range(first - 4000, first + 4000), select)
    assert store.ledger.requests - before < 1000
    assert many == runs_of_hours(plans, range(first, first + LAST), select)
    assert sum(part.offsets.size for run in many for part in run.slices) == LAST + LAST - 2


@pytest.mark.parametrize("hour_number", [1, 5])
@pytest.mark.parametrize("settings", [{}, {"layout": "topic_partition"}])
def test_a_restore_of_hours_does_not_depend_on_their_proofs(settings: dict[str, Any], hour_number: int) -> None:
    lake, first = lake_of({}, settings=settings), START // HOUR
    key = hour_document(lake.name, first + hour_number)
    whole, alone = (
        RestoreSelection(topics=("t",), hours=hours)
        for hours in [(first, first + 6), (first + hour_number, first + hour_number + 1)]
    )
    counts = [planned(lake, whole).records, planned(lake, alone).records]
    proof = json.loads(lake.store.get(key) or b"")
    assert proof.pop("runs")
    # As it was before the runs, after a part of the bucket was rolled back.
    lake.store.put(key, json.dumps({**proof, "runs": []}).encode())
    assert [planned(lake, whole).records, planned(lake, alone).records] == counts
    lake.store.delete(key)
    assert [planned(lake, whole).records, planned(lake, alone).records] == counts
    if hour_number == 5:
        # A reader trusts the proofs, and sees that one is gone. Of an hour before the first run none is required.
        with pytest.raises(IntegrityError, match=r"/05\.json is gone\. `airflow archive repair"):
            list(ArchiveReader(lake.ledger).read("t", hours="2026-11-20T05"))


@pytest.mark.parametrize("hours", [None, (START // HOUR, START // HOUR + LAST)])
def test_a_run_whose_documents_are_gone_and_that_was_planned_again_is_not_passed_over(
    hours: tuple[int, int] | None,
) -> None:
    lake = lake_of({})
    for stat in list(lake.store.list(f"_ledger/{lake.name}/runs/{hour(3).id}/")):
        lake.store.delete(stat.key)
    # Airflow runs the interval again.
    lake.run(3)
    with pytest.raises(IntegrityError, match=f"first plan of run {hour(3).id}, which was planned twice"):
        planned(lake, RestoreSelection(topics=("t",), hours=hours))
    with pytest.raises(IntegrityError, match="which was planned twice"):
        list(ArchiveReader(lake.ledger).read("t", hours=hours and ("2026-11-20T00", "2026-11-20T12")))


@pytest.mark.parametrize("hours", [None, (START // HOUR, START // HOUR + LAST)])
@pytest.mark.parametrize("document", ["line", "commit"])
def test_a_run_whose_documents_are_gone_is_not_passed_over(document: str, hours: tuple[int, int] | None) -> None:
    lake = lake_of({}, runs=())
    ends = {3: 4, 6: 9, LAST - 1: LAST}
    for run, end in ends.items():
        lake.brokers.logs[T0] = lake.brokers.logs[T1] = Range(0, end)
        lake.run(run)
    key = line_document(lake.name, 2) if document == "line" else run_document(lake.name, hour(6).id, "commit")
    assert lake.store.get(key)
    lake.store.delete(key)
    with pytest.raises(IntegrityError, match=r"has lost (plan 2 of its line|the (plan or the )?end of run)"):
        planned(lake, RestoreSelection(topics=("t",), hours=hours))
    if document == "line" and hours:
        # Proofs name the run, which has its plan beside its other documents.
        assert list(ArchiveReader(lake.ledger).read("t", hours=("2026-11-20T00", "2026-11-20T12")))
        return
    with pytest.raises(IntegrityError, match="so nobody knows which records it has"):
        list(ArchiveReader(lake.ledger).read("t", hours=hours and ("2026-11-20T00", "2026-11-20T12")))
