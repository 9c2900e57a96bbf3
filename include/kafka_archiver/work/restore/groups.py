"""Put consumer groups where they were: behind the last restored record that each had read.

Only groups without live members are moved, and only where they have no offset yet, unless the caller says otherwise. So
a second attempt moves nothing that a consumer has moved on since. `model/restored_groups` and `model/offset_map` say
where each goes on.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, IntegrityError, TransientError
from kafka_archiver.model.offset_map import OffsetMap
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.restore import RestorePlan, SourcePartition
from kafka_archiver.model.restored_groups import GroupOffset, GroupReport, GroupsReport, Outcome, translate_group
from kafka_archiver.model.snapshots import GroupsSnapshot, TopicsSnapshot
from kafka_archiver.values.ranges import TopicPartition

log = logging.getLogger(__name__)
Stood = Mapping[str, Mapping[SourcePartition, int]]


class GroupsThen(NamedTuple):
    """Where groups stood. `taken_from`: a snapshot's fingerprint, or the id of a cluster."""

    taken_from: str
    stood: Stood


def snapshot_of_topics(ledger: Ledger, through: int) -> TopicsSnapshot | None:
    """Return the last snapshot of the topics in the plans up to a number; None: no plan has one."""
    plan = next((plan for plan in _back(ledger, through) if plan.topics_snapshot), None)
    return ledger.topics_snapshot(plan.topics_snapshot or "") if plan else None


def snapshot_of_groups(
    ledger: Ledger, through: int, patterns: Collection[str], as_of: datetime | None = None
) -> GroupsThen:
    """Return where the groups stood by the last snapshot in the plans up to a number.

    :param as_of: only snapshots that were taken until then.
    :raises ConfigError: no plan has a snapshot, or no group matches.
    :raises IntegrityError: the snapshot is gone.
    """
    for plan in _back(ledger, through):
        if plan.groups_snapshot and (as_of is None or plan.planned_at <= as_of):
            snapshot = ledger.groups_snapshot(plan.groups_snapshot)
            if snapshot is None:
                raise IntegrityError(
                    f"the snapshot of groups {plan.groups_snapshot}, which plan {plan.number} of archive "
                    f"{ledger.archive} names, is gone: restore it from a version or copy of the store"
                )
            return GroupsThen(plan.groups_snapshot, _matching(snapshot, plan, patterns))
    raise ConfigError(
        f"no plan of archive {ledger.archive} has a snapshot of consumer groups: `source.snapshot_groups` names those "
        "whose offsets later plans keep. If the source's brokers still run, ask them: --groups-from CONNECTION"
    )


def groups_of_cluster(
    ledger: Ledger, through: int, cluster_id: str, offsets: Mapping[str, Mapping[TopicPartition, int]]
) -> GroupsThen:
    """Return where groups stand in a source that still runs.

    :param offsets: as `Cluster.offsets_of_groups` returns them.
    """
    generations = _generations(next(_back(ledger, through)))
    return GroupsThen(
        cluster_id, {group: dict(_sources(places, generations)) for group, places in sorted(offsets.items())}
    )


def _back(ledger: Ledger, through: int) -> Iterator[Plan]:
    for number in range(through, 0, -1):
        if plan := ledger.planned(number):
            yield plan


def _generations(plan: Plan) -> dict[TopicPartition, int]:
    return {partition.name: partition.generation for partition in plan.partitions}


def _sources(
    places: Mapping[TopicPartition, int], generations: Mapping[TopicPartition, int]
) -> Iterator[tuple[SourcePartition, int]]:
    for name, offset in sorted(places.items()):
        generation = generations.get(name, 0)
        yield SourcePartition(topic=name.topic, partition=name.partition, generation=generation), offset


def _matching(snapshot: GroupsSnapshot, plan: Plan, patterns: Collection[str]) -> Stood:
    expressions = [expression_of(pattern) for pattern in patterns]
    generations = _generations(plan)
    chosen = [g for g in snapshot.groups if any(expression.fullmatch(g.group) for expression in expressions)]
    if not chosen:
        known = ", ".join(group.group for group in snapshot.groups[:10]) or "no group"
        raise ConfigError(
            f"no consumer group in the snapshot of plan {plan.number} matches {', '.join(patterns)}; it has {known}"
        )
    return {group.group: dict(_sources(group.by_partition, generations)) for group in chosen}


