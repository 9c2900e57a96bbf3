"""Snapshots: what a plan keeps of the cluster for a restore, as one document for as long as it does not change."""

import logging
from typing import Any

import pytest

from kafka_archiver.audit.inspection import audit
from kafka_archiver.config.source import Source
from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.object_keys import ledger_prefix, snapshot_document, split_snapshot_document
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.snapshots import GroupSnapshot, TopicSnapshot
from kafka_archiver.values.intervals import from_ms
from kafka_archiver.values.ranges import TopicPartition
from tests.support.topics import DAY, Record
from tests.support.twin_archive import TwinArchive

APP = TopicPartition("orders", 0)


def archive_of(**source: Any) -> TwinArchive:
    archive = TwinArchive(2, 6, **source)
    archive.twin.settings["orders"] = {"retention.ms": "-1", "cleanup.policy": "compact"}
    archive.twin.produce("orders", [Record(0, DAY, b"1"), Record(1, DAY, b"2")])
    return archive


def plan_of(archive: TwinArchive, hour: int) -> Plan:
    archive.run(hour, "scheduled")
    plan = archive.ledger.planned(hour + 1)
    assert plan
    return plan


def snapshots_in(archive: TwinArchive) -> list[str]:
    keys = [stat.key for stat in archive.world.store.list(ledger_prefix("orders"))]
    return [key for key in keys if split_snapshot_document("orders", key)]


def test_a_plan_names_the_topics_settings_and_the_groups_offsets() -> None:
    archive = archive_of(snapshot_groups=["app-.*"])
    archive.twin.reset_group("app-1", {APP: 1, TopicPartition("others", 0): 5})
    archive.twin.reset_group("another", {APP: 1})
    archive.twin.reset_group("app-idle", {TopicPartition("others", 0): 5})
    plan = plan_of(archive, 0)
    topics, groups = (
        archive.ledger.topics_snapshot(plan.topics_snapshot),
        archive.ledger.groups_snapshot(plan.groups_snapshot),
    )
    settings = {"cleanup.policy": "compact", "retention.ms": "-1"}
    [topic] = archive.twin.topics(["orders"])
    assert topics.topics == (
        TopicSnapshot(topic="orders", topic_id=topic.id, partitions=2, replication=1, settings=settings),
    )
    assert topics.cluster_id == plan.cluster_id
    assert groups.groups == (GroupSnapshot(group="app-1", offsets=(("orders", 0, 1),)),)
    assert groups.groups[0].by_partition == {APP: 1}


def test_what_does_not_change_is_one_document() -> None:
    archive = archive_of(snapshot_groups=["app-.*"])
    archive.twin.reset_group("app-1", {APP: 0})
    first, second = plan_of(archive, 0), plan_of(archive, 1)
    assert len(snapshots_in(archive)) == 2
    archive.twin.reset_group("app-1", {APP: 1})
    third = plan_of(archive, 2)
    assert first.topics_snapshot == second.topics_snapshot == third.topics_snapshot
    assert first.groups_snapshot == second.groups_snapshot != third.groups_snapshot
    assert len(snapshots_in(archive)) == 3


def test_an_idle_run_asks_for_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of()
    first = plan_of(archive, 0)
    monkeypatch.delattr(type(archive.twin), "own_settings")
    assert plan_of(archive, 1).topics_snapshot == first.topics_snapshot


def test_groups_cost_nothing_unless_the_yaml_names_some(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of()
    monkeypatch.delattr(type(archive.twin), "offsets_of_groups")
    assert plan_of(archive, 0).groups_snapshot is None


def test_a_run_goes_on_without_a_snapshot_that_the_brokers_refuse(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    archive = archive_of(snapshot_groups=[".*"])

    def refuse(*_: Any) -> None:
        raise PermanentError("the credentials may not describe it")

    monkeypatch.setattr(archive.twin, "own_settings", refuse, raising=True)
    monkeypatch.setattr(archive.twin, "offsets_of_groups", refuse)
    with caplog.at_level(logging.INFO):
        plan = plan_of(archive, 0)
    assert (plan.topics_snapshot, plan.groups_snapshot) == (None, None)
    assert '"topics_snapshot"' not in plan.to_json().decode()
    assert caplog.text.count("the credentials may not describe it") == 2
    assert snapshots_in(archive) == []


def test_the_keys_of_snapshots_are_read_back() -> None:
    key = snapshot_document("a b", "0" * 32, "groups")
    assert split_snapshot_document("a b", key) == ("groups", "0" * 32)
    assert not any(split_snapshot_document("a b", k) for k in (key.upper(), key + "x", key.replace("groups", "keys")))


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a regular expression for the whole name of consumer groups"):
        Source(topics=("orders",), snapshot_groups=("app-(",))


@pytest.mark.parametrize("is_removed", [True, False])
def test_an_audit_names_a_snapshot_that_is_gone_or_edited(is_removed: bool) -> None:
    archive = archive_of()
    plan_of(archive, 0)
    [key] = snapshots_in(archive)
    store = archive.world.store

    def findings() -> list[Finding]:
        return audit(archive.archive, store, from_ms(archive.now)).findings

    kinds = {finding.kind for finding in findings()}
    if is_removed:
        store.delete(key)
    else:
        store.put(key, (store.get(key) or b"").replace(b"compact", b"delete"))
    damage = [finding for finding in findings() if finding.kind not in kinds]
    assert [(f.kind, f.subject) for f in damage] == [("snapshot-missing" if is_removed else "unreadable", key)]
