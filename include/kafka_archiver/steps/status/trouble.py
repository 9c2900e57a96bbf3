"""What is wrong with an archive, as a value that a command or a page can show."""

from typing import Literal

from kafka_archiver.documents import Value


class Trouble(Value):
    """One trouble. `name`: its kind; `found`: the state; `do`: exact commands, the best one first.

    warning: the archive goes on by itself, but look at it. problem: somebody has to act.
    """

    name: str
    severity: Literal["warning", "problem"]
    found: str
    do: tuple[str, ...]


def warning(name: str, found: str, *do: str) -> Trouble:
    """The archive goes on by itself, but look at it."""
    return Trouble(name=name, severity="warning", found=found, do=do)


def problem(name: str, found: str, *do: str) -> Trouble:
    """Somebody has to act."""
    return Trouble(name=name, severity="problem", found=found, do=do)
