"""The offsets that logs still have of a run. Asked before the run is read, and after."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.first_records import LogEnd
from kafka_archiver.kafka.identity import changed, cuts, is_known
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.values.ranges import Range, TopicPartition, subtract


@dataclass(frozen=True, slots=True)
class Logs:
    """The logs of a run. `ranges`: their offsets; for a log that is not the planned one, empty, behind the plan's end.

    `ids`: the topics' ids, None for a missing topic. `doubts`: why a log is not the planned one, or was cut.
    """

    ranges: Mapping[TopicPartition, Range]
    ids: Mapping[str, str | None]
    doubts: Mapping[TopicPartition, str]

    def is_as(self, earlier: "Logs") -> bool:
        """Return True if these are the same logs as earlier. They may have grown, and retention may have removed
        records.
        """
        return (self.ids, self.doubts) == (earlier.ids, earlier.doubts)

    def regained(self, earlier: "Logs", plan: Plan) -> list[TopicPartition]:
        """Return the partitions whose logs have offsets of the run that they lacked earlier.

        The next leader may begin at a lower offset than the one before, and so may a broker that is cut off. What was
        not read because it seemed to be gone is not absent.
        """
        return [
            partition.name
            for partition in plan.partitions
            for offsets in partition.offset_ranges
            for gone in earlier.lacks(partition.name, offsets)
            if self.lacks(partition.name, gone) != (gone,)
        ]

    def lacks(self, name: TopicPartition, offsets: Range) -> tuple[Range, ...]:
        return subtract(offsets, (self.ranges[name],))


def read_logs(cluster: Cluster, plan: Plan, progress: Progress | None, replayed: bool) -> Logs:
    """Ask the brokers; a second time, if a log seems to have lost records: the first answer may be an old one.

    :param progress: of the runs before; its witnesses identify the logs.
    :param replayed: the run has a manifest, whose checksums are a better check: only the topics' ids are compared.
    :raises TransientError: a log gave no answer in time, or only a broker that may lead no more says that it has lost
        records.
    """
    logs, _ = _ask_once(cluster, plan, progress, replayed)
    if not _lacking_partitions(logs, plan):
        return logs
    cluster.look_anew()
    logs, highs = _ask_once(cluster, plan, progress, replayed)
    for name in _lacking_partitions(logs, plan):
        if name in highs and highs[name].unsure:
            raise TransientError(
                f"{name} seems to have lost records of run {plan.run}, but {highs[name].unsure}: nothing is called "
                "lost on the word of a broker that may lead no more. Check the brokers; the next attempt asks again"
            )
    return logs


def _lacking_partitions(logs: Logs, plan: Plan) -> list[TopicPartition]:
    """Return the partitions whose logs do not have all that the run reads."""
    ranges = {p.name: p.offset_ranges for p in plan.partitions}
    return [n for n in logs.ranges if any(logs.lacks(n, each) for each in ranges[n])]


def _ask_once(
    cluster: Cluster, plan: Plan, progress: Progress | None, replayed: bool
) -> tuple[Logs, Mapping[TopicPartition, LogEnd]]:
    ids = cluster.topic_ids({p.topic for p in plan.partitions})
    mine = {p.name: p for p in plan.partitions if ids[p.topic] == p.topic_id}
    starts, highs = cluster.log_starts(mine), cluster.high_watermarks(mine)
    asked = {} if replayed else {name: p for name, p in mine.items() if p.ranges}
    cut = cuts(cluster, {name: LogEnd(p.end, p.leader_epoch) for name, p in asked.items()}, highs)
    progresses = progress.by_name() if progress else {}
    witnesses = [
        known
        for name, p in asked.items()
        if name not in cut and not is_known(p.topic_id, p.leader_epoch, highs[name].leader_epoch)
        if (known := progresses.get(name)) and not p.anew
        if (known.generation, known.topic_id) == (p.generation, p.topic_id)
    ]
    other = changed(cluster, witnesses, starts)
    ranges = {p.name: Range(max(p.end, p.log_end), max(p.end, p.log_end)) for p in plan.partitions}
    ranges |= {n: Range(starts[n], cut.get(n, highs[n].offset)) for n in mine if n not in other}
    doubts = other | {name: _cut_message(plan.run, mine[name], offset) for name, offset in cut.items()}
    return Logs(ranges, ids, doubts), highs


def _cut_message(run: str, planned: PartitionPlan, offset: int) -> str:
    return (
        f"the log of {planned.name} reached {planned.end} or more under leader epoch {planned.leader_epoch} when run "
        f"{run} was planned, and is the same one only up to {offset} now: it was truncated, as by an unclean leader "
        "election, and the records behind that offset were written later."
    )
