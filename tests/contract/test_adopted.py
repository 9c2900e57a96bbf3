"""Archives of other tools: adopted once, then read by offset as far as their files say it, and never more."""

import json
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.audit.inspection import audit
from kafka_archiver.config import Archive
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ColdObjectError, ConfigError, IntegrityError, PolicyError
from kafka_archiver.model.adopted import Adoption, Tool
from kafka_archiver.model.object_keys import adoption_document
from kafka_archiver.model.restore import RestoreOptions, RestorePlan, RestoreSelection
from kafka_archiver.reader.archive import ArchiveReader
from kafka_archiver.reader.lookup import Lookup, json_lines
from kafka_archiver.store import Store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.adopt import adopt, preview
from kafka_archiver.work.restore import lane
from kafka_archiver.work.restore.exact import NotExactError
from kafka_archiver.work.restore.lane import Lane
from kafka_archiver.work.restore.plan import RestoreRequest, plan_restore
from tests.support.foreign import ENVELOPE, Sent, blocks, encoded, enveloped, mak, sent
from tests.support.kafka_twin import KafkaTwin
from tests.support.lake import Lake

pytestmark = pytest.mark.contract
NOW = datetime(2026, 11, 21, 5, tzinfo=UTC)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def confluent(form: str, records: Sequence[Sent], folder: str = "partition=0", partition: int = 0) -> tuple[str, bytes]:
    end = "snappy.parquet" if form == "parquet" else form
    key = f"topics/orders/{folder}/orders+{partition}+{records[0].offset:010d}.{end}"
    return key, encoded(form, [record.value for record in records])


def lenses(form: str, records: Sequence[Sent], envelope: bool = False) -> tuple[str, bytes]:
    times = [record.timestamp for record in records]
    end = "gz" if form == "json.gz" else form
    key = f"demo/orders/0/{records[-1].offset:012d}_{min(times)}_{max(times)}.{end}"
    values = [enveloped(record, "orders", 0) if envelope else record.value for record in records]
    return key, encoded(form, values, ENVELOPE) if envelope else encoded(form, values)


def kafkatos3(records: Sequence[Sent]) -> tuple[str, bytes]:
    first, last = records[0].offset, records[-1].offset
    return f"kafkatos3/orders/0/orders-0_{first}-{last}_261121.mak.gz", mak("orders", 0, records)


def zooz(records: Sequence[Sent], hour: str = "05") -> tuple[str, bytes]:
    key = f"root/app/date=2026-11-21/hour={hour}/0_{records[0].offset}.json.gz"
    return key, encoded("json.gz", [record.value for record in records])


def store_of(*objects: tuple[str, bytes]) -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex)
    for key, data in objects:
        store.put(key, data)
    return store


def adopted(store: MemoryStore, tool: Tool, folder: str = "", topic: str | None = None) -> tuple[Ledger, Adoption]:
    ledger = Ledger(store, "old")
    return ledger, adopt(ledger, folder, tool, topic, NOW)


def numbers(batches: list[pa.RecordBatch], column: str) -> list[Any]:
    return [value for batch in batches for value in batch.column(column).to_pylist()]


