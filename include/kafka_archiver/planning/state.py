"""A partition as a planner finds it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafka_archiver.progress import PartitionProgress
from kafka_archiver.ranges import TopicPartition

# What settled and planned runs have of each partition.
Known = Mapping[TopicPartition, PartitionProgress]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition as the brokers describe it at planning.

    :param committed: where the group stands; None when it has no offset for this partition.
    :param ours: the group stands where the archive has left it, be it that an older commit came late, or that none of
        its runs has put the group anywhere yet.
    :param log_end: the last stable offset for read_committed, else the high watermark.
    :param high: the high watermark; what lies between it and `log_end` is of open transactions.
    :param leader_epoch: of the log's end; None where the brokers give none.
    :param begin: where `source.start` points, for an archive that starts now.
    :param doubt: why this cannot be the log that was archived, if anything says so.
    :param cut: it ended before what an earlier planner had seen, and no run has.
    """

    name: TopicPartition
    topic_id: str
    committed: int | None
    ours: bool
    log_start: int
    log_end: int
    high: int
    leader_epoch: int | None
    begin: int
    doubt: str | None = None
    cut: bool = False


class Beginning(NamedTuple):
    """Where a partition's range starts: the offset (below the log's start with record_loss), and in which generation.

    `anew`: the offsets mean other records than those archived before. `decided`: by which policies, and why.
    """

    start: int
    generation: int
    anew: bool = False
    decided: tuple[str, ...] = ()
