"""Objects with an index beside them: it is written, found damaged, restored, replaced and removed with its object."""

import gzip
import hashlib
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ArchiverError, IntegrityError, PermanentError, TransientError
from kafka_archiver.records.formats.shared.blocks import BlockEncoder
from kafka_archiver.store.base import PendingUpload
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.clean_up import clean_up
from kafka_archiver.work.repair import find_repairs, record_lost, write_again, write_sidecars
from kafka_archiver.work.verify import verify
from tests.contract.test_clean_up import soon
from tests.support.lake import FIRST, Lake, hour
from tests.support.mappers import write_module

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
COUNT = 40
ABSENT = {3, 4, 20, 38}
RUN = hour(0).id


def value(offset: int) -> bytes:
    """About 20 kB that do not compress: three of them in a member."""
    return b'{"n":%d,"noise":"%s"}' % (offset, hashlib.shake_256(b"%d" % offset).hexdigest(10_000).encode())


def new_lake(content: str = "value") -> Lake:
    """An archive whose runs have two objects of one hour each, if no record is late."""
    options = {"format": "block_gzip", "content": content, "chunk_records": 20, "options": {"block_bytes": 65536}}
    odd = {(P0, offset): {"timestamp": to_ms(FIRST), "value": value(offset)} for offset in range(COUNT)}
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, COUNT)}, settings=options, odd=odd, name="a")
    lake.absent = {(P0, offset) for offset in ABSENT}
    return lake


@pytest.fixture
def lake() -> Lake:
    lake = new_lake()
    lake.run(0)
    return lake


def kinds(lake: Lake, **options: Any) -> set[str]:
    return {f.kind for f in lake.audit(**options).damage}


def stored(lake: Lake) -> dict[str, bytes | None]:
    return {key: lake.store.get(key) for key in lake.stored()}


def repaired(lake: Lake) -> None:
    """Repair as `airflow archive repair --yes` does it."""
    damage = find_repairs(lake.context, lake.audit(deep=True))
    for run, entries in damage.sidecars.items():
        write_sidecars(lake.context, run, [entry.key for entry in entries])
    for run, entries in damage.lost.items():
        record_lost(lake.context, run, [entry.key for entry in entries])
    if damage.to_rewrite:
        lake.finish(write_again(lake.context, list(damage.to_rewrite)))


