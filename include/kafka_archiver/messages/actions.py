"""Actions about a finding or an error, as values that only our own code makes. Pure.

Commands are made here, never read from a text: text that others wrote can name none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self, get_args

# What the page has a button for. look: a command or a setting for a person.
Kind = Literal["look", "run", "fill", "rebuild", "repair", "dead-letters", "audit", "unpause", "acknowledge"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do. `command`: one exact line for a shell; empty if `words` say all.

    `kind`, `conf`: what the command starts, and its parameters. `words`: what comes before the command.
    """

    command: str = ""
    kind: Kind = "look"
    conf: Mapping[str, Any] = field(default_factory=dict, hash=False)
    words: str = ""

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.words, self.command)))

    @property
    def quoted(self) -> str:
        """The command in a sentence."""
        return f"`{self.command}`"

    def after(self, words: str) -> Self:
        """Return the action with what comes before it."""
        return replace(self, words=words)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON, without empty fields."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_dict(cls, value: object) -> Self:
        """Return the inverse of `to_dict`.

        :raises ValueError: the value is something else.
        """
        if not isinstance(value, dict) or not {"command", "kind", "conf", "words"}.issuperset(value):
            raise ValueError("no action")
        action = cls(**value)
        if action.kind not in KINDS or not isinstance(action.conf, dict):
            raise ValueError("no action")
        if not isinstance(action.command, str) or not isinstance(action.words, str) or not str(action):
            raise ValueError("no action")
        return action


class Advice(NamedTuple):
    """The advice in a sentence, and the actions that it names."""

    text: str
    actions: tuple[Action, ...] = ()


def advise(*parts: "str | Action | Advice") -> Advice:
    """Return a sentence of its parts: an action stands in it as its command in backticks."""
    text = "".join(part.quoted if isinstance(part, Action) else str(getattr(part, "text", part)) for part in parts)
    named = (part.actions if isinstance(part, Advice) else (part,) for part in parts if not isinstance(part, str))
    return Advice(text, tuple(dict.fromkeys(action for actions in named for action in actions)))


def words(text: str) -> Action:
    """Return what to do that is no command."""
    return Action(words=text)


def command(line: str, before: str = "") -> Action:
    """Return a command for a person, of which the page has no button."""
    return Action(line, words=before)


def to_dicts(actions: Iterable[Action]) -> list[dict[str, Any]]:
    """Return actions as JSON."""
    return [action.to_dict() for action in actions]


def from_dicts(values: object) -> tuple[Action, ...]:
    """Return the inverse of `to_dicts`; none if the value is something else, such as one of an earlier release."""
    try:
        return tuple(map(Action.from_dict, values)) if isinstance(values, list | tuple) else ()
    except ValueError:
        return ()
