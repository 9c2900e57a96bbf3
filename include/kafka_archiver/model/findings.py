"""Findings about an archive, as values that status, doctor, health, page, alerts and the audit render. Pure."""

from collections.abc import Iterable
from typing import Any, Literal

from kafka_archiver.messages.actions import Action
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.values.documents import Value

# warning: the archive goes on, but should be looked at. unknown: nobody knows. problem: somebody has to act.
Severity = Literal["ok", "warning", "unknown", "problem"]
ORDER: tuple[Severity, ...] = ("ok", "warning", "unknown", "problem")


class Finding(Value):
    """One finding. `kind`: short and always the same. `subject`: a key, an offset range, a run; empty: the archive.

    `observed`, `expected`: the state, and what should be. `means`: the consequence. `advice`: what to do, in a sentence
    that may name the actions. `actions`: what to do, the best one first. `run`: the run of the subject. `brief`: the
    finding for one short line, if it has a shorter one. `causes`: the kinds of the findings that are its cause.
    `sums_up`: the kinds of the findings that this one repeats. `name`: what a person accepts it by; empty: nobody can.
    """

    kind: str
    severity: Severity
    observed: str
    subject: str = ""
    expected: str = ""
    means: str = ""
    advice: str = ""
    actions: tuple[Action, ...] = ()
    run: str | None = None
    brief: str = ""
    causes: tuple[str, ...] = ()
    sums_up: tuple[str, ...] = ()
    name: str = ""

    @property
    def text(self) -> str:
        """The finding in a sentence, without its actions."""
        return ". ".join(filter(None, (": ".join(filter(None, (self.subject, self.observed))), self.means)))

    @property
    def steps(self) -> tuple[str, ...]:
        """The actions as lines: exact commands and settings."""
        return tuple(map(str, self.actions))


def ok(kind: str, observed: str) -> Finding:
    """Return that nothing is wrong."""
    return Finding(kind=kind, severity="ok", observed=observed)


def warning(kind: str, observed: str, *actions: Action, **more: Any) -> Finding:
    """Return that the archive goes on, but should be looked at. `more`: other fields of `Finding`."""
    return Finding(kind=kind, severity="warning", observed=observed, actions=actions, **more)


def problem(kind: str, observed: str, *actions: Action, **more: Any) -> Finding:
    """Return that somebody has to act. `more`: other fields of `Finding`."""
    return Finding(kind=kind, severity="problem", observed=observed, actions=actions, **more)


def of_error(kind: str, error: ArchiverError) -> Finding:
    """Return an error as a problem."""
    return problem(kind, str(error), *error.actions)


def worst(severities: Iterable[Severity]) -> Severity:
    """Return the worst of some severities; ok if there are none."""
    return max(severities, key=ORDER.index, default="ok")
