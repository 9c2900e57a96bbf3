"""Snapshots at planning: what a restore after a disaster needs to know of the cluster, and the archive cannot tell.

A run does not need them. So it goes on without one if the brokers refuse it; the doctor says what is missing.
"""

import logging
from typing import NamedTuple

from kafka_archiver.context.archive_context import Context
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.snapshots import GroupSnapshot, GroupsSnapshot, TopicSnapshot, TopicsSnapshot

log = logging.getLogger(__name__)


class Snapshots(NamedTuple):
    """The snapshots of a plan; None: the brokers refused it, or nobody asked for it."""

    topics: TopicsSnapshot | None = None
    groups: GroupsSnapshot | None = None

    def store(self, ledger: Ledger, before: Plan | None) -> None:
        """Store those that the plan before has not. Before the plan: what a plan names can be read by anybody."""
        if self.topics and (before is None or before.topics_snapshot != self.topics.fingerprint):
            ledger.keep_snapshot(self.topics)
        if self.groups and (before is None or before.groups_snapshot != self.groups.fingerprint):
            ledger.keep_snapshot(self.groups)


def with_snapshots(context: Context, plan: Plan, before: Plan | None) -> tuple[Plan, Snapshots]:
    """Return the plan with fingerprints of the topics and of the groups of `source.snapshot_groups` as they are now.

    A plan without offsets to read keeps the topics of the plan before: an idle archive costs no more requests.
    """
    idle = before if before and before.cluster_id == plan.cluster_id and not plan.count else None
    topics = None if idle and idle.topics_snapshot else _topics(context, plan)
    groups = _groups(context, plan)
    named = plan.model_copy(
        update={
            "topics_snapshot": topics.fingerprint if topics else idle and idle.topics_snapshot,
            "groups_snapshot": groups and groups.fingerprint,
        }
    )
    return named, Snapshots(topics, groups)


def _topics(context: Context, plan: Plan) -> TopicsSnapshot | None:
    counts: dict[tuple[str, str], int] = {}
    for partition in plan.partitions:
        topic = partition.topic, partition.topic_id
        counts[topic] = max(counts.get(topic, 0), partition.partition + 1)
    names = sorted(topic for topic, _ in counts)
    try:
        settings = context.cluster.own_settings(names)
        replication = context.cluster.replication(names)
    except ArchiverError as error:
        log.info("this plan has no snapshot of the topics' settings, which a restore would use: %s", error)
        return None
    topics = (
        TopicSnapshot(
            topic=name,
            topic_id=identity,
            partitions=count,
            replication=replication[name],
            settings=settings[name],
        )
        for (name, identity), count in sorted(counts.items())
    )
    return TopicsSnapshot(archive=plan.archive, cluster_id=plan.cluster_id, topics=tuple(topics))


def _groups(context: Context, plan: Plan) -> GroupsSnapshot | None:
    patterns, topics = context.archive.source.snapshot_groups, {partition.topic for partition in plan.partitions}
    if not patterns:
        return None
    try:
        offsets = context.cluster.offsets_of_groups(patterns, topics)
    except ArchiverError as error:
        log.warning("this plan has no snapshot of consumer groups (source.snapshot_groups): %s", error)
        return None
    # The archive's own group stands where the plans say.
    offsets.pop(context.archive.group, None)
    groups = (
        GroupSnapshot(group=group, offsets=tuple(sorted((*name, offset) for name, offset in places.items())))
        for group, places in sorted(offsets.items())
    )
    return GroupsSnapshot(archive=plan.archive, cluster_id=plan.cluster_id, groups=tuple(groups))
