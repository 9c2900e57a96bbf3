"""The state of an archive's partitions at planning, as the brokers give it, with its time."""

import logging
import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.clocks import ClockReading, read_clocks
from kafka_archiver.context.line import Line, stamped_number
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.first_records import LogEnd
from kafka_archiver.kafka.groups import Position
from kafka_archiver.kafka.identity import is_earlier
from kafka_archiver.kafka.topics import is_unknown_topic
from kafka_archiver.messages.actions import Action, advise, command
from kafka_archiver.messages.advice import run_now
from kafka_archiver.messages.errors import PermanentError, PolicyError, TransientError
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.model.plan import PartitionPlan
from kafka_archiver.model.progress import Progress
from kafka_archiver.planning.changed_logs import find_changed_logs, find_shortened_logs
from kafka_archiver.planning.partition_state import PartitionState
from kafka_archiver.planning.time_index import find_hidden_logs
from kafka_archiver.values.intervals import from_ms, to_ms
from kafka_archiver.values.ranges import TopicPartition

log = logging.getLogger(__name__)
POLL_SECONDS = 0.5
# How often a planner looks again when another one was faster.
TRIES = 5


class OvertakenError(TransientError):
    """Another process has changed the ledger or the group during the survey."""


class Survey(NamedTuple):
    """All partitions, sorted. All records committed at `at` lie between the log starts and high watermarks."""

    states: list[PartitionState]
    at: ClockReading


def survey(context: Context, line: Line, expected: Progress) -> Survey:
    """Return the partitions as the brokers describe them.

    They are asked a second time if something seems to be lost: the first answer may be an old one.

    :param expected: the progress once everything that is planned is settled.
    :raises TransientError: as `look`, or only a broker that may lead no more says that something is lost.
    :raises PolicyError: the brokers do not show topics that were archived before.
    """
    result = _survey_if_complete(context, line, expected)
    if result is None:
        context.cluster.look_anew()
        result = survey_once(context, line, expected)
    known = expected.by_name()
    for state in result.states:
        if state.unsure and _lacks_records(state, known.get(state.name)):
            raise TransientError(
                f"{state.name} seems to have lost records, but {state.unsure}: nothing is called lost on the word of a "
                "broker that may lead no more. Check the brokers; the next attempt asks again"
            )
    refuse_hidden_topics(context, expected, result.states)
    if unsure := [state for state in result.states if state.unsure]:
        log.warning(
            "the end of %d logs is unsure, so this run closes no hour: %s. What is read now is archived; a later run "
            "closes the hours",
            len(unsure),
            unsure[0].unsure,
        )
    return result


def _survey_if_complete(context: Context, line: Line, expected: Progress) -> Survey | None:
    """Look once. None: a topic or records seem to be missing."""
    try:
        result = survey_once(context, line, expected)
    except PermanentError as error:
        if not is_unknown_topic(error):
            raise
        log.info("%s; asking again, later and anew", error)
        return None
    known = expected.by_name()
    lacking = [state.name for state in result.states if _lacks_records(state, known.get(state.name))]
    if lacking:
        log.info("%s seems to have lost records; asking again, later and anew", lacking[0])
    return None if lacking else result


def _lacks_records(state: PartitionState, known: PartitionProgress | None) -> bool:
    """Return True if the brokers do not have what the archive knows, or has not read yet."""
    if known is None or known.topic_id != state.topic_id:
        return known is not None
    return bool(state.doubt) or state.cut or known.reached < state.log_start or state.high < known.reached


def survey_once(context: Context, line: Line, expected: Progress) -> Survey:
    """Ask the brokers once.

    :param expected: the progress once the unfinished runs of the line are finished.
    :raises TransientError: a topic changed during the survey, or a broker that leads no more has answered.
    :raises PermanentError: the planner's clock and the store's differ by too much.
    """
    source, cluster = context.archive.source, context.cluster
    topics = cluster.topics(source.selection)
    ids = {t.name: t.id for t in topics}
    names = [name for topic in topics for name in topic.names]
    positions = cluster.positions(context.archive.group, names)
    # The order matters: starts, then the clock, then ends. So the log had everything in between at that moment.
    starts = cluster.log_starts(names)
    at = read_clocks(context)
    highs = cluster.high_watermarks(names)
    _refuse_older_epochs(expected, ids, highs)
    # No further than the high watermark: what came later may be of the epoch of another leader, elected since.
    stable = _stable_ends(context, {name: high.offset for name, high in highs.items()})
    ends = {name: min(end, highs[name].offset) for name, end in stable.items()}
    begins = _start_offsets(context, starts, ends)
    doubted = find_changed_logs(cluster, expected, ids, starts, highs)
    cut = find_shortened_logs(cluster, expected, ids, highs)
    appended = _appended_by(cluster, expected, starts, ends)
    # After all questions: a log that was made anew between them would pass for a cut one.
    if cluster.topics(source.selection) != topics:
        raise TransientError(
            "a topic was created, deleted or enlarged while its offsets were read; the next attempt sees all of it"
        )
    group = _GroupCheck(context, line, expected)
    states = [
        PartitionState(
            name=name,
            topic_id=ids[name.topic],
            committed=place.offset if (place := positions[name]) else None,
            group_in_place=group.is_in_place(name, place),
            log_start=starts[name],
            log_end=max(ends[name], starts[name]),
            high=max(highs[name].offset, starts[name]),
            unsure=highs[name].unsure,
            leader_epoch=highs[name].leader_epoch,
            begin=begins[name],
            tools=cluster.tools,
            doubt=doubted.get(name),
            cut=name in cut,
            appended_by=appended.get(name),
        )
        for name in names
    ]
    return Survey(states, at)


