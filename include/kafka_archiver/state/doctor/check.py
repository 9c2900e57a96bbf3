"""Findings of the doctor's checks: `means` is the consequence, a choice is an action, or a remedy in words."""

from collections.abc import Callable, Iterable, Iterator

from kafka_archiver.messages.actions import Action, words
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model import findings
from kafka_archiver.model.findings import Finding, of_error, ok

__all__ = ["Finding", "ok", "problem", "tried", "warning"]


def warning(name: str, observed: str, means: str = "", *choices: str | Action) -> Finding:
    """Return what works, but should be looked at."""
    return findings.warning(name, observed, *_actions(choices), means=means)


def problem(name: str, observed: str, means: str = "", *choices: str | Action) -> Finding:
    """Return what would make a run fail, or lose something."""
    return findings.problem(name, observed, *_actions(choices), means=means)


def tried(name: str, look: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings of `look`; an error becomes a problem of this name."""
    try:
        yield from look()
    except ArchiverError as error:
        yield of_error(name, error)


def _actions(choices: Iterable[str | Action]) -> tuple[Action, ...]:
    return tuple(words(choice) if isinstance(choice, str) else choice for choice in choices)
