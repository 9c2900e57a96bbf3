"""The hand-over from another tool: `source.start: group:<old>`, once, at the first plan."""

import logging
from collections.abc import Sequence

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.actions import advise, command
from kafka_archiver.messages.errors import PolicyError, TransientError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.planning.beginnings import is_new
from kafka_archiver.planning.partition_state import Known, PartitionState

log = logging.getLogger(__name__)


def check_handover(context: Context, states: Sequence[PartitionState], known: Known) -> None:
    """Refuse to take over from a tool that still works, or that has left no offset. Does nothing after the first plan.

    :param states: with the old group's offsets as `begin`. They are read again here, once the tool is gone.
    :raises PolicyError: the old group has members, or has no offset in any of the archive's partitions.
    :raises TransientError: the tool has committed since its offsets were read.
    """
    group = context.archive.source.old_group
    if group is None or not is_new(list(states), known):
        return
    tools = context.cluster.tools
    if members := context.cluster.members(group):
        how = advise(
            "Stop it, let it write and commit what it holds, see with ",
            command(tools.list_members(group)),
            " that it is gone, and run again",
        )
        raise PolicyError(
            f"group {group} (source.start) has live members: {', '.join(map(foreign, members[:5]))}. The tool that the "
            "archive takes over from is still at work, and what it writes from now on would be archived twice.",
            advice=how.text,
            actions=how.actions,
            kinds=("handover",),
        )
    left = context.cluster.committed(group, [state.name for state in states])
    without = [str(name) for name, offset in left.items() if offset is None]
    if len(without) == len(left):
        raise PolicyError(
            f"group {group} (source.start) has no committed offset in any partition of the archive: its offsets have "
            "expired, it read other topics or another cluster, or its name is not this. Correct the name; or begin "
            "at the first record (source.start: earliest) or at a time (source.start: 2026-11-01T00:00:00Z)",
            kinds=("handover",),
        )
    if moved := [state.name for state in states if left[state.name] not in (None, state.begin)]:
        raise TransientError(
            f"group {group} (source.start) has committed {left[moved[0]]} in {moved[0]} while its offsets were "
            f"read; the "
            "next attempt starts there"
        )
    log.info("taking over from group %s: %s", group, ", ".join(f"{n} at {o}" for n, o in left.items() if o is not None))
    if without:
        log.warning("group %s has no offset in %s: archived from the first record on", group, ", ".join(without))


def live_members_message(group: str, members: list[str]) -> str:
    """Return the message about a group with members."""
    named = ", ".join(map(foreign, members[:5]))
    return (
        f"group {group} has live members: {named}. The archive keeps its position in this group, and no other client "
        "may commit there; stop these consumers or give the archive a group of its own (source.group)"
    )