def expression_of(pattern: str) -> re.Pattern[str]:
    """Return a pattern for whole names of groups.

    :raises ConfigError: it is no regular expression.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"--groups {pattern!r}: expected a regular expression for whole names ({error})") from error


@dataclass(frozen=True)
class GroupMover:
    """Moves groups of a target.

    `replace`: also where they have other offsets. `dry_run`: only says what it would do.
    """

    cluster: Cluster
    plan: RestorePlan
    offsets: OffsetMap
    replace: bool = False
    dry_run: bool = False

    def move(self, stood: Stood) -> tuple[GroupReport, ...]:
        """Move each group. A group that cannot be moved does not keep the others from it."""
        return tuple(self._moved(group, translate_group(places, self.offsets)) for group, places in stood.items())

    def _moved(self, group: str, offsets: Sequence[GroupOffset]) -> GroupReport:
        outcome, reason = self._judge(group, offsets)
        if outcome == "moved" and not self.dry_run:
            stamp = f"kafka-archiver restore {self.plan.archive}/{self.plan.restore}"
            self.cluster.move_group(group, {offset.name: offset.offset for offset in offsets}, stamp)
            log.info("group %s goes on at the restored offsets of %d partitions", group, len(offsets))
        return GroupReport(group=group, outcome=outcome, reason=reason, offsets=tuple(offsets))

    def _judge(self, group: str, offsets: Sequence[GroupOffset]) -> tuple[Outcome, str]:
        if not offsets:
            return "unknown", "the restore has no record of the logs that it read"
        positions = self.cluster.positions(group, [offset.name for offset in offsets])
        if all((place := positions[offset.name]) and place.offset == offset.offset for offset in offsets):
            return "there", ""
        if members := self.cluster.members(group):
            return "live", f"it has live members ({', '.join(members[:3])}): stop them, and run it again"
        for offset in offsets:
            place = positions[offset.name]
            if place and place.offset != offset.offset and not self.replace:
                return "other", f"it has offset {place.offset} of {offset.name} already; --replace-groups moves it"
        return "moved", ""


def verified_map(ledger: Ledger, plan: RestorePlan) -> OffsetMap:
    """Return the offset map of a restore.

    :raises ConfigError: the restore is not verified: a group would go on at offsets that may not hold.
    """
    report, offsets = ledger.restore_report(plan.restore).document, ledger.restore_map(plan.restore).document
    is_verified = report and report.verified and report.plan_digest == plan.digest
    if not is_verified or offsets is None or offsets.plan_digest != plan.digest:
        raise ConfigError(
            f"restore {plan.restore} of archive {plan.archive} is not verified: groups are moved only then. Let its "
            "task `verify` succeed first"
        )
    return offsets


def translate_groups(
    ledger: Ledger,
    mover: GroupMover,
    groups_then: GroupsThen,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> GroupsReport:
    """Move the groups, and write what became of them beside the restore's other documents, unless it is a dry run.

    :raises TransientError: another process does the same at this moment, or the brokers do not answer.
    """
    before = ledger.restore_groups(mover.plan.restore)
    report = GroupsReport(
        archive=mover.plan.archive,
        restore=mover.plan.restore,
        plan_digest=mover.plan.digest,
        at=clock(),
        taken_from=groups_then.taken_from,
        groups=mover.move(groups_then.stood),
    )
    if not mover.dry_run and not ledger.replace_of_restore(report, before):
        raise TransientError("another process moves the groups of this restore at the same moment; try again")
    return report


def move_groups(
    ledger: Ledger,
    plan: RestorePlan,
    target: Mapping[str, str],
    patterns: Sequence[str],
    source: Mapping[str, str] | None = None,
    replace: bool = False,
    dry_run: bool = False,
) -> GroupsReport:
    """Put groups behind the last restored record that each had read.

    :param target: client properties. :param patterns: for whole names of groups.
    :param source: client properties of the source, if it still runs; None: the last snapshot in the archive's plans.
    :raises ConfigError: the restore is not verified, or nothing says where these groups stood.
    """
    offsets = verified_map(ledger, plan)
    if source:
        asked = Cluster(source)
        places = asked.offsets_of_groups(patterns, plan.selection.topics)
        stood = groups_of_cluster(ledger, plan.through, asked.cluster_id(), places)
    else:
        stood = snapshot_of_groups(ledger, plan.through, patterns)
    return translate_groups(ledger, GroupMover(Cluster(target), plan, offsets, replace, dry_run), stood)
