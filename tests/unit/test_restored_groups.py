"""Consumer groups after a restore: each goes on behind the last restored record that it had read, or stays as it is."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.offset_map import LogMap, OffsetMap
from kafka_archiver.model.offset_map_recorder import RunRecorder
from kafka_archiver.model.restore import (
    PartitionReport,
    RestorePlan,
    RestoreReport,
    RestoreSelection,
    RestoreSource,
    SourcePartition,
    TargetTopic,
)
from kafka_archiver.model.restored_groups import GroupReport, translate_group
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.restore.groups import (
    GroupMover,
    GroupsThen,
    groups_of_cluster,
    snapshot_of_groups,
    snapshot_of_topics,
    translate_groups,
    verified_map,
)
from tests.support.kafka_twin import KafkaTwin
from tests.support.topics import DAY, Record
from tests.support.twin_archive import TwinArchive

SOURCE, TARGET = SourcePartition(topic="orders", partition=0), TopicPartition("restored", 0)
NOW = datetime(2026, 11, 25, tzinfo=UTC)


def map_of(plan: RestorePlan, places: list[tuple[int, int]], end: int) -> OffsetMap:
    recorder = RunRecorder()
    for source, target in places:
        recorder.add(source, target)
    log = LogMap(topic="orders", partition=0, target_topic="restored", target_partition=0, end=end, runs=recorder.runs)
    return OffsetMap(archive="orders", restore="r", plan_digest=plan.digest, cluster_id="twin", logs=(log,))


def plan_of(through: int = 1) -> RestorePlan:
    return RestorePlan(
        archive="orders",
        restore="r",
        planned_at=NOW,
        through=through,
        cluster_id="twin",
        group="g",
        selection=RestoreSelection(topics=("orders",)),
        topics=(TargetTopic(source="orders", topic="restored", topic_id="x", starts=(0,)),),
        sources=(RestoreSource(topic="orders", partition=0),),
    )


def twin_with_topic() -> KafkaTwin:
    twin = KafkaTwin(lambda: DAY)
    twin.create_topic("restored")
    twin.produce("restored", [Record(0, DAY, b"%d" % n) for n in range(10)])
    return twin


# Of ten records of the source, at offsets 0, 2, … 18, those of 4 … 14 were restored at 0 … 5; 6 is a marker.
PLACES = [(4 + 2 * n, n) for n in range(6)]


def moved(twin: KafkaTwin, stood: dict[str, int], **options: bool) -> list[GroupReport]:
    plan = plan_of()
    cluster: Any = twin
    mover = GroupMover(cluster, plan, map_of(plan, PLACES, 6), **options)
    return list(mover.move({group: {SOURCE: offset} for group, offset in stood.items()}))


@given(st.sets(st.integers(0, 40), min_size=1), st.integers(0, 45))
def test_a_group_reads_exactly_the_restored_records_that_it_had_not_read(records: set[int], offset: int) -> None:
    ordered = sorted(records)
    offsets = map_of(plan_of(), [(source, 3 * n) for n, source in enumerate(ordered)], 3 * len(ordered))
    [translated] = translate_group({SOURCE: offset}, offsets)
    unread = [source for n, source in enumerate(ordered) if 3 * n >= translated.offset]
    assert unread == [source for source in ordered if source >= offset]
    assert bool(translated.note) == (offset < ordered[0] or offset > ordered[-1] + 1)


def test_a_second_attempt_moves_nothing_that_consumers_have_moved_on() -> None:
    twin = twin_with_topic()
    assert [(g.outcome, g.offsets[0].offset) for g in moved(twin, {"a": 8, "b": 9})] == [("moved", 2), ("moved", 3)]
    assert twin.groups["a"][TARGET].offset == 2
    assert twin.groups["a"][TARGET].stamp == "kafka-archiver restore orders/r"
    assert [g.outcome for g in moved(twin, {"a": 8, "b": 9})] == ["there", "there"]
    twin.reset_group("a", {TARGET: 5})
    [report] = moved(twin, {"a": 8})
    assert (report.outcome, twin.groups["a"][TARGET].offset) == ("other", 5)
    assert report.reason == "it has offset 5 of restored[0] already; --replace-groups moves it"
    assert [g.outcome for g in moved(twin, {"a": 8}, replace=True)] == ["moved"]
    assert twin.groups["a"][TARGET].offset == 2


def test_a_group_with_live_members_is_left_alone_and_keeps_no_other_from_being_moved() -> None:
    twin = twin_with_topic()
    twin.live["a"] = ["client@host"]
    first, second = moved(twin, {"a": 8, "b": 8}, replace=True)
    assert (first.outcome, second.outcome) == ("live", "moved")
    assert first.reason == "it has live members (client@host): stop them, and run it again"
    assert "a" not in twin.groups


def test_a_dry_run_says_the_same_and_does_nothing() -> None:
    twin = twin_with_topic()
    planned = moved(twin, {"a": 8, "b": 99, "c": 0}, dry_run=True)
    assert not twin.groups
    assert planned == moved(twin, {"a": 8, "b": 99, "c": 0})
    assert [group.offsets[0].offset for group in planned] == [2, 6, 0]
    assert planned[1].offsets[0].note == "orders[0]: it stood at 99, behind the last restored record 14"
    assert planned[2].offsets[0].note == "orders[0]: it stood at 0, and the first restored record is 4"


def archive_with_group(**source: Any) -> TwinArchive:
    archive = TwinArchive(1, 6, snapshot_groups=["app-.*"], **source)
    archive.twin.produce("orders", [Record(0, DAY, b"%d" % n) for n in range(10)])
    archive.twin.reset_group("app-1", {TopicPartition("orders", 0): 3})
    archive.run(0, "scheduled")
    archive.twin.reset_group("app-1", {TopicPartition("orders", 0): 7})
    archive.run(1, "scheduled")
    return archive


def test_groups_stand_where_the_last_snapshot_says_or_that_of_a_time() -> None:
    archive = archive_with_group()
    first, last = (archive.ledger.planned(number) for number in (1, 2))
    assert first
    assert last
    assert snapshot_of_groups(archive.ledger, 2, ["app-.*"]) == (last.groups_snapshot, {"app-1": {SOURCE: 7}})
    assert snapshot_of_groups(archive.ledger, 2, [".*"], first.planned_at).stood == {"app-1": {SOURCE: 3}}
    topics = snapshot_of_topics(archive.ledger, 2)
    assert topics
    assert topics.topics[0].partitions == 1
    live = archive.twin.offsets_of_groups(["app-.*"], {"orders"})
    assert groups_of_cluster(archive.ledger, 2, "twin", live).stood == {"app-1": {SOURCE: 7}}
    with pytest.raises(ConfigError, match="no consumer group in the snapshot of plan 2 matches web; it has app-1"):
        snapshot_of_groups(archive.ledger, 2, ["web"])
    with pytest.raises(ConfigError, match=r"`source.snapshot_groups` names those"):
        snapshot_of_groups(archive.ledger, 0, [".*"])
    with pytest.raises(ConfigError, match="expected a regular expression"):
        snapshot_of_groups(archive.ledger, 2, ["app-("])


def test_what_became_of_the_groups_stays_beside_the_other_documents_of_the_restore() -> None:
    archive, twin = archive_with_group(), twin_with_topic()
    plan = archive.ledger.create_restore_plan(plan_of(2))
    offsets = map_of(plan, PLACES, 6)
    with pytest.raises(ConfigError, match="is not verified: groups are moved only then"):
        verified_map(archive.ledger, plan)
    archive.ledger.replace_of_restore(offsets, archive.ledger.restore_map("r"))
    report = PartitionReport(
        topic="restored", partition=0, offsets=(0, 7), selected=6, written=6, records=6, markers=1, aborted=0,
        digest="d", expected_digest="d",
    )  # fmt: skip
    whole = RestoreReport(
        archive="orders", restore="r", plan_digest=plan.digest, at=NOW, verified=True, partitions=(report,)
    )
    archive.ledger.replace_of_restore(whole, archive.ledger.restore_report("r"))
    cluster: Any = twin
    stood = snapshot_of_groups(archive.ledger, 2, [".*"])
    for dry_run in (True, False, False):
        mover = GroupMover(cluster, plan, verified_map(archive.ledger, plan), dry_run=dry_run)
        written = translate_groups(archive.ledger, mover, stood, lambda: NOW)
        kept = archive.ledger.restore_groups("r").document
        assert kept == (None if dry_run else written)
    assert [group.outcome for group in written.groups] == ["there"]
    assert twin.groups["app-1"][TARGET].offset == 2
    assert isinstance(stood, GroupsThen)
