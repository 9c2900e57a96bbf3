"""Where a partition's next range starts, and what to do when the brokers' state is strange. Pure.

A strange state is decided by the archive's policies, never by accident; the message of each `fail` says what was
found, what it means, and the exact command for each choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafka_archiver.advice import choose, choose_all, once
from kafka_archiver.config import Archive
from kafka_archiver.errors import PolicyError
from kafka_archiver.progress import PartitionProgress
from kafka_archiver.ranges import Range, TopicPartition, subtract

_NOTHING: tuple[str, ...] = ()
# So many troubles of a run are told in its error; `airflow archive doctor` has all.
_NAMED = 10
Known = Mapping[TopicPartition, PartitionProgress]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
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


def beginnings(archive: Archive, seen: list[Seen], known: Known) -> dict[TopicPartition, Beginning]:
    """Where each partition of a scheduled run starts.

    :param known: what settled and planned runs cover already, by partition.
    :raises PolicyError: a policy says `fail`; it has all at which this run would stop.
    """
    if errors := troubles(archive, seen, known):
        raise _together(archive, errors)
    return {name: one for name, one in each(archive, seen, known).items() if isinstance(one, Beginning)}


def advice(archive: Archive, errors: Sequence[PolicyError]) -> str:
    """What goes on where one run stops at all of these policies, which are several.

    :param errors: as `each` has them; of one policy the first may be taken by its word.
    """
    return choose_all(archive.archive, {error.policy: error.choice for error in errors})


def _together(archive: Archive, errors: Sequence[PolicyError]) -> PolicyError:
    if len({error.policy for error in errors}) == 1:
        return errors[0]
    return PolicyError(" ".join(error.found for error in errors[:_NAMED]), advice=advice(archive, errors))


def troubles(archive: Archive, seen: list[Seen], known: Known) -> list[PolicyError]:
    """All about which a policy says `fail`. A topic that was made again is one, however many partitions it has."""
    found = [one for one in each(archive, seen, known).values() if isinstance(one, PolicyError)]
    return list({str(error): error for error in reversed(found)}.values())[::-1]


def each(archive: Archive, seen: list[Seen], known: Known) -> dict[TopicPartition, Beginning | PolicyError]:
    """Of each partition where it starts, or what a policy fails at."""
    found: dict[TopicPartition, Beginning | PolicyError] = {}
    is_new = _is_new(seen, known)
    for state in seen:
        try:
            found[state.name] = _beginning(archive, state, known, is_new)
        except PolicyError as error:
            found[state.name] = error
    return found


def _is_new(seen: list[Seen], known: Known) -> bool:
    """Whether the archive starts now: nobody remembers a scheduled run, neither the ledger nor the group."""
    return all(p.next is None for p in known.values()) and all(s.committed is None for s in seen)


def generation_of(state: Seen, known: Known) -> int:
    """The generation of a partition that nobody archived yet, or whose topic was made again: one for all of a topic."""
    mine = [p for p in known.values() if p.topic == state.name.topic]
    same = [p.generation for p in mine if p.topic_id == state.topic_id]
    return min(same) if same else max((p.generation + 1 for p in mine), default=0)


def _beginning(archive: Archive, state: Seen, known: Known, is_new: bool) -> Beginning:
    before = known.get(state.name)
    if before and before.topic_id != state.topic_id:
        return _anew(archive, state, generation_of(state, known), made_again(state, before))
    if before and state.doubt:
        return _anew(archive, state, before.generation + 1, state.doubt)
    remembered = before.next if before else None
    generation = before.generation if before else generation_of(state, known)
    start, decided = state.committed, _NOTHING
    if start is None and remembered is not None:
        start, decided = (remembered, _NOTHING) if state.ours else _missing_group(archive, state, remembered)
    elif start is None:
        # A partition that was added later starts at its first record, whatever source.start says.
        start = state.begin if is_new else state.log_start
    elif remembered is not None and start != remembered:
        if state.ours:
            # Nobody moved the group: the commit for this place has not come yet, or an older one came late.
            start = remembered
        else:
            if archive.policies.moved_group == "new_generation" and start <= state.high:
                generation += 1
            start, decided = _moved_group(archive, state, start, remembered)
    if start > state.high:
        return _anew(archive, state, generation + 1, truncated(state, start))
    if gone := _gone(state, before, start, generation):
        decided += _lost_offsets(archive, state, start, gone)
    return Beginning(start, generation, decided=decided)


def _gone(state: Seen, before: PartitionProgress | None, start: int, generation: int) -> int:
    """How many offsets between the archive's position and the log's start nobody has archived."""
    if start >= state.log_start:
        return 0
    covered = taken(before, generation, start)
    return sum(r.size for r in subtract(Range(start, state.log_start), covered))


def taken(before: PartitionProgress | None, generation: int, start: int, anew: bool = False) -> list[Range]:
    """The offsets that are not to be archived again: also those of earlier generations of the same log."""
    if before is None or anew:
        return []
    if before.generation == generation:
        return [Range(*r) for r in before.covered + before.earlier]
    return list(before.left_behind(start))


def made_again(state: Seen, before: PartitionProgress) -> str:
    """What it means that a topic has another id."""
    return (
        f"topic {state.name.topic} was deleted and made again: the ledger knows it as {before.topic_id}, the brokers "
        f"as {state.topic_id}. Its offsets mean other records now."
    )


def truncated(state: Seen, start: int) -> str:
    """What it means that a log ends before the place where the archive stands."""
    return (
        f"the archive of {state.name} stands at {start}, past the end of the log at {state.high}: the topic was "
        "truncated, an unclean leader election lost records, or somebody moved the group too far. Find out which."
    )


def _anew(archive: Archive, state: Seen, generation: int, found: str) -> Beginning:
    if archive.policies.recreated_topic == "fail":
        raise PolicyError(
            found,
            "recreated_topic",
            str(state.name),
            "new_generation",
            f"To archive the log from its start ({state.log_start}) as a new generation beside the old "
            f"objects: {choose(archive.archive, 'recreated_topic', 'new_generation')} (policies.recreated_topic: fail)",
            (once(archive.archive, {"recreated_topic": "new_generation"}),),
        )
    decided = f"recreated_topic: new_generation: {found} Generation {generation} begins at {state.log_start}"
    return Beginning(state.log_start, generation, anew=True, decided=(decided,))


def _missing_group(archive: Archive, state: Seen, remembered: int) -> tuple[int, tuple[str, ...]]:
    found = (
        f"group {archive.group} has no offset for {state.name}, but the ledger says it is archived up to {remembered}"
    )
    if archive.policies.missing_group == "fail":
        means, reset = "the group's offsets expired or were deleted.", _reset(archive.group, state.name, remembered)
        raise PolicyError(
            f"{found}: {means}",
            "missing_group",
            str(state.name),
            "resume_from_ledger",
            "To go on where the ledger ends: "
            f"{choose(archive.archive, 'missing_group', 'resume_from_ledger')}; or put the group back with "
            f"`{reset}` (policies.missing_group: fail)",
            (once(archive.archive, {"missing_group": "resume_from_ledger"}), reset),
        )
    return remembered, (f"missing_group: resume_from_ledger: {found}",)


def _moved_group(archive: Archive, state: Seen, start: int, remembered: int) -> tuple[int, tuple[str, ...]]:
    found = (
        f"group {archive.group} stands at {start} in {state.name}, but the ledger says it is archived up to "
        f"{remembered}"
    )
    policy = archive.policies.moved_group
    if policy == "fail":
        means = "somebody moved the group, or something else commits in it."
        reset = _reset(archive.group, state.name, remembered)
        raise PolicyError(
            f"{found}: {means}",
            "moved_group",
            str(state.name),
            "follow_ledger",
            "To go on where the ledger ends: "
            f"{choose(archive.archive, 'moved_group', 'follow_ledger')}; or put the group back with "
            f"`{reset}`. To archive from {start} again, as a new generation "
            f"beside the old objects: {choose(archive.archive, 'moved_group', 'new_generation')} "
            "(policies.moved_group: fail)",
            (
                once(archive.archive, {"moved_group": "follow_ledger"}),
                reset,
                once(archive.archive, {"moved_group": "new_generation"}),
            ),
        )
    return (remembered if policy == "follow_ledger" else start), (f"moved_group: {policy}: {found}",)


def _reset(group: str, name: TopicPartition, offset: int) -> str:
    return (
        f"kafka-consumer-groups --bootstrap-server BROKERS --group {group} --topic {name.topic}:{name.partition} "
        f"--reset-offsets --to-offset {offset} --execute"
    )


def _lost_offsets(archive: Archive, state: Seen, start: int, gone: int) -> tuple[str, ...]:
    found = (
        f"{gone} offsets of {state.name} are gone: the archive stands at {start}, but retention has removed everything "
        f"before {state.log_start}"
    )
    if archive.policies.lost_offsets == "fail":
        raise PolicyError(
            f"{found}.",
            "lost_offsets",
            str(state.name),
            "record_loss",
            f"To go on and have those of [{start}, {state.log_start}) that nobody archived shown as lost for "
            f"ever: {choose(archive.archive, 'lost_offsets', 'record_loss')} (policies.lost_offsets: fail)",
            (once(archive.archive, {"lost_offsets": "record_loss"}),),
        )
    return (f"lost_offsets: record_loss: {found}",)
