"""The report of a restore: each of its numbers is counted by itself, so that its equations can fail."""

import base64
import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kafka_archiver.messages.errors import DocumentError, TransientError
from kafka_archiver.model.restore import RestoreOptions, RestoreSelection
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.store import open_store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.restore.lane import Lane
from kafka_archiver.work.restore.pace import Pace
from kafka_archiver.work.restore.partition_writer import PartitionWriter
from kafka_archiver.work.restore.plan import plan_restore
from kafka_archiver.work.restore.step import frozen_plan, publish, published
from kafka_archiver.work.restore.verify import PartitionReader
from tests.support.kafka_twin import KafkaTwin
from tests.support.lake import Lake
from tests.support.restore_twin import Fate, FatedTarget, TwinTarget
from tests.support.topics import Record

pytestmark = pytest.mark.unit
NAME = TopicPartition("t", 0)


def archive(end: int = 9, **more: Any) -> Lake:
    """Return an archive of one partition, two offsets in a chunk."""
    name = uuid.uuid4().hex
    MemoryStore(name)
    settings = {"content": "record", "codec": "none"}
    lake = Lake(open_store(f"memory://{name}/", {}), {NAME: Range(0, end)}, settings, **more)
    lake.run(8)
    return lake


def reported(lake: Lake, fates: dict[int, Fate] | None = None, twin: KafkaTwin | None = None, **more: Any) -> Any:
    """Restore an archive into the topic `t` of a twin, and return the report of its partition 0."""
    twin = twin or KafkaTwin(lambda: 0)
    twin.create_topic("t", more.pop("partitions", 1))
    plan = plan_restore(lake.ledger, twin, RestoreRequest("r", RestoreSelection(topics=("t",)), **more))
    target = FatedTarget(TwinTarget(twin), fates or {})
    reports = []
    for name in plan.targets():
        lane = lane_of(lake, plan, name)
        PartitionWriter(target, lane, Pace(), sleep=lambda _: None).run()
        reports.append(PartitionReader(target, lane, lambda _: None).run().report)
    return reports[0] if len(reports) == 1 else reports


def lane_of(lake: Lake, plan: Any, name: TopicPartition) -> Lane:
    return Lane(lake.ledger, plan, name, frozenset(plan.options.allow))


def with_losses() -> Lake:
    """Return an archive of nine offsets, of which Kafka had removed 4 to 6 before they were read."""
    lake = archive(4, policies={"lost_offsets": "record_loss"})
    lake.brokers.logs[NAME] = Range(7, 9)
    lake.run(9)
    return lake


def test_lost_records_are_excluded_and_count_as_selected() -> None:
    report = reported(with_losses(), options=RestoreOptions(allow=("lost",)))
    assert report.verified
    assert (report.selected, report.written, report.excluded) == (9, 6, {"lost": 3})


def test_lost_records_count_once_with_another_number_of_partitions() -> None:
    reports = reported(with_losses(), options=RestoreOptions(allow=("lost",)), partitions=3, partitioner="murmur2")
    assert all(report.verified for report in reports)
    assert sum(report.excluded.get("lost", 0) for report in reports) == 3
    assert sum(report.selected for report in reports) == 9


def test_objects_with_fewer_records_than_the_manifests_promise_are_not_verified() -> None:
    lake, twin = archive(), KafkaTwin(lambda: 0)
    twin.create_topic("t")
    plan = plan_restore(lake.ledger, twin, RestoreRequest("r", RestoreSelection(topics=("t",))))
    more = plan.model_copy(update={"sources": tuple(s.model_copy(update={"records": 10}) for s in plan.sources)})
    target, lane = TwinTarget(twin), lane_of(lake, more, NAME)
    PartitionWriter(target, lane, Pace()).run()
    report = PartitionReader(target, lane, lambda _: None).run().report
    assert not report.verified
    assert "promise 10 records for t[0], and the archive has 9, with those that are left out" in report.difference


