"""The policies: rules for an unexpected state of Kafka, or for a record that cannot be archived. Pure.

Each is one value and a field of `PolicyChoices`, which YAML, planning, advice, form, page, audit and docs read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from pydantic import BaseModel

LostOffsets = Literal["fail", "record_loss"]
RecreatedTopic = Literal["fail", "new_generation"]
MissingGroup = Literal["resume_from_ledger", "fail"]
MovedGroup = Literal["fail", "follow_ledger", "new_generation"]
ChangedCode = Literal["fail", "plan_anew"]
# For records that cannot be decoded, transformed or encoded, or are too large.
BadRecord = Literal["fail", "dead_letter", "skip"]
# For null values, if only values are stored.
NullValue = Literal["archive", "skip"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of a policy, and its effect. `is_for_ever`: nobody can take it back, so the page asks before.

    `deed`: the same as an order, for a button and its question; empty: the page names the choice.
    """

    name: str
    effect: str
    is_for_ever: bool = False
    deed: str = ""


_FAIL = Choice("fail", "the run stops")
_NEW_GENERATION = Choice(
    "new_generation", "the log is archived anew, beside the old objects", True, "begin a new generation"
)


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule.

    `when`: the state that it decides about. `choices`: the default first. `finding`: the kind of the audit's finding
    about this state, and `expected`: the state without it; both empty if the audit does not look for it.
    """

    name: str
    when: str
    choices: tuple[Choice, ...]
    finding: str = ""
    expected: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the choices, the default first."""
        return tuple(choice.name for choice in self.choices)

    def choice(self, name: str) -> Choice:
        return next(choice for choice in self.choices if choice.name == name)


_ALL = (
    Policy(
        "lost_offsets",
        "Kafka removed records before they were archived",
        (
            _FAIL,
            Choice("record_loss", "the missing offsets are recorded as lost for ever", True, "record the loss"),
        ),
        "retention-passed",
        "a log that begins at the archive's position or before",
    ),
    Policy(
        "recreated_topic",
        "the log is not the one that was archived",
        (_FAIL, _NEW_GENERATION),
        "topic-recreated",
        "the log that was archived so far",
    ),
    Policy(
        "missing_group",
        "the group has no offset, but the ledger has runs",
        (Choice("resume_from_ledger", "archiving goes on where the ledger ends"), _FAIL),
        "group-missing",
        "an offset of the group",
    ),
    Policy(
        "moved_group",
        "the group is not where the ledger says",
        (
            _FAIL,
            Choice("follow_ledger", "archiving goes on where the ledger ends"),
            _NEW_GENERATION,
        ),
        "group-moved",
        "the group at the archive's position",
    ),
    Policy(
        "changed_code",
        "an unfinished run was planned with other code of transforms",
        (_FAIL, Choice("plan_anew", "the run is planned anew, with today's code and settings")),
    ),
    Policy(
        "bad_record",
        "a record cannot be decoded or stored, or is too large",
        (
            _FAIL,
            Choice("dead_letter", "such records become dead letters"),
            Choice("skip", "such records are not archived"),
        ),
    ),
    Policy(
        "null_value",
        "a record is a tombstone, and the values alone are stored",
        (Choice("archive", "tombstones are archived"), Choice("skip", "tombstones are not archived")),
    ),
)
POLICIES = {policy.name: policy for policy in _ALL}
# The findings of an audit at the brokers: an error of these stops the next run; nothing that is stored is damaged.
AT_BROKERS = frozenset(policy.finding for policy in _ALL if policy.finding)


class PolicyChoices(BaseModel):
    """The choice of each policy, as the YAML's section `policies` has it."""

    lost_offsets: LostOffsets = "fail"
    recreated_topic: RecreatedTopic = "fail"
    missing_group: MissingGroup = "resume_from_ledger"
    moved_group: MovedGroup = "fail"
    changed_code: ChangedCode = "fail"
    bad_record: BadRecord = "fail"
    null_value: NullValue = "archive"


@dataclass(frozen=True, slots=True)
class ReadPolicies:
    """The policies that decide while a run is read: the archive's present ones, so that a failed run can go on.

    The manifest has them, and a replay uses the manifest's.
    """

    lost_offsets: LostOffsets = "fail"
    bad_record: BadRecord = "fail"

    @classmethod
    def of(cls, choices: Mapping[str, str]) -> Self:
        """Return those of all policies of an archive."""
        own: dict[str, Any] = {field.name: choices[field.name] for field in fields(cls)}
        return cls(**own)


def deeds(choices: Mapping[str, str]) -> str:
    """Return the choices of these policies as one order: "Record the loss"; empty if one of them has no such words."""
    words = [POLICIES[policy].choice(choice).deed for policy, choice in choices.items()]
    text = " and ".join(dict.fromkeys(words)) if all(words) else ""
    return text[:1].upper() + text[1:]


def effects(names: Iterable[str]) -> str:
    """Return the effect of each of these choices but `fail`: "record_loss: …; …"."""
    chosen = set(names) - {_FAIL.name}
    known = {
        choice.name: choice.effect for policy in POLICIES.values() for choice in policy.choices if choice.name in chosen
    }
    return "; ".join(f"{name}: {effect}" for name, effect in known.items())