def _refuse_older_epochs(expected: Progress, ids: Mapping[str, str], highs: Mapping[TopicPartition, LogEnd]) -> None:
    for known in expected.partitions:
        end = highs.get(known.name)
        if end and ids[known.topic] == known.topic_id and is_earlier(end.leader_epoch, known.leader_epoch):
            raise TransientError(
                f"a broker answers as the leader of {known.name} in epoch {end.leader_epoch}, and epoch "
                f"{known.leader_epoch} was seen before: it is the leader no more. The next attempt asks again"
            )


def _appended_by(
    cluster: Cluster,
    expected: Progress,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, datetime]:
    """Return the brokers' time of the first record of each log whose beginning is gone, if the record has it."""
    reached = {p.name: p.reached for p in expected.partitions}
    asked = {name: start for name, start in starts.items() if reached.get(name, 0) < start < ends[name]}
    first = cluster.first_records(asked) if asked else {}
    return {name: from_ms(record.timestamp) for name, record in first.items() if record and record.appended}


class _GroupCheck:
    """Tells if the group stands where the archive left it, or at the start of a run that may not have moved it yet."""

    def __init__(self, context: Context, line: Line, expected: Progress) -> None:
        self._archive, self._last, self._tools = context.archive, line.last, context.cluster.tools
        self._expected = {p.name: p for p in expected.partitions}
        self._settled = {p.name: p for p in line.settled.partitions}
        self._waiting = unsettled_partition_plans(line, forward=True)

    def is_in_place(self, name: TopicPartition, place: Position | None) -> bool:
        """Return True if that is so for one partition.

        :raises OvertakenError: a run that is not in the line put the group there.
        """
        if place and (number := stamped_number(place.stamp, self._archive.archive)):
            if number > self._last:
                raise OvertakenError(*self._unknown(number, name, place))
            return True
        expected, settled = self._expected.get(name), self._settled.get(name)
        waiting = [p for p in self._waiting.get(name, []) if expected and p.generation == expected.generation]
        if place:
            # Not moved yet since these plans were made: it stands at a plan's start, or where a policy found it.
            return any(place.offset in (p.start, p.stood) for p in waiting)
        # No run has put it anywhere yet.
        begun = settled and expected and settled.next is not None and settled.generation == expected.generation
        return bool(waiting) and not begun

    def _unknown(self, number: int, name: TopicPartition, place: Position) -> tuple[str, str, tuple[Action, ...]]:
        archive, group = self._archive.archive, self._archive.group
        return (
            f"run {number} of archive {archive} has put group {group} to {place.offset} in {name}, and the ledger's "
            f"line ended at {self._last} when it was read. Unless that run has just been made, the ledger is older "
            f"than the group: was it restored from a backup, or `store.url` changed?",
            *advise(
                "Then ",
                command(self._tools.delete_group(group)),
                " and ",
                run_now(archive),
                " archive again what the ledger does not know; the audit names the objects that no document explains "
                "any more",
            ),
        )


def unsettled_partition_plans(line: Line, forward: bool = False) -> dict[TopicPartition, list[PartitionPlan]]:
    """Return the plans of unsettled runs for each partition, in the order of the line.

    :param forward: only those that move the group.
    """
    plans: dict[TopicPartition, list[PartitionPlan]] = {}
    for partition in (p for w in line.waiting if w.plan.moves_group or not forward for p in w.plan.partitions):
        plans.setdefault(partition.name, []).append(partition)
    return plans


def _stable_ends(context: Context, highs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the ends up to which records may be read. Waits up to `source.settle` seconds for open transactions."""
    source = context.archive.source
    if source.isolation == "read_uncommitted":
        return dict(highs)
    until = time.monotonic() + source.settle
    while True:
        ends = context.cluster.log_ends(highs, source.isolation)
        behind = [name for name, end in ends.items() if end < highs[name]]
        if not behind:
            return ends
        if (left := until - time.monotonic()) <= 0:
            log.info(
                "open transactions hold back %d partitions, %s among them, for more than %g s (source.settle): a later "
                "run archives the held-back offsets, and closes the hours as of now",
                len(behind),
                behind[0],
                source.settle,
            )
            return ends
        time.sleep(min(left, POLL_SECONDS))


def _start_offsets(
    context: Context, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int]:
    """Return the offset to which `source.start` points in each log."""
    source, cluster = context.archive.source, context.cluster
    if source.old_group:
        left = cluster.committed(source.old_group, starts)
        # Without an offset: from the first record, so that nothing is lost.
        return {name: start if (offset := left[name]) is None else offset for name, start in starts.items()}
    if not isinstance(source.start, datetime):
        return starts if source.start == "earliest" else ends
    at = cluster.offsets_at(starts, to_ms(source.start), source.isolation)
    unseen = find_hidden_logs(cluster, at, to_ms(source.start))
    return {name: starts[name] if name in unseen else ends[name] if at[name] is None else at[name] for name in starts}  # type: ignore[misc]


def refuse_hidden_topics(context: Context, expected: Progress, states: Sequence[PartitionState]) -> None:
    """Refuse to plan if the brokers no longer show an archived topic of the pattern: hours would look complete."""
    pattern = context.archive.source.pattern
    visible = {state.name.topic for state in states}
    gone = sorted({p.topic for p in expected.partitions if p.topic not in visible})
    if pattern and (missing := [topic for topic in gone if re.fullmatch(pattern, topic)]):
        raise PolicyError(
            f"topics {', '.join(missing)} match source.pattern and were archived before, but the brokers do not show "
            "them any more: they were deleted, or the credentials may not describe them. Grant Describe, or exclude "
            "them in source.pattern",
            kinds=("topic gone",),
        )
