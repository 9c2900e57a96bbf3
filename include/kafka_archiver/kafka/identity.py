"""What tells whether a log is still the one that it was: its leaders' epochs, and one record.

A topic that was made again has another id, where the brokers give ids. A log that lost its end in an unclean election
and grew again has not: there the brokers say where the leader's epoch ended under which it was seen (KIP-320).
Where they give no ids, or no epochs, the last record that was archived is read again, and compared.
"""

from collections.abc import Collection, Iterable, Mapping

from kafka_archiver.errors import TransientError
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.first import FirstRecord, LogEnd
from kafka_archiver.progress import PartitionProgress
from kafka_archiver.ranges import TopicPartition

# The id of a topic at brokers that give none: a UUID of zeros.
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def is_known(topic_id: str, was: int | None, now: int | None) -> bool:
    """Whether id and epochs say enough, so that no record has to be compared. `was`, `now`: the leader's epochs."""
    return topic_id != NO_ID and was is not None and now is not None


def cuts(
    cluster: Cluster, ends: Mapping[TopicPartition, LogEnd], highs: Mapping[TopicPartition, LogEnd]
) -> dict[TopicPartition, int]:
    """Of logs that do not reach as far any more, under the leader of then: up to where they are what they were.

    :param ends: how far each log reached, and the leader's epoch of then; without one it is not asked about.
    :param highs: where it ends now.
    :raises TransientError: a log gave no answer in time.
    """
    # As long as the leader is the same, nobody cut the log.
    asked = {name: end for name, end in ends.items() if _is_later(highs[name].leader_epoch, end.leader_epoch)}
    answers = cluster.truncated(asked)
    _require_all(asked, answers)
    return {name: cut for name in asked if (cut := answers[name]) is not None}


def _is_later(now: int | None, was: int | None) -> bool:
    return was is not None and now is not None and was < now


def changed(
    cluster: Cluster, known: Iterable[PartitionProgress], starts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, str]:
    """Logs in which the last archived record is another one, or not there to be compared where nothing else tells.

    What of it. A log of which no record was archived has none to compare.

    :raises TransientError: a log gave no answer in time.
    """
    mine = {p.name: p for p in known}
    asked = {name: max(p.witness.offset, starts[name]) for name, p in mine.items() if p.witness}
    found = cluster.first_records(asked)
    _require_all(asked, found)
    said = {name: _doubt(mine[name], found[name]) for name in asked}
    return {name: doubt for name, doubt in said.items() if doubt}


def _require_all(asked: Collection[TopicPartition], found: Collection[TopicPartition]) -> None:
    if silent := sorted(set(asked) - set(found)):
        raise TransientError(f"{silent[0]} gave no answer in time, to see whether it is the log that was archived")


def _doubt(known: PartitionProgress, found: FirstRecord | None) -> str | None:
    """What the record that stands where the last archived one stood says of the log."""
    witness = known.witness
    assert witness is not None
    if found and found.offset == witness.offset:
        if (found.timestamp, found.value) == (witness.timestamp, witness.value):
            return None
        return (
            f"the log of {known.name} is not the one that was archived: its record at offset {witness.offset} is "
            "another one. An unclean leader election cut the log, or the topic was made again, and it has grown since."
        )
    # Retention or compaction has removed what could be compared. Where the topic has an id, it is the same one.
    if known.topic_id != NO_ID:
        return None
    return (
        f"nobody can tell whether the log of {known.name} is the one that was archived: these brokers give topics no "
        f"ids, and what was archived last (offset {witness.offset}) is not there any more."
    )
