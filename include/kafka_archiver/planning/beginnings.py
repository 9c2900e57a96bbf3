"""The start of each partition's next range. Pure.

In a strange state, the archive's policies decide.
"""

from collections.abc import Sequence

from kafka_archiver.config import Archive
from kafka_archiver.messages.actions import Advice
from kafka_archiver.messages.advice import choose_all
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.planning.partition_state import Beginning, Decision, Known, PartitionState
from kafka_archiver.planning.policy_decisions import (
    begin_generation,
    lost_offsets,
    missing_group,
    moved_group,
    recreated_message,
    truncated_message,
)
from kafka_archiver.values.ranges import Range, TopicPartition, subtract

_NOTHING: tuple[Decision, ...] = ()
# Troubles that a run's error names; `airflow archive doctor` has all.
_MOST_NAMED = 10


def beginnings(archive: Archive, states: list[PartitionState], known: Known) -> dict[TopicPartition, Beginning]:
    """Return the start of each partition of a scheduled run.

    :param known: what settled and planned runs cover already, by partition.
    :raises PolicyError: a policy says `fail`; the error has everything that would stop this run.
    """
    if errors := policy_errors(archive, states, known):
        raise _joined_error(archive, errors)
    outcomes = beginnings_or_errors(archive, states, known)
    return {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Beginning)}


def advice_for_errors(archive: Archive, errors: Sequence[PolicyError]) -> Advice:
    """Return the command for a run that several policies stop.

    :param errors: those of `each`. Errors of one policy have the same choice.
    """
    return choose_all(archive.archive, {error.policy: error.choice for error in errors})


def _joined_error(archive: Archive, errors: Sequence[PolicyError]) -> PolicyError:
    first, more = errors[0], len(errors) - _MOST_NAMED
    if len(errors) == 1:
        return first
    descriptions = " ".join(error.message for error in errors[:_MOST_NAMED]) + (
        f" And {more} more." if more > 0 else ""
    )
    if len({error.policy for error in errors}) > 1:
        text, actions = advice_for_errors(archive, errors)
        kinds = dict.fromkeys(kind for error in errors for kind in error.kinds)
        return PolicyError(descriptions, advice=text, actions=actions, kinds=kinds)
    # The advice about lost offsets names those of one partition.
    how = advice_for_errors(archive, errors) if first.policy == "lost_offsets" else Advice(first.advice, first.actions)
    return PolicyError(descriptions, first.policy, first.where, first.choice, *how)


def policy_errors(archive: Archive, states: list[PartitionState], known: Known) -> list[PolicyError]:
    """Everything at which a policy says `fail`. A recreated topic counts once, not once for each partition."""
    errors = [
        outcome for outcome in beginnings_or_errors(archive, states, known).values() if isinstance(outcome, PolicyError)
    ]
    return list({str(error): error for error in reversed(errors)}.values())[::-1]


def beginnings_or_errors(
    archive: Archive, states: list[PartitionState], known: Known
) -> dict[TopicPartition, Beginning | PolicyError]:
    """Return the start of each partition, or the error of the policy that stops it."""
    outcomes: dict[TopicPartition, Beginning | PolicyError] = {}
    starts_now = is_new(states, known)
    for state in states:
        try:
            outcomes[state.name] = _beginning(archive, state, known, starts_now)
        except PolicyError as error:
            outcomes[state.name] = error
    return outcomes


def is_new(states: list[PartitionState], known: Known) -> bool:
    """Return True if the archive starts now: neither the ledger nor the group knows of a scheduled run."""
    return all(p.next is None for p in known.values()) and all(s.committed is None for s in states)


def generation_of(state: PartitionState, known: Known) -> int:
    """Return the generation of a partition that is new, or whose topic was recreated: the same for the whole topic."""
    mine = [p for p in known.values() if p.topic == state.name.topic]
    same = [p.generation for p in mine if p.topic_id == state.topic_id]
    return min(same) if same else max((p.generation + 1 for p in mine), default=0)


def _beginning(archive: Archive, state: PartitionState, known: Known, starts_now: bool) -> Beginning:
    before = known.get(state.name)
    if before and before.topic_id != state.topic_id:
        if any((p.topic, p.topic_id) == (state.name.topic, state.topic_id) for p in known.values()):
            # The topic was made again earlier, with fewer partitions. This one was added since.
            return Beginning(state.log_start, generation_of(state, known), anew=True)
        return begin_generation(archive, state, generation_of(state, known), recreated_message(state, before))
    if before and state.doubt:
        return begin_generation(archive, state, before.generation + 1, state.doubt)
    remembered = before.next if before else None
    generation = before.generation if before else generation_of(state, known)
    start, decided = state.committed, _NOTHING
    if start is None and remembered is not None:
        start, decided = (remembered, _NOTHING) if state.group_in_place else missing_group(archive, state, remembered)
    elif start is None:
        # A partition that was added later starts at its first record, whatever source.start says.
        start = state.begin if starts_now else state.log_start
    elif remembered is not None and start != remembered:
        if state.group_in_place:
            # The group was not moved by hand: its commit has not arrived yet, or an older commit arrived late.
            start = remembered
        else:
            if archive.policies.moved_group == "new_generation" and start <= state.high:
                generation += 1
            start, decided = moved_group(archive, state, start, remembered)
    if start > state.high:
        return begin_generation(archive, state, generation + 1, truncated_message(state, start))
    if gone := _count_gone(state, before, start, generation):
        decided += lost_offsets(archive, state, start, gone)
    return Beginning(start, generation, decided=decided)


def _count_gone(state: PartitionState, before: PartitionProgress | None, start: int, generation: int) -> int:
    """Return the number of unarchived offsets between the archive's position and the log's start."""
    if start >= state.log_start:
        return 0
    covered = taken_ranges(before, generation, start)
    return sum(r.size for r in subtract(Range(start, state.log_start), covered))


def taken_ranges(before: PartitionProgress | None, generation: int, start: int, anew: bool = False) -> list[Range]:
    """Return the offsets that must not be archived again, including those of earlier generations of the same log."""
    if before is None or anew:
        return []
    if before.generation == generation:
        return [Range(*r) for r in before.covered + before.earlier]
    return list(before.left_behind(start))
