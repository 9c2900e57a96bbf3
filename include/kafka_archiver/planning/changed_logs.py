"""Checks at planning that a log is still the one that the archive knows: cut logs, and logs whose last record differs.

A topic that was made again has another id: `planning/beginnings` sees it, `planning/policy_decisions` refuses the run.
"""

from collections.abc import Mapping

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.first_records import LogEnd
from kafka_archiver.kafka.identity import changed, cuts, is_known
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.model.progress import Progress
from kafka_archiver.values.ranges import TopicPartition


def find_changed_logs(
    cluster: Cluster,
    expected: Progress,
    ids: Mapping[str, str],
    starts: Mapping[TopicPartition, int],
    highs: Mapping[TopicPartition, LogEnd],
) -> dict[TopicPartition, str]:
    """Return the logs that cannot be the archived ones, each with the reason.

    :raises TransientError: a log gave no answer in time.
    """
    same = [p for p in expected.partitions if p.name in starts and ids[p.topic] == p.topic_id and p.reached]
    # If the scheduled runs' own position is past the log's end, the policies handle it.
    ended = {
        p.name: _ended_message(p, highs[p.name].offset)
        for p in same
        if (p.next or 0) <= highs[p.name].offset < p.reached
    }
    known = {p.name: p for p in same if p.reached <= highs[p.name].offset}
    cut = cuts(cluster, {name: LogEnd(p.reached, p.leader_epoch) for name, p in known.items()}, highs)
    reasons = ended | {name: _cut_message(known[name]) for name in cut}
    asked = [
        p
        for name, p in known.items()
        if name not in reasons and not is_known(p.topic_id, p.leader_epoch, highs[name].leader_epoch)
    ]
    return reasons | changed(cluster, asked, starts)


def find_shortened_logs(
    cluster: Cluster, expected: Progress, ids: Mapping[str, str], highs: Mapping[TopicPartition, LogEnd]
) -> set[TopicPartition]:
    """Return logs that lost offsets which an earlier planner saw and no run has.

    :raises TransientError: a log gave no answer in time.
    """
    known = {(*p.name, p.generation): p for p in expected.partitions if ids.get(p.topic) == p.topic_id}
    ends: dict[TopicPartition, LogEnd] = {}
    # Sorted, so that the highest watermark of each log wins.
    for high in sorted(high for mark in expected.marks for high in mark.high):
        mine = known.get(high[:3])
        if mine and mine.name in highs and high.offset > mine.reached:
            ends[mine.name] = LogEnd(high.offset, mine.leader_epoch)
    return {name for name, end in ends.items() if highs[name].offset < end.offset} | set(cuts(cluster, ends, highs))


def _ended_message(known: PartitionProgress, end: int) -> str:
    return (
        f"the log of {known.name} is not the one that was archived: it ends at {end}, and it was archived up to "
        f"{known.reached}. It was cut: the topic was truncated, or an unclean leader election lost records."
    )


def _cut_message(known: PartitionProgress) -> str:
    return (
        f"the log of {known.name} is not the one that was archived: it was archived up to {known.reached} under leader "
        f"epoch {known.leader_epoch}, and the records at these offsets now were written later. An unclean leader "
        "election cut the log, and it has grown since."
    )
