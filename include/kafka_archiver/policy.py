"""Where a partition's next range starts, and what to do when the brokers' state is strange. Pure.

A strange state is decided by the archive's policies, never by accident; the message of each `fail` says what was
found, what it means, and the exact command for each choice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafka_archiver.advice import choose
from kafka_archiver.config import Archive
from kafka_archiver.errors import PolicyError
from kafka_archiver.proof import PartitionProgress
from kafka_archiver.ranges import TopicPartition

_NOTHING: tuple[str, ...] = ()
Known = Mapping[TopicPartition, PartitionProgress]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A partition as the brokers describe it at planning.

    :param committed: where the group stands, or will once the unfinished earlier runs are finished; None when it has
        no offset for this partition.
    :param log_end: the last stable offset for read_committed, else the high watermark.
    :param interval_start, interval_end: the first offset with a timestamp at or after the interval's ends; None when
        there is no such record yet.
    :param passed: the offset behind everything that may have a timestamp before the interval's end, records of open
        transactions included: what closes the interval's hours has to reach it.
    :param high: the high watermark: what lies between it and `log_end` is of open transactions.
    :param begin: where `source.start` points, for an archive that starts now.
    """

    name: TopicPartition
    topic_id: str
    committed: int | None
    log_start: int
    log_end: int
    interval_start: int | None
    interval_end: int | None
    passed: int
    high: int
    begin: int


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
    :raises PolicyError: a policy says `fail`.
    """
    is_new = _is_new(seen, known)
    return {s.name: _beginning(archive, s, known, is_new) for s in seen}


def troubles(archive: Archive, seen: list[Seen], known: Known) -> list[str]:
    """Everything about which a policy says `fail`, a message each; each once."""
    found = []
    is_new = _is_new(seen, known)
    for state in seen:
        try:
            _beginning(archive, state, known, is_new)
        except PolicyError as error:
            found.append(str(error))
    return list(dict.fromkeys(found))


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
    remembered = before.next if before else None
    generation = before.generation if before else generation_of(state, known)
    start, decided = state.committed, _NOTHING
    if start is None and remembered is not None:
        start, decided = _missing_group(archive, state, remembered)
    elif start is None:
        # A partition that was added later starts at its first record, whatever source.start says.
        start = state.begin if is_new else state.log_start
    elif remembered is not None and start != remembered:
        if archive.policies.moved_group == "new_generation" and start <= state.high:
            generation += 1
        start, decided = _moved_group(archive, state, start, remembered)
    if start > state.high:
        return _anew(archive, state, generation + 1, truncated(state, start))
    if start < state.log_start:
        decided += _lost_offsets(archive, state, start)
    return Beginning(start, generation, decided=decided)


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
            f"{found} To archive the log from its start ({state.log_start}) as a new generation beside the old "
            f"objects: {choose(archive.archive, 'recreated_topic', 'new_generation')} (policies.recreated_topic: fail)"
        )
    decided = f"recreated_topic: new_generation: {found} Generation {generation} begins at {state.log_start}"
    return Beginning(state.log_start, generation, anew=True, decided=(decided,))


def _missing_group(archive: Archive, state: Seen, remembered: int) -> tuple[int, tuple[str, ...]]:
    found = (
        f"group {archive.group} has no offset for {state.name}, but the ledger says it is archived up to {remembered}"
    )
    if archive.policies.missing_group == "fail":
        raise PolicyError(
            f"{found}: the group's offsets expired or were deleted. To go on where the ledger ends: "
            f"{choose(archive.archive, 'missing_group', 'resume_from_ledger')}; or put the group back with "
            f"`{_reset(archive.group, state.name, remembered)}` (policies.missing_group: fail)"
        )
    return remembered, (f"missing_group: resume_from_ledger: {found}",)


def _moved_group(archive: Archive, state: Seen, start: int, remembered: int) -> tuple[int, tuple[str, ...]]:
    found = (
        f"group {archive.group} stands at {start} in {state.name}, but the ledger says it is archived up to "
        f"{remembered}"
    )
    policy = archive.policies.moved_group
    if policy == "fail":
        raise PolicyError(
            f"{found}: somebody moved the group, or something else commits in it. To go on where the ledger ends: "
            f"{choose(archive.archive, 'moved_group', 'follow_ledger')}; or put the group back with "
            f"`{_reset(archive.group, state.name, remembered)}`. To archive from {start} again, as a new generation "
            f"beside the old objects: {choose(archive.archive, 'moved_group', 'new_generation')} "
            "(policies.moved_group: fail)"
        )
    return (remembered if policy == "follow_ledger" else start), (f"moved_group: {policy}: {found}",)


def _reset(group: str, name: TopicPartition, offset: int) -> str:
    return (
        f"kafka-consumer-groups --bootstrap-server BROKERS --group {group} --topic {name.topic}:{name.partition} "
        f"--reset-offsets --to-offset {offset} --execute"
    )


def _lost_offsets(archive: Archive, state: Seen, start: int) -> tuple[str, ...]:
    found = (
        f"{state.log_start - start} offsets of {state.name} are gone: the archive stands at {start}, but retention has "
        f"removed everything before {state.log_start}"
    )
    if archive.policies.lost_offsets == "fail":
        raise PolicyError(
            f"{found}. To go on and have [{start}, {state.log_start}) shown as lost for ever: "
            f"{choose(archive.archive, 'lost_offsets', 'record_loss')} (policies.lost_offsets: fail)"
        )
    return (f"lost_offsets: record_loss: {found}",)