@pytest.mark.parametrize("content", ["value", "record"])
def test_one_range_request_gives_the_record_at_any_offset(content: str) -> None:
    lake = new_lake(content)
    lake.run(0)
    objects = {entry.chunk_start: entry for entry in lake.manifest(RUN).objects}
    for offset in set(range(COUNT)) - ABSENT:
        key = objects[offset // 20 * 20].key
        chunks = json.loads(lake.store.get(f"{key}.index.json") or b"")["chunks"]
        assert len(chunks) > 3
        assert all(chunk["byte_length_uncompressed"] <= 65536 for chunk in chunks)
        chunk = [chunk for chunk in chunks if chunk["first_record_offset"] <= offset][-1]
        data = lake.store.read(key, chunk["byte_offset"], chunk["byte_length"]) or b""
        lines = [json.loads(line) for line in gzip.decompress(data).splitlines()]
        assert len(lines) == chunk["num_records"]
        values = lines if content == "value" else [json.loads(line["value"]) for line in lines]
        assert offset in [value["n"] for value in values]


def test_an_index_is_part_of_its_run_and_counts_no_row(lake: Lake) -> None:
    manifest = lake.manifest(RUN)
    assert [s.sidecar_of for s in manifest.sidecars] == [o.key for o in manifest.objects]
    assert lake.stored() == sorted(o.key for o in manifest.stored)
    assert manifest.rows == manifest.account["archived"] == COUNT - len(ABSENT)
    [contribution] = lake.proof(0).runs
    assert [o.key for o in contribution.objects] == [o.key for o in manifest.objects]
    assert lake.proof(0).rows == manifest.rows
    verify(lake.context, [RUN])
    assert lake.audit(deep=True).findings == ()
    assert clean_up(lake.ledger, soon()) == []


def flipped(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


@pytest.mark.parametrize("damage", [None, flipped, lambda data: data[:-1]], ids=["gone", "flipped", "cut"])
def test_an_index_that_is_missing_or_damaged_is_found_and_restored(
    lake: Lake, damage: Callable[[bytes], bytes] | None
) -> None:
    before = stored(lake)
    key = lake.manifest(RUN).sidecars[0].key
    if damage:
        lake.store.put(key, damage(before[key] or b""))
    else:
        lake.store.delete(key)
    with pytest.raises(IntegrityError, match=r"\.index\.json: expected \d+ bytes"):
        verify(lake.context, [RUN])
    assert kinds(lake) <= {"object-missing", "object-changed", "object-rewritten"}
    assert {f.subject for f in lake.audit().damage} == {key}
    repaired(lake)
    assert stored(lake) == before
    assert lake.audit(deep=True).findings == ()


@pytest.mark.parametrize("call", ["start_upload", "complete_upload"])
def test_a_repair_that_slept_brings_back_no_index_of_a_replaced_run(
    lake: Lake, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = lake.manifest(RUN).sidecars[0].key
    lake.store.delete(key)
    real = getattr(MemoryStore, call)

    def asleep(store: MemoryStore, what: Any) -> Any:
        monkeypatch.undo()
        lake.rebuild(RUN)
        return real(store, what)

    monkeypatch.setattr(MemoryStore, call, asleep)
    with pytest.raises((PermanentError, TransientError), match=r"has been replaced by another run|is gone"):
        write_sidecars(lake.context, RUN, [key])
    assert lake.stored() == sorted(o.key for o in lake.manifest(f"{RUN}+r1").stored)
    assert list(lake.store.list_uploads("")) == []


@pytest.mark.parametrize("completed", [0, 1, 2, 3])
def test_an_attempt_that_died_between_an_object_and_its_index_is_made_good(
    completed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, lake = new_lake(), new_lake()
    whole.run(0)
    complete, left = MemoryStore.complete_upload, [completed]

    def dying(store: MemoryStore, upload: PendingUpload) -> str:
        left[0] -= 1
        if left[0] < 0:
            raise InterruptedError
        return complete(store, upload)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "complete_upload", dying)
        with pytest.raises(InterruptedError):
            lake.run(0)
    lake.run(1)
    assert stored(lake) == stored(whole), "an index has the same bytes in every attempt"
    assert lake.audit(deep=True).findings == ()


@pytest.mark.parametrize("keep", [False, True])
def test_a_rebuild_replaces_an_index_with_its_object(lake: Lake, keep: bool) -> None:
    old = stored(lake)
    run = lake.rebuild(RUN, keep)
    new = {entry.key for entry in lake.manifest(run).stored}
    assert set(lake.stored()) == (new | set(old) if keep else new)
    assert len(new) == len(old)
    assert lake.proof(0).rows == COUNT - len(ABSENT)
    assert lake.audit(deep=True).findings == ()


@pytest.mark.parametrize("content", ["value", "record"])
def test_an_index_is_restored_from_its_object_if_kafka_does_not_have_the_records(content: str) -> None:
    lake = new_lake(content)
    lake.run(0)
    before = {stat.key: stat.etag for stat in lake.store.list("orders/")}
    for entry in lake.manifest(RUN).sidecars:
        lake.store.delete(entry.key)
    lake.logs[P0] = Range(COUNT, COUNT)
    damage = find_repairs(lake.context, lake.audit())
    assert (len(damage.sidecars[RUN]), damage.to_rewrite, damage.lost) == (2, {}, {})
    repaired(lake)
    assert {stat.key: stat.etag for stat in lake.store.list("orders/")} == before
    lake.run(1)
    assert lake.audit(deep=True).findings == ()


def test_a_run_that_was_replaced_meanwhile_gets_no_index_back(lake: Lake) -> None:
    keys = [entry.key for entry in lake.manifest(RUN).sidecars]
    lake.rebuild(RUN)
    with pytest.raises(PermanentError, match="has been replaced by another run meanwhile"):
        write_sidecars(lake.context, RUN, keys)
    assert not set(keys) & set(lake.stored())


@pytest.mark.parametrize("what", ["objects", "sidecars"])
def test_what_nobody_has_any_more_is_lost_by_name(what: str) -> None:
    """With an object goes its index; without its index an object stays."""
    lake = new_lake()
    # Two hours in turn: which value has which offset is unknown.
    for offset in range(COUNT):
        lake.odd[P0, offset]["timestamp"] += offset % 2 * 3_600_000
    lake.run(0)
    manifest = lake.manifest(RUN)
    entry = getattr(manifest, what)[0]
    lake.store.delete(entry.key)
    lake.logs[P0] = Range(COUNT, COUNT)
    repaired(lake)
    after = lake.manifest(f"{RUN}+r1")
    assert [o.key for o in after.lost_objects] == [entry.key]
    assert after.account["lost"] == entry.rows
    assert after.sidecars == manifest.sidecars[1:]
    assert lake.stored() == sorted(o.key for o in after.stored)
    lake.run(2)
    assert [(f.kind, f.severity) for f in lake.audit(deep=True).findings] == [("lost", "warning")]


def test_an_upload_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = new_lake()
    send = MemoryStore.upload_part

    def refusing(store: MemoryStore, upload: PendingUpload, *arguments: Any) -> Any:
        if upload.key.endswith(".index.json"):
            raise IntegrityError("refused")
        return send(store, upload, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "upload_part", refusing)
        with pytest.raises(ArchiverError, match="refused"):
            lake.run(0)
    assert (lake.stored(), list(lake.store.list_uploads(""))) == ([], [])


@pytest.mark.parametrize("content", ["value", "record"])
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"num_records": 2}, "chunk 1 has 60"),
        ({"byte_length_uncompressed": 7}, "chunk 1 has 60"),
        ({"byte_offset": 7}, "chunk 1 begins at byte 7"),
        ({"byte_length": 7}, "chunk 1 is not a gzip member"),
        ({"first_record_offset": 1}, "chunk 1 begins at byte"),
        ({"more": 1}, "it is not an index of chunks"),
    ],
)
def test_an_index_that_was_written_wrong_is_found_by_reading(
    content: str, change: dict[str, int], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the encoder would write it so: the manifest has its checksum."""
    write = BlockEncoder.sidecar

    def wrong(encoder: BlockEncoder) -> bytes:
        document = json.loads(write(encoder))
        document["chunks"][1].update(change)
        return json.dumps(document).encode()

    lake = new_lake(content)
    with monkeypatch.context() as patch:
        patch.setattr(BlockEncoder, "sidecar", wrong)
        lake.run(0)
    assert kinds(lake) == set()
    damage = lake.audit(deep=True).damage
    assert {f.subject for f in damage} == {s.key for s in lake.manifest(RUN).sidecars}
    assert all(fault in f.observed for f in damage)


TWICE = """
def twice(record):
    return [record, record, record]
"""


def test_rows_of_one_record_may_be_in_several_members(tmp_path: Path) -> None:
    lake = new_lake("record")
    name = write_module(tmp_path, TWICE)
    mapped = {**lake.archive.model_dump(by_alias=True), "transform": {"mapper": f"{name}:twice"}}
    lake.configure(Archive.model_validate(mapped).of_file(str(tmp_path / "a.yaml")))
    lake.run(0)
    manifest = lake.manifest(RUN)
    assert (manifest.account["archived"], manifest.rows) == (36, 108)
    assert not lake.audit(deep=True).findings


@pytest.mark.parametrize("formats", [("block_gzip", "jsonl"), ("jsonl", "block_gzip")])
def test_dead_letters_are_replayed_into_a_format_with_or_without_an_index(formats: tuple[str, str]) -> None:
    odd = {(P0, 0): {"value": b"no json"}}
    settings = {"content": "record", "format": formats[0]}
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 4)}, settings=settings, odd=odd)
    lake.choose(bad_record="dead_letter")
    document = lake.archive.model_dump(by_alias=True, exclude_defaults=True)

    def edit(format_: str, decode: str) -> None:
        source, store = {**document["source"], "value": {"decode": decode}}, {**document["store"], "format": format_}
        lake.configure(Archive.model_validate({**document, "source": source, "store": store}))

    edit(formats[0], "json")
    lake.run(3)
    edit(formats[1], "bytes")
    replayed = lake.manifest(lake.replay())
    assert replayed.account["archived"] == 4
    assert len(replayed.objects) == 4
    # Three objects are of the run, one is of the replay.
    assert len(replayed.sidecars) == (3 if formats[0] == "block_gzip" else 1)
    assert not lake.audit(deep=True).findings
