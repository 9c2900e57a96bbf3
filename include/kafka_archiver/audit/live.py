"""The ledger against the brokers, as they are now."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kafka_archiver.advice import choose
from kafka_archiver.audit.report import Finding, Severity, error, warning
from kafka_archiver.config import Archive
from kafka_archiver.proof import PartitionProgress, Progress
from kafka_archiver.ranges import Range, TopicPartition

# Of the log that the brokers keep, so little behind the archive's position means that retention is about to pass it.
NEAR = 0.1


class Seen(NamedTuple):
    """A partition that the archive knows, as the brokers describe it. `topic_id`: None when the topic is gone."""

    name: TopicPartition
    topic_id: str | None
    log_start: int
    log_end: int
    committed: int | None


def check_live(
    archive: Archive, progress: Progress, seen: Iterable[Seen], pending: Mapping[TopicPartition, set[int]]
) -> Iterator[Finding]:
    """What the next run would stumble over, and what it is about to lose.

    :param pending: where the group may stand while runs are not finished.
    """
    for state in seen:
        known = progress.partition(state.name)
        if known is None or known.next is None:
            continue
        if state.topic_id != known.topic_id:
            # A partition that the new topic has no more tells nothing that the others do not.
            begun = any(p.topic_id == state.topic_id for p in progress.partitions if p.topic == known.topic)
            found = _another_topic(archive, state, known)
            yield found.model_copy(update={"severity": "warning"}) if begun else found
            continue
        if known.next > state.log_end:
            yield error(
                "beyond-log-end",
                f"{state.name} {Range(state.log_end, known.next)}",
                f"a log that ends at {state.log_end}",
                f"one that reaches {known.next}, up to where it is archived",
                "The topic was truncated, or these are other brokers. Find out which; to archive the log anew: "
                f"{choose(archive.archive, 'recreated_topic', 'new_generation')}",
            )
        if state.committed not in {known.next, *pending.get(state.name, ())}:
            yield _group(archive, state, known.next)
        yield from _retention(archive, state, known.next)


def _by(choice: str) -> Severity:
    """What the archive's policy settles by itself is no error."""
    return "error" if choice == "fail" else "warning"


def _another_topic(archive: Archive, state: Seen, known: PartitionProgress) -> Finding:
    if state.topic_id is None:
        return warning(
            "topic-gone",
            str(state.name),
            f"no topic {state.name.topic}",
            f"{known.topic_id}, archived up to {known.next}",
            "What is archived stays. If it was deleted for good, take it out of the archive's YAML",
        )
    return error(
        "topic-recreated",
        str(state.name),
        f"a topic with id {state.topic_id}",
        f"{known.topic_id}, archived up to {known.next}",
        "It was deleted and made again. To archive it as a new generation: "
        f"{choose(archive.archive, 'recreated_topic', 'new_generation')}",
    ).model_copy(update={"severity": _by(archive.policies.recreated_topic)})


def _group(archive: Archive, state: Seen, position: int) -> Finding:
    missing = state.committed is None
    policy, choice = ("missing_group", "resume_from_ledger") if missing else ("moved_group", "follow_ledger")
    return error(
        "group-missing" if missing else "group-moved",
        str(state.name),
        f"group {archive.group} {'without an offset' if missing else f'at {state.committed}'}",
        f"{position}, up to where it is archived",
        f"To go on where the ledger ends: {choose(archive.archive, policy, choice)}",
    ).model_copy(update={"severity": _by(getattr(archive.policies, policy))})


def _retention(archive: Archive, state: Seen, position: int) -> Iterator[Finding]:
    waiting = Range(max(position, state.log_start), state.log_end)
    if position < state.log_start:
        yield error(
            "retention-passed",
            f"{state.name} {Range(position, state.log_start)}",
            f"a log that starts at {state.log_start}",
            f"offsets from {position}, which are not archived yet",
            f"They are gone. To go on and have them shown as lost for ever: "
            f"{choose(archive.archive, 'lost_offsets', 'record_loss')}",
        ).model_copy(update={"severity": _by(archive.policies.lost_offsets)})
    elif state.log_start and waiting.size and position - state.log_start < NEAR * (state.log_end - state.log_start):
        yield warning(
            "retention-near",
            f"{state.name} {waiting}",
            f"{waiting.size} offsets that are not archived, in a log that retention has cut to "
            f"{Range(state.log_start, state.log_end)}",
            f"the archive further ahead of the log's start than {position - state.log_start} offsets",
            f"Run it now (`airflow dags trigger archive_{archive.archive}`), or keep the records longer",
        )
