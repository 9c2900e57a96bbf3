"""The reasons of incomplete hours, as proofs have them: what an hour lacks, and the command that helps. Pure.

Whoever shows the command as an action takes the reason without it.
"""

from collections.abc import Callable
from typing import NamedTuple

from kafka_archiver.messages.actions import Action
from kafka_archiver.messages.advice import fill, repair

_REMEDIES: dict[Callable[[str], Action], str] = {
    fill: "archives what Kafka still has of them",
    repair: "computes it again",
}
# Begins the reason of an hour whose proof was gone.
FORMER_GONE = "its proof was gone when a run added to it"


class Reason(NamedTuple):
    """What an hour lacks, and the action that the whole reason names, if it names one."""

    lack: str
    action: Action | None = None


def reason_of_holes(archive: str, holes: str) -> str:
    """Return the reason of an hour that may have records of offsets that no run has."""
    return _with(f"the archive does not have {holes}, whose records may be of this hour", archive, fill)


def reason_of_a_gone_proof(archive: str) -> str:
    """Return the reason of an hour whose proof was gone."""
    return _with(FORMER_GONE, archive, repair)


def split_reason(archive: str, reason: str) -> Reason:
    """Return a reason without its command, and the action of that."""
    for remedy in _REMEDIES:
        if reason.endswith(clause := _with("", archive, remedy)):
            return Reason(reason.removesuffix(clause), remedy(archive))
    return Reason(reason)


def _with(lack: str, archive: str, remedy: Callable[[str], Action]) -> str:
    return f"{lack}; {remedy(archive).quoted} {_REMEDIES[remedy]}"
