"""The consumer groups of a restore: where each stood in the source, and where it goes on in the target. Pure."""

from collections.abc import Mapping
from typing import Literal

from kafka_archiver.model.offset_map import LogMap, OffsetMap
from kafka_archiver.model.restore import SourcePartition
from kafka_archiver.values.documents import ArchiveDocument, Count, PartitionValue, UtcTime, Value
from kafka_archiver.values.ranges import TopicPartition

# moved: the offsets are committed. there: they were committed already. live: the group has members. other: it has other
# offsets in the target. unknown: nothing of what it read was restored.
Outcome = Literal["moved", "there", "live", "other", "unknown"]
# What a person has to do about.
LEFT: frozenset[Outcome] = frozenset({"live", "other"})


class GroupOffset(PartitionValue):
    """Where a group goes on in one partition of the target.

    `sources`: where it stood in each log whose records are there: topic, partition, generation, offset. `note`: what a
    person should know; empty: it goes on exactly behind the last record that it had read.
    """

    offset: Count
    sources: tuple[tuple[str, Count, Count, Count], ...]
    note: str = ""


class GroupReport(Value):
    """A group. `reason`: why its offsets are not committed."""

    group: str
    outcome: Outcome
    reason: str = ""
    offsets: tuple[GroupOffset, ...] = ()


class GroupsReport(ArchiveDocument):
    """The outcome for each group. `taken_from`: a snapshot's fingerprint, or the id of the cluster that was asked."""

    document: Literal["kafka-archiver/restore-groups"] = "kafka-archiver/restore-groups"
    restore: str
    plan_digest: str
    at: UtcTime
    taken_from: str
    groups: tuple[GroupReport, ...]


def translate_group(stood: Mapping[SourcePartition, int], offsets: OffsetMap) -> tuple[GroupOffset, ...]:
    """Return where a group goes on in the target.

    :param stood: its committed offsets in the source.
    """
    by_target: dict[TopicPartition, list[LogMap]] = {}
    for log in offsets.logs:
        if log.source in stood:
            by_target.setdefault(log.target, []).append(log)
    return tuple(
        GroupOffset(
            topic=target.topic,
            partition=target.partition,
            offset=offset,
            sources=tuple((log.topic, log.partition, log.generation, stood[log.source]) for log in by_target[target]),
            note="; ".join(note for log in by_target[target] if (note := _note(log, stood[log.source]))),
        )
        for target, offset in sorted(offsets.translate(stood).items())
    )


def _note(log: LogMap, offset: int) -> str:
    if log.first is None or log.behind is None:
        return f"nothing of {log.source} was restored here"
    if offset < log.first:
        return f"{log.source}: it stood at {offset}, and the first restored record is {log.first}"
    if offset > log.behind:
        return f"{log.source}: it stood at {offset}, behind the last restored record {log.behind - 1}"
    return ""
