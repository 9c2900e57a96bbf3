"""The result of a check."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from kafka_archiver.documents import Value
from kafka_archiver.errors import ArchiverError


class Check(Value):
    """One check. `found`: the state; `means`: its consequence; `choices`: the command or setting of each remedy.

    warning: runs work, but look at it. problem: a run would fail, or lose something.
    """

    name: str
    state: Literal["ok", "warning", "problem"]
    found: str
    means: str = ""
    choices: tuple[str, ...] = ()


def ok(name: str, found: str) -> Check:
    """Nothing is wrong."""
    return Check(name=name, state="ok", found=found)


def warning(name: str, found: str, means: str = "", *choices: str) -> Check:
    """Works, but look at it."""
    return Check(name=name, state="warning", found=found, means=means, choices=choices)


def problem(name: str, found: str, means: str = "", *choices: str) -> Check:
    """A run would fail, or lose something."""
    return Check(name=name, state="problem", found=found, means=means, choices=choices)


def tried(name: str, look: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """The checks of `look`; an error becomes a problem of this name."""
    try:
        yield from look()
    except ArchiverError as error:
        yield problem(name, str(error))
