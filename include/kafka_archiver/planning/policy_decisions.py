"""The decision of each policy about a strange state of the brokers. Pure.

The message of each `fail` says what was found, what it means, and the exact command for each choice.
"""

from typing import assert_never

from kafka_archiver.config import Archive
from kafka_archiver.messages.actions import Action, Advice, advise, command
from kafka_archiver.messages.advice import choose
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.planning.partition_state import Beginning, Decision, PartitionState

_ON = "To go on where the ledger ends: "


def recreated_message(state: PartitionState, before: PartitionProgress) -> str:
    """Return the message about a topic with another id."""
    return (
        f"topic {state.name.topic} was deleted and made again: the ledger knows it as {before.topic_id}, the brokers "
        f"as {state.topic_id}. Its offsets mean other records now."
    )


def truncated_message(state: PartitionState, start: int) -> str:
    """Return the message about a log that ends before the archive's position."""
    return (
        f"the archive of {state.name} stands at {start}, past the end of the log at {state.high}: the topic was "
        "truncated, an unclean leader election lost records, or somebody moved the group too far. Find out the cause."
    )


def begin_generation(archive: Archive, state: PartitionState, generation: int, observed: str) -> Beginning:
    """Begin a new generation at the log's start, if `recreated_topic` allows that."""
    if archive.policies.recreated_topic == "fail":
        way = f"To archive the log from its start ({state.log_start}) as a new generation beside the old objects: "
        raise _stop(archive, state, "recreated_topic", observed, way, "new_generation")
    if archive.policies.recreated_topic != "new_generation":
        assert_never(archive.policies.recreated_topic)
    begins = f"{observed} Generation {generation} begins at {state.log_start}"
    decided = Decision("recreated_topic", "new_generation", begins)
    return Beginning(state.log_start, generation, anew=True, decided=(decided,))


def missing_group(archive: Archive, state: PartitionState, remembered: int) -> tuple[int, tuple[Decision, ...]]:
    """Decide where to go on when the group's offset is gone."""
    observed = (
        f"group {archive.group} has no offset for {state.name}, but the ledger says it is archived up to {remembered}"
    )
    if archive.policies.missing_group == "fail":
        means = "the group's offsets expired or were deleted."
        reset = command(state.tools.reset_group(archive.group, *state.name, remembered))
        back = "; or put the group back with ", reset
        raise _stop(archive, state, "missing_group", f"{observed}: {means}", _ON, "resume_from_ledger", *back)
    if archive.policies.missing_group != "resume_from_ledger":
        assert_never(archive.policies.missing_group)
    return remembered, (Decision("missing_group", "resume_from_ledger", observed),)


def moved_group(
    archive: Archive, state: PartitionState, start: int, remembered: int
) -> tuple[int, tuple[Decision, ...]]:
    """Decide where to go on when the group stands elsewhere."""
    observed = (
        f"group {archive.group} stands at {start} in {state.name}, but the ledger says it is archived up to "
        f"{remembered}"
    )
    policy = archive.policies.moved_group
    if policy == "fail":
        means = "somebody moved the group, or something else commits in it."
        reset = command(state.tools.reset_group(archive.group, *state.name, remembered))
        back = "; or put the group back with ", reset
        again = (
            f". To archive from {start} again, as a new generation beside the old objects: ",
            choose(archive.archive, "moved_group", "new_generation"),
        )
        raise _stop(archive, state, "moved_group", f"{observed}: {means}", _ON, "follow_ledger", *back, *again)
    match policy:
        case "follow_ledger":
            return remembered, (Decision("moved_group", policy, observed),)
        case "new_generation":
            return start, (Decision("moved_group", policy, observed),)
        case unknown:
            assert_never(unknown)


def lost_offsets(archive: Archive, state: PartitionState, start: int, gone: int) -> tuple[Decision, ...]:
    """Decide about offsets that retention has removed."""
    observed = (
        f"{gone} offsets of {state.name} are gone: the archive stands at {start}, but retention has removed everything "
        f"before {state.log_start}"
    )
    if archive.policies.lost_offsets == "fail":
        way = f"To go on and record the unarchived offsets of [{start}, {state.log_start}) as lost for ever: "
        raise _stop(archive, state, "lost_offsets", f"{observed}.", way, "record_loss")
    if archive.policies.lost_offsets != "record_loss":
        assert_never(archive.policies.lost_offsets)
    return (Decision("lost_offsets", "record_loss", observed),)


def _stop(
    archive: Archive,
    state: PartitionState,
    policy: str,
    problem: str,
    way: str,
    choice: str,
    *more: str | Action | Advice,
) -> PolicyError:
    """Return the error of a policy that says `fail`. `way`: what `choice` does; `more`: other ways on."""
    advice = advise(way, choose(archive.archive, policy, choice), *more, f" (policies.{policy}: fail)")
    return PolicyError(problem, policy, str(state.name), choice, *advice)