@pytest.mark.parametrize(
    ("part", "changed"),
    [("sources", lambda sources: []), ("pages", lambda pages: pages * 2), ("pages", lambda pages: pages[::-1])],
)
def test_a_plan_that_was_changed_to_other_records_is_refused(
    part: str, changed: Callable[[list[Any]], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a source, the target would lack its records and be verified."""
    monkeypatch.setattr("kafka_archiver.work.restore.gather.PAGE", 1)
    lake = archive()
    lake.brokers.logs[NAME] = Range(0, 12)
    lake.run(9)
    reported(lake)
    key = f"_ledger/{lake.name}/restores/r/plan.json"
    plan = json.loads(lake.store.get(key) or b"")
    whole = plan if part == "sources" else plan["sources"][0]
    whole[part] = changed(whole[part])
    # As 1.0.0 wrote it.
    del plan["content_digest"]
    lake.store.put(key, json.dumps(plan).encode())
    with pytest.raises(DocumentError, match=r"plan.json is not a readable .* document: sources"):
        frozen_plan(lake.ledger, "r")


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan["sources"].pop(),
        lambda plan: plan["sources"][0]["pages"].pop(),
        lambda plan: plan["selection"].update(keys=[]),
        lambda plan: plan["selection"].update(as_of=1),
        lambda plan: plan["topics"].pop(),
    ],
    ids=["a source", "a page", "the keys", "the time", "a topic"],
)
def test_a_plan_that_lost_a_part_of_what_it_takes_is_refused(
    change: Callable[[dict[str, Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By keys, only the records tell how many there are: without a source, the rest of them were verified."""
    monkeypatch.setattr("kafka_archiver.work.restore.gather.PAGE", 1)
    name = uuid.uuid4().hex
    MemoryStore(name)
    logs = {TopicPartition(topic, partition): Range(0, 4) for topic in ("t", "u") for partition in (0, 1)}
    lake = Lake(open_store(f"memory://{name}/", {}), logs, {"content": "record", "codec": "none"})
    lake.run(8)
    for log in logs:
        lake.brokers.logs[log] = Range(0, 6)
    lake.run(9)
    twin = KafkaTwin(lambda: 0)
    for topic in ("t", "u"):
        twin.create_topic(topic, 2)
    selection = RestoreSelection(topics=("t", "u"), keys=(base64.b64encode(b"k").decode(),))
    frozen = plan_restore(lake.ledger, twin, RestoreRequest("r", selection))
    assert frozen_plan(lake.ledger, "r") == frozen
    key = f"_ledger/{lake.name}/restores/r/plan.json"
    plan = json.loads(lake.store.get(key) or b"")
    change(plan)
    lake.store.put(key, json.dumps(plan).encode())
    with pytest.raises(DocumentError, match=r"plan.json .* its content was changed"):
        frozen_plan(lake.ledger, "r")


def test_a_plan_of_an_earlier_release_has_no_digest_of_its_content_and_is_read() -> None:
    lake = archive()
    reported(lake)
    key = f"_ledger/{lake.name}/restores/r/plan.json"
    plan = json.loads(lake.store.get(key) or b"")
    assert plan.pop("content_digest")
    lake.store.put(key, json.dumps(plan).encode())
    assert frozen_plan(lake.ledger, "r").restore == "r"


def test_an_aborted_record_alone_is_no_marker() -> None:
    lake, twin = archive(), KafkaTwin(lambda: 0)

    def others_begin() -> None:
        twin.produce("t", [Record(0, 5, b"begun")], "others")

    def others_abort() -> None:
        twin.end_transaction("others", commit=False)

    calls = ["topic_id", "writer", "topic_id", "progress", "ends", *["send"] * 9, "commit"]
    fates = {
        calls.index(call): Fate("meanwhile", do) for call, do in (("send", others_begin), ("commit", others_abort))
    }
    report = reported(lake, fates, twin)
    assert report.verified
    # Others' record stands before the first one of the restore, its marker behind that of the restore.
    assert (report.records, report.aborted, report.markers) == (9, 1, 2)
    assert report.offsets == (0, 12)


def test_a_verification_that_wakes_up_replaces_no_later_verdict() -> None:
    lake, twin = archive(), KafkaTwin(lambda: 0)
    reported(lake, twin=twin)
    plan = lake.ledger.restore_plan("r")
    assert plan
    lane, target = lane_of(lake, plan, NAME), TwinTarget(twin)
    # This one reads the target, and sleeps before it writes what it saw.
    before = published(lake.ledger, plan)
    sleeping = PartitionReader(target, lane, lambda _: None).run()
    assert sleeping.report.verified
    twin.produce("t", [Record(0, 5, b"foreign")])
    later = [PartitionReader(target, lane, lambda _: None).run()]
    assert not publish(lake.ledger, plan, later, published(lake.ledger, plan)).verified
    with pytest.raises(TransientError, match="another process has verified this restore meanwhile"):
        publish(lake.ledger, plan, [sleeping], before)
    report = lake.ledger.restore_report("r").document
    assert report
    assert not report.verified