def values(batches: list[pa.RecordBatch]) -> list[Any]:
    """The number in each value, whatever its form."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    plain = [json.loads(row["value"]) if isinstance(row.get("value"), bytes) else row for row in rows]
    return [row["n"] if "n" in row else row["value"]["n"] for row in plain]


def read(ledger: Ledger, **options: Any) -> list[pa.RecordBatch]:
    return list(ArchiveReader(ledger).read("orders", **options))


def found_at(ledger: Ledger, offset: int, count: int = 1) -> list[dict[str, Any]]:
    batches = list(Lookup(ledger, P0).records(offset, count))
    return [json.loads(line) for batch in batches for line in json_lines(batch, P0).splitlines()]


def found_or_unproven(ledger: Ledger, offset: int) -> dict[str, Any] | None:
    try:
        [row] = found_at(ledger, offset)
    except ConfigError as error:
        if "is unproven" in str(error):
            return None
        raise
    return row


FORMS = ("json", "json.gz", "avro", "parquet")


@pytest.mark.parametrize("form", FORMS)
def test_files_of_confluent_that_follow_each_other_without_room_have_offsets(form: str) -> None:
    files = [sent(range(40)), sent(range(40, 60)), sent(range(60, 61)), sent(range(61, 70))]
    ledger, adoption = adopted(store_of(*(confluent(form, records) for records in files)), "confluent")
    [partition] = adoption.partitions
    assert (adoption.verdict, partition.rows, partition.placed, partition.loose) == ("unproven", 70, 61, 9)
    batches = read(ledger)
    assert values(batches) == list(range(70))
    # Of the last file nothing bounds the offsets behind its first.
    assert numbers(batches, "offset") == [*range(61), *[None] * 9]
    assert values(read(ledger, offsets=(5, 50))) == list(range(5, 50))
    for offset in (0, 39, 40, 60, 61):
        [row] = found_at(ledger, offset)
        value = row if "n" in row else json.loads(row["value"])
        assert (row["offset"], value["n"]) == (offset, offset)
    assert [row["offset"] for row in found_at(ledger, 38, count=5)] == [38, 39, 40, 41, 42]
    with pytest.raises(
        ConfigError, match=r"orders\[0\] offset 62 is unproven: if the archive has its record, it is in "
    ) as unproven:
        found_at(ledger, 62)
    assert [action.command.split("://")[0] for action in unproven.value.actions] == ["airflow archive print memory"]
    with pytest.raises(
        ConfigError, match="nobody knows the offsets of its 9 rows: they are at the offset 61 and somew"
    ):
        read(ledger, offsets=(0, 65))


@pytest.mark.parametrize("form", FORMS)
def test_files_of_lenses_end_with_the_offset_in_their_name(form: str) -> None:
    files = [sent(range(7, 10)), sent(range(10, 30)), sent([35, 36])]
    ledger, adoption = adopted(store_of(*(lenses(form, records) for records in files)), "lenses")
    [partition] = adoption.partitions
    # Nothing says where the first file begins, nor which of seven offsets the two rows of the last one have.
    assert (partition.placed, partition.loose, partition.unproven) == (20, 5, 5)
    assert values(read(ledger)) == [*range(7, 30), 35, 36]
    assert values(read(ledger, offsets=(10, 30))) == list(range(10, 30))
    assert [row["offset"] for row in found_at(ledger, 9)] == [9]
    for offset in (8, 33, 36):
        with pytest.raises(ConfigError, match="is unproven"):
            found_at(ledger, offset)


@pytest.mark.parametrize("form", FORMS)
def test_the_envelope_of_lenses_tells_each_offset(form: str) -> None:
    files = [sent([3, 4, 8]), sent([9, 20, 21])]
    ledger, adoption = adopted(store_of(*(lenses(form, records, envelope=True) for records in files)), "lenses")
    [partition] = adoption.partitions
    assert (partition.placed, partition.loose) == (6, 0)
    batches = read(ledger, offsets=(4, 21))
    assert numbers(batches, "offset") == values(batches) == [4, 8, 9, 20]
    assert found_at(ledger, 20)[0]["offset"] == 20
    with pytest.raises(ConfigError, match="offset 10 is unproven"):
        found_at(ledger, 10)


def test_files_of_kafkatos3_that_overlap_give_each_offset_once() -> None:
    files = [sent([0, 1, 5]), sent([1, 5, 6, 9]), sent([9, 12])]
    ledger, adoption = adopted(store_of(*map(kafkatos3, files)), "kafkatos3")
    batches = read(ledger)
    assert numbers(batches, "offset") == values(batches) == [0, 1, 5, 6, 9, 12]
    assert numbers(batches, "key") == [b"k"] * 6
    assert [row["offset"] for row in found_at(ledger, 5, count=3)] == [5, 6, 9]
    assert adoption.unproven > 0


def test_deviantart_counts_records_by_its_index_and_a_value_with_a_line_break_has_no_offset() -> None:
    plain = [json.dumps(record.value).encode() for record in sent(range(10))]
    store = MemoryStore(uuid.uuid4().hex)
    for number, day, some in (
        (0, 20, plain[:4]),
        (4, 20, plain[4:7]),
        (7, 21, [b'{"n":\n7}', *plain[8:]]),
        (10, 21, plain[:1]),
    ):
        base = f"pre/2026-11-{day}/orders-00000-{number:012d}"
        data, index = blocks(number, some, 2)
        store.put(f"{base}.gz", data)
        store.put(f"{base}.index.json", index)
    store.put("pre/last_chunk_index.orders-00000.txt", b"x")
    ledger, adoption = adopted(store, "deviantart", "pre/")
    assert adoption.left_out == {"an index of the tool, not of records": 5}
    assert "one after the other" in adoption.unknown[1]
    assert [row["offset"] for row in found_at(ledger, 3, count=4)] == [3, 4, 5, 6]
    for offset in (7, 8):
        # Its first line is not its first value.
        with pytest.raises(ConfigError, match=f"offset {offset} is unproven"):
            found_at(ledger, offset)


def test_zooz_has_values_only() -> None:
    files = [(sent(range(5)), "05"), (sent(range(5, 9)), "05"), (sent(range(3, 6)), "06")]
    ledger, adoption = adopted(store_of(*(zooz(*item) for item in files)), "zooz", "root/app/", "orders")
    assert adoption.partitions[0].placed == 0
    batches = read(ledger)
    assert sorted(values(batches)) == sorted([*range(9), *range(3, 6)])
    assert set(numbers(batches, "offset")) == {None}
    # Each line may be a part of a value.
    with pytest.raises(ConfigError, match=r"0_5\.json\.gz"):
        found_at(ledger, 5)
    with pytest.raises(ConfigError, match="read it without `hours`"):
        read(ledger, hours="2026-11-21T05")


def test_every_key_below_the_folder_is_adopted_or_counted() -> None:
    """Folders that a console has made are no objects. What Kafka has no topic for is not adopted."""
    topics = ("..", "ord@ers", "ord ers", "örders", "o*", "y" * 250)
    objects = [confluent("json", sent(range(3))), ("topics/orders/", b""), ("topics/orders/orders+0+7.json", b"")]
    objects += [(f"topics/x/{topic}+0+1.json", b"{}\n") for topic in topics]
    _, adoption = adopted(store_of(*objects), "confluent")
    assert [(p.topic, p.rows) for p in adoption.partitions] == [("orders", 3)]
    assert adoption.left_out == {"it has no record": 1, "Kafka has no topic of the name in its key": len(topics)}
    assert preview(store_of(*objects), "", "confluent", None).left_out.total() == len(topics)


def test_copies_are_left_out_by_rule_and_counted() -> None:
    long, short = sent(range(30)), sent(range(10, 20))
    objects = [
        confluent("avro", long),
        confluent("avro", sent(range(30, 40))),
        # A rotation that was written again, in another folder.
        *(confluent("avro", some, "again") for some in (long[:10], short, sent(range(20, 21)))),
        ("topics/orders/partition=0/orders+0+0000000000.keys.avro", b"x"),
        ("topics/orders/partition=0/orders+0+0000000099.avro", b"damaged"),
        ("topics/orders/readme.txt", b"x"),
    ]
    ledger, adoption = adopted(store_of(*objects), "confluent")
    assert values(read(ledger, offsets=(0, 30))) == list(range(30))
    kinds = adoption.left_out
    assert kinds.pop("all of its offsets are in another object") == 3
    assert kinds.pop("keys or headers in a file of their own: they cannot be joined with their values") == 1
    assert kinds.pop("the name is none of this tool's") == 1
    assert kinds == {"it cannot be read": 1}
    assert {item.key for item in adoption.examples} == {key for key, _ in objects[2:]}


@settings(max_examples=40)
@given(
    sizes=st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from([0, 0, 1, 3]), st.integers(0, 1)), min_size=1, max_size=12
    ),
    start=st.integers(0, 3),
    writer=st.sampled_from([("confluent", False), ("confluent", True), ("lenses", False)]),
    again=st.none() | st.integers(1, 4),
)
def test_no_offset_is_ever_wrong(
    sizes: list[tuple[int, int, int]], start: int, writer: tuple[Any, bool], again: int | None
) -> None:
    """Gaps between and in files, two folders in turn: an offset is the record's own or null; no record is lost.

    :param writer: the tool, and whether values say, like an envelope, where they were before a mirror copied them.
    :param again: another connector writes all to the same folders, so many records a file, in another format.
    """
    tool, is_mirrored = writer
    records, objects, offset = [], [], start
    write: Callable[..., tuple[str, bytes]] = confluent if tool == "confluent" else lenses

    def add(form: str, some: Sequence[Sent], folder: int) -> None:
        key, data = write(form, some)
        objects.append(
            (key.replace("/orders/", f"/x{folder}/orders/" if tool == "lenses" else f"/orders/f{folder}/"), data)
        )

    of_folders: dict[int, list[Sent]] = {0: [], 1: []}
    for count, gap, folder in sizes:
        offsets = [offset + n * (2 if gap == 3 else 1) for n in range(count)]
        offset = offsets[-1] + 1 + gap
        some = sent(offsets)
        if is_mirrored:
            some = [item._replace(value={**item.value, **copied(item.offset + 1)}) for item in some]
        records += some
        of_folders[folder] += some
        add("json", some, folder)
    for folder, whole in of_folders.items():
        for first in range(0, len(whole) if again else 0, again or 1):
            add("json.gz", whole[first : first + (again or 1)], folder)
    ledger, adoption = adopted(store_of(*objects), tool)
    batches = read(ledger)
    assert {*values(batches)} == {record.offset for record in records}
    pairs = list(zip(numbers(batches, "offset"), values(batches), strict=True))
    assert all(offset in (None, value) for offset, value in pairs)
    known = [offset for offset, _ in pairs if offset is not None]
    assert known == sorted(set(known))
    if not again:
        assert len(known) == adoption.partitions[0].placed
        assert len(pairs) == len(records)
    for at in range(start, offset + 1):
        row = found_or_unproven(ledger, at)
        assert row is not None or at not in known
        assert row is None or json.loads(row["value"])["n"] == row["offset"] == at
        several = [row["offset"] for row in found_at(ledger, at, count=7)] if row else []
        assert several == sorted(set(several))


def copied(offset: int) -> dict[str, Any]:
    """Return what a mirror may write into a value."""
    return {"metadata": {"topic": "orders", "partition": 0, "offset": offset, "timestamp": 7}}


class Killed(BaseException):
    """The process ends here."""


def test_an_adoption_that_is_killed_anywhere_goes_on_and_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [confluent("json", sent(range(n * 3, n * 3 + 3))) for n in range(7)]
    monkeypatch.setattr("kafka_archiver.work.adopt.listing._PART", 3)
    monkeypatch.setattr("kafka_archiver.work.adopt.account.PAGE", 2)
    whole = store_of(*objects)
    adopted(whole, "confluent")
    expected = {stat.key: whole.get(stat.key) for stat in whole.list("_ledger/")}
    assert len(expected) == 5
    for step in range(1, 100):
        store, left = store_of(*objects), [step]

        def counted(method: Callable[..., Any], left: list[int] = left) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
                return method(*arguments)

            return call

        with monkeypatch.context() as patch:
            for name in ("create", "put", "delete"):
                patch.setattr(store, name, counted(getattr(store, name)))
            try:
                adopted(store, "confluent")
            except Killed:
                pass
            else:
                break
        reads: list[str] = []
        fetch = store.read
        monkeypatch.setattr(
            store, "read", lambda key, *ends, fetch=fetch, reads=reads: reads.append(key) or fetch(key, *ends)
        )  # type: ignore[func-returns-value]
        later = adopt(Ledger(store, "old"), "", "confluent", None, NOW.replace(hour=9))
        assert {stat.key: store.get(stat.key) for stat in store.list("_ledger/")} | {adoption_document("old"): b""} == {
            **expected, adoption_document("old"): b""}  # fmt: skip
        assert later.partitions == Ledger(whole, "old").adoption().partitions  # type: ignore[union-attr]
        if step > 8:
            assert len(reads) < 7, "what was read is not read again"
    else:
        raise AssertionError("it never ended")
    assert step > 10


def test_an_object_that_changed_meanwhile_is_not_adopted_and_one_that_changed_later_is_not_read() -> None:
    store = store_of(*(confluent("json", sent(range(n * 3, n * 3 + 3))) for n in range(3)))
    key = "topics/orders/partition=0/orders+0+0000000003.json"
    ledger, _ = adopted(store, "confluent")
    store.put(key, confluent("json", sent([3, 4, 6]))[1])
    with pytest.raises(IntegrityError, match=r"0000000003\.json: expected \d+ bytes with checksum"):
        read(ledger)
    assert values(read(ledger, offsets=(0, 3))) == [0, 1, 2]


def test_what_is_refused_says_what_to_do() -> None:
    store = store_of(confluent("json", sent(range(3))))
    with pytest.raises(ConfigError, match=r"has no object of lenses: expected keys like <topic>/<partition>/<offset>_"):
        adopted(store, "lenses", "topics/")
    store = store_of(confluent("json", sent(range(3))))
    ledger, adoption = adopted(store, "confluent", "topics/")
    assert adopt(ledger, "topics/", "confluent", None, NOW) == adoption
    with pytest.raises(
        ConfigError, match=r"has adopted memory://[0-9a-f]+/topics/ of confluent: expected the same folder"
    ):
        adopt(ledger, "", "confluent", None, NOW)


def test_a_preview_writes_nothing() -> None:
    store = store_of(confluent("json", sent(range(3))), ("x", b"x"))
    outlook = preview(store, "", "confluent", None)
    assert (outlook.objects, outlook.left_out.total()) == ({P0: 1}, 1)
    assert not list(store.list("_ledger/"))


def report_of(store: MemoryStore, deep: bool) -> Any:
    yaml = {"archive": "old", "source": {"topics": ["orders"]}, "store": {"url": "memory://unused"}}
    return audit(Archive.model_validate(yaml), store, NOW, deep, tell=lambda _: None)


def test_the_audit_finds_what_changed_since_and_says_that_nothing_is_proved() -> None:
    objects = [confluent("json", sent(range(n * 3, n * 3 + 3))) for n in range(4)]
    # In the topic's own prefix, where every other object is unexplained.
    store = store_of(*((key.removeprefix("topics/"), data) for key, data in objects), ("orders/other.txt", b"x"))
    keys = [key.removeprefix("topics/") for key, _ in objects]
    adopted(store, "confluent", "orders/")
    for deep in (False, True):
        report = report_of(store, deep)
        assert report.verdict == "clean"
        [finding] = report.findings
        assert (finding.kind, finding.severity) == ("unproven", "warning")
        assert (report.counts.objects, report.counts.rows, report.counts.read) == (4, 12, 4 * deep)
    before = [store.get(key) or b"" for key in keys]
    store.delete(keys[0])
    store.put(keys[1], before[1] + b"\n")
    flipped = before[2].replace(b"record", b"recorD")
    store.put(keys[2], flipped)
    kinds = {(f.kind, f.subject) for f in report_of(store, True).damage}
    assert kinds == {("object-missing", keys[0]), ("object-changed", keys[1]), ("content-wrong", keys[2])}
    assert all("another tool wrote it" in f.advice and not f.actions for f in report_of(store, True).damage)
    for key, data in zip(keys, before, strict=True):
        store.put(key, data)
    assert report_of(store, True).verdict == "clean"
    store.delete(f"_ledger/old/adopted/objects/orders+0/{0:06d}.json")
    assert {f.kind for f in report_of(store, False).damage} == {"unreadable"}


def test_a_deep_audit_reads_on_behind_a_cold_object_of_another_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [confluent("json", sent(range(n * 3, n * 3 + 3))) for n in range(3)]
    store, keys = store_of(*objects), [key for key, _ in objects]
    adopted(store, "confluent")
    real = MemoryStore.read

    def read(self: MemoryStore, key: str, start: int, length: int) -> bytes | None:
        if key == keys[0]:
            raise ColdObjectError(f"{key} must be restored")
        return real(self, key, start, length)

    monkeypatch.setattr(MemoryStore, "read", read)
    store.put(keys[1], (store.get(keys[1]) or b"").replace(b"record", b"recorD"))
    report = report_of(store, True)
    kinds = {(f.kind, f.subject) for f in report.findings if f.kind != "unproven"}
    assert (kinds, report.counts.read) == ({("content-cold", keys[0]), ("content-wrong", keys[1])}, 2)


def test_every_store_lists_and_keeps_them_alike(store: Store) -> None:
    files = [sent(range(4)), sent(range(4, 9)), sent(range(9, 10))]
    for key, data in (confluent("avro", records) for records in files):
        store.put(key, data)
    ledger = Ledger(store, "old")
    adoption = adopt(ledger, "topics/", "confluent", None, NOW)
    assert adopt(ledger, "topics/", "confluent", None, NOW) == adoption
    assert (adoption.partitions[0].placed, adoption.loose) == (10, 0)
    assert values(read(ledger, offsets=(2, 10))) == list(range(2, 10))
    assert {stat.key for stat in store.list("_ledger/")} == {
        "_ledger/old/adopted/adoption.json",
        "_ledger/old/adopted/objects/orders+0/000000.json",
    }


def test_an_archive_that_has_adopted_plans_nothing_and_one_with_runs_adopts_nothing() -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 3)}, name="old")
    lake.store.put(*confluent("json", sent(range(3))))
    adopt(lake.ledger, "topics/", "confluent", None, NOW)
    with pytest.raises(PolicyError, match=r"has adopted .* which confluent wrote, and archives nothing: give"):
        lake.run(0)
    other = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 3)}, name="old")
    other.run(0)
    with pytest.raises(ConfigError, match="archive old has runs of its own: adopt into an archive of another name"):
        adopt(other.ledger, "topics/", "confluent", None, NOW)


def restore_plan(ledger: Ledger, **more: Any) -> RestorePlan:
    twin = KafkaTwin(lambda: 0)
    twin.create_topic("orders", 1)
    selection = RestoreSelection(topics=("orders",), **more.pop("selection", {}))
    return plan_restore(ledger, twin, RestoreRequest(uuid.uuid4().hex, selection, options=RestoreOptions(**more)))


def restored(ledger: Ledger, **more: Any) -> list[tuple[int, bytes, int]]:
    """Return offset, value and timestamp of what a restore writes."""
    plan = restore_plan(ledger, **more)
    of_lane = Lane(ledger, plan, P0, frozenset(plan.options.allow)).batches()
    batches = [batch.records for batch in of_lane if batch]
    return [(row["offset"], row["value"], row["timestamp"]) for batch in batches for row in batch.to_pylist()]


def test_a_restore_takes_the_rows_with_known_offsets_if_it_may() -> None:
    files = [sent(range(5)), sent(range(5, 9)), sent(range(12, 14)), sent(range(20, 24))]
    ledger, _ = adopted(store_of(*(confluent("json", records) for records in files)), "confluent")
    for allow, refused in (((), "have only their values|has only their values"), (("values_only",), "nobody has them")):
        with pytest.raises(NotExactError, match=refused):
            restored(ledger, allow=allow)
    rows = restored(ledger, allow=("values_only", "lost"))
    assert [(offset, json.loads(value)["n"]) for offset, value, _ in rows] == [(n, n) for n in range(5)]
    assert {time for *_, time in rows} == {-1}
    assert rows[2:] == restored(ledger, allow=("values_only", "lost"), selection={"offsets": (2, 90)})
    mak_ledger, _ = adopted(store_of(*map(kafkatos3, [sent([0, 1, 5]), sent([1, 5, 6])])), "kafkatos3")
    assert [offset for offset, *_ in restored(mak_ledger, allow=("values_only", "lost"))] == [0, 1, 5, 6]
    avro, _ = adopted(store_of(*(confluent("avro", records) for records in files)), "confluent")
    with pytest.raises(ConfigError, match=r"has columns \(avro\), not the bytes of values: it cannot be restored"):
        restored(avro, allow=("values_only", "lost"))


def test_a_restore_says_before_each_object_that_it_may_take_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "QUIET", 0)
    ledger, _ = adopted(store_of(*map(kafkatos3, [sent([0, 1]), sent([5, 6])])), "kafkatos3")
    plan = restore_plan(ledger, allow=("values_only", "lost"))
    batches = list(Lane(ledger, plan, P0, frozenset(plan.options.allow)).read())
    assert [batch is None for batch in batches] == [True, False, True, False]


def test_a_restore_refuses_envelopes_between_lines_that_are_values() -> None:
    values, envelopes = sent(range(3)), [enveloped(record, "orders", 0) for record in sent(range(2, 5))]
    files = [("demo/orders/0/2.json", encoded("json", [record.value for record in values]))]
    files += [("demo/orders/0/4_of_another_connector.json", encoded("json", envelopes))]
    ledger, adoption = adopted(store_of(*files), "lenses")
    assert adoption.partitions[0].placed == 6
    with pytest.raises(ConfigError, match="has lines of an envelope, not the bytes of values: it cannot be restored"):
        restored(ledger, allow=("values_only", "lost"))


def of_lenses(offset: Any = 7, timestamp: Any = 1, partition: int = 0, name: str = "7") -> tuple[str, bytes]:
    metadata = {"topic": "orders", "partition": partition, "offset": offset, "timestamp": timestamp}
    return f"demo/orders/{partition}/{name}.json", encoded("json", [{"metadata": metadata}])


# Names of columns that are not UTF-8.
NOT_UTF8 = confluent("parquet", sent([7]))[1].replace(b"text", b"t\xebxt")
# A schema with a field that has no type.
WITHOUT_A_TYPE = confluent("avro", sent([7]))[1].replace(b'"n", "type"', b'"n", "typo"')


@pytest.mark.parametrize(
    ("tool", "key", "data", "reason"),
    [
        ("lenses", *of_lenses(offset=-1), "offsets or times that Kafka has not"),
        ("lenses", *of_lenses(offset=2**63), "offsets or times that Kafka has not"),
        ("lenses", *of_lenses(timestamp=2**64 - 1), "offsets or times that Kafka has not"),
        ("lenses", *of_lenses(partition=2**31), "Kafka has no such partition"),
        ("lenses", *of_lenses(name=f"7_1_{10**19 - 1}"), "Kafka has no such partition, offset or time"),
        ("lenses", *of_lenses(name=f"{2**63}"), "Kafka has no such partition, offset or time"),
        ("lenses", *of_lenses(name="9"), "its last record has the offset 7, and its name says 9"),
        ("confluent", "topics/orders/x/orders+0+7.avro", WITHOUT_A_TYPE, "is not a complete Avro file"),
        ("confluent", "topics/orders/x/orders+0+7.parquet", NOT_UTF8, "is not a complete Parquet file"),
    ],
)
def test_an_object_with_impossible_numbers_is_left_out_and_the_others_are_adopted(
    tool: Tool, key: str, data: bytes, reason: str
) -> None:
    good = lenses("json", sent(range(4))) if tool == "lenses" else confluent("json", sent(range(1)))
    ledger, adoption = adopted(store_of((key, data), good), tool)
    assert adoption.objects == 1
    [left_out] = adoption.examples
    assert left_out.key == key
    assert reason in left_out.reason
    assert len(values(read(ledger))) == adoption.rows


def test_true_is_no_offset() -> None:
    ledger, adoption = adopted(store_of(of_lenses(offset=True)), "lenses")
    assert adoption.partitions[0].placed == 1
    assert numbers(read(ledger), "offset") == [7]


@pytest.mark.parametrize("index", [b'{"chunks": [{"num_records": Infinity}]}', b"[" * 100_000])
def test_an_index_that_is_none_counts_nothing(index: bytes) -> None:
    base = f"pre/2026-11-20/orders-00000-{0:012d}"
    data, _ = blocks(0, [b"{}"] * 3, 2)
    _, adoption = adopted(store_of((f"{base}.gz", data), (f"{base}.index.json", index)), "deviantart")
    assert (adoption.rows, adoption.partitions[0].placed) == (3, 0)
