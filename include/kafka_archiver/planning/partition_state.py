"""A partition's state at planning. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.values.ranges import TopicPartition

# What settled and planned runs cover of each partition.
Known = Mapping[TopicPartition, PartitionProgress]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition as the brokers describe it at planning.

    :param committed: the group's offset; None when the group has none for this partition.
    :param group_in_place: the group stands where the archive has left it: also if an older commit arrived late, or no
        run has moved the group yet.
    :param log_end: the last stable offset for read_committed, else the high watermark.
    :param high: the high watermark; the offsets from `log_end` to it belong to open transactions.
    :param leader_epoch: of the log's end; None where the brokers give none.
    :param begin: where `source.start` points, for an archive that starts now.
    :param doubt: why this cannot be the archived log; None if nothing says so.
    :param cut: the log lost offsets that an earlier planner saw and that no run has.
    :param appended_by: the brokers' time of the log's first record, if it has one and something before it is gone.
    :param unsure: why `high` may not be the log's end: a broker said so that may lead no more. Empty if it is.
    :param tools: the commands for its brokers, for messages.
    """

    name: TopicPartition
    topic_id: str
    committed: int | None
    group_in_place: bool
    log_start: int
    log_end: int
    high: int
    leader_epoch: int | None
    begin: int
    tools: KafkaTools
    doubt: str | None = None
    cut: bool = False
    unsure: str = ""
    appended_by: datetime | None = None


class Decision(NamedTuple):
    """A policy's decision. `observed`: the state of the brokers that it decided about."""

    policy: str
    choice: str
    observed: str

    def __str__(self) -> str:
        """Return the decision as plans have it."""
        return ": ".join(self)


class Beginning(NamedTuple):
    """The start of a partition's range: the offset (below the log's start with record_loss) and the generation.

    `anew`: the offsets mean other records than those archived before. `decided`: the policies that decided, and
    why.
    """

    start: int
    generation: int
    anew: bool = False
    decided: tuple[Decision, ...] = ()
