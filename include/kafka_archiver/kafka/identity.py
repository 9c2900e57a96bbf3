"""Checks that a log is still the log that was archived: by topic id, leader epochs, or one record.

A recreated topic has another id, if the brokers give ids. A log that lost its end in an unclean leader election and
grew again keeps its id: there the brokers tell at which offset an earlier leader epoch ended (KIP-320).
If the brokers give no ids or no epochs, the last archived record is read again and compared.
"""

from collections.abc import Collection, Iterable, Mapping

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.first_records import FirstRecord, LogEnd
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.values.ranges import TopicPartition

# The topic id from brokers without topic ids: a UUID of zeros.
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def is_known(topic_id: str, known_epoch: int | None, present_epoch: int | None) -> bool:
    """Return True if topic id and leader epochs are enough, so that no record has to be compared."""
    return topic_id != NO_ID and known_epoch is not None and present_epoch is not None


def cuts(
    cluster: Cluster, ends: Mapping[TopicPartition, LogEnd], highs: Mapping[TopicPartition, LogEnd]
) -> dict[TopicPartition, int]:
    """The logs that were truncated below an earlier end, with the offset up to which they are unchanged.

    :param ends: the earlier end of each log with its leader epoch; logs without an epoch are not checked.
    :param highs: the current end of each log.
    :raises TransientError: a log gave no answer in time.
    """
    # The same leader epoch means that the log was not truncated.
    asked = {name: end for name, end in ends.items() if is_earlier(end.leader_epoch, highs[name].leader_epoch)}
    answers = cluster.truncated(asked)
    _require_all(asked, answers)
    return {name: cut for name in asked if (cut := answers[name]) is not None}


def is_earlier(epoch: int | None, other: int | None) -> bool:
    """Return True if both leader epochs are known, and the first is the earlier one."""
    return epoch is not None and other is not None and epoch < other


def changed(
    cluster: Cluster, known: Iterable[PartitionProgress], starts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, str]:
    """The logs that may not be the archived ones, with a description. Compares the last archived record.

    The record differs, or it is gone and the topic has no id. A log without an archived record is not checked.

    :raises TransientError: a log gave no answer in time.
    """
    mine = {p.name: p for p in known}
    asked = {name: max(p.witness.offset, starts[name]) for name, p in mine.items() if p.witness}
    records = cluster.first_records(asked)
    _require_all(asked, records)
    doubts = {name: _doubt(mine[name], records[name]) for name in asked}
    return {name: doubt for name, doubt in doubts.items() if doubt}


def _require_all(asked: Collection[TopicPartition], records: Collection[TopicPartition]) -> None:
    if silent := sorted(set(asked) - set(records)):
        raise TransientError(f"no answer from {silent[0]} in time, to check that it is still the log that was archived")


def _doubt(known: PartitionProgress, record: FirstRecord | None) -> str | None:
    """Return why the log may not be the archived one, by the record at the offset of the last archived record."""
    witness = known.witness
    assert witness is not None
    if record and record.offset == witness.offset:
        if (record.timestamp, record.value) == (witness.timestamp, witness.value):
            return None
        return (
            f"the log of {known.name} is not the one that was archived: the record at offset {witness.offset} differs. "
            "An unclean leader election truncated the log, or the topic was recreated, and the log has grown since."
        )
    # Retention or compaction has removed the record. If the topic has an id, the id has been compared.
    if known.topic_id != NO_ID:
        return None
    return (
        f"it is unknown whether the log of {known.name} is the one that was archived: these brokers give topics no "
        f"ids, and the last archived record (offset {witness.offset}) is not in Kafka any more."
    )
