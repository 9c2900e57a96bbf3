"""Options and their values. Loaded by every `airflow` call: imports nothing heavy."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.cli.cli_config import Arg

Completer = Callable[..., Sequence[str]]


class CompletedArg(Arg):
    """An argument whose values a shell completes, by argcomplete, which Airflow's program calls."""

    def __init__(self, flags: tuple[str, ...], completer: Completer, **settings: Any) -> None:
        super().__init__(flags, **settings)  # type: ignore[no-untyped-call]
        self.completer = completer

    def add_to_parser(self, parser: ArgumentParser) -> None:
        """Add it, with argcomplete's attribute."""
        action = parser.add_argument(*self.flags, **self.kwargs)
        action.completer = self.completer  # type: ignore[attr-defined]


def option(*flags: str, completer: Completer | None = None, **settings: Any) -> Arg:
    """Return an option or argument, with the settings of argparse's `add_argument`.

    :param completer: gives the values that a shell completes.
    """
    if completer:
        return CompletedArg(flags, completer, **settings)
    return Arg(flags, **settings)  # type: ignore[no-untyped-call]


def moment(text: str) -> datetime:
    """Read a time as Airflow's own commands do: a date alone is midnight, no zone is core.default_timezone."""
    from airflow.sdk.timezone import parse

    try:
        time = parse(text)
        if isinstance(time, datetime):
            time.astimezone(UTC)
    # OverflowError: with its zone, it is before the year 1 or after 9999 in UTC.
    except (ValueError, OverflowError):
        time = None
    # "P1D" and "2026-11-21/2026-11-22" parse too: as durations.
    if not isinstance(time, datetime):
        raise ArgumentTypeError(f"expected a time like 2026-11-21T05:00:00Z, found {text!r}")
    return time


def positive(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"expected a whole number above 0, found {text!r}")
    return int(text)


def duration(text: str) -> timedelta:
    """Read a number and a unit: 90s, 30m, 12h, 1d or 2w."""
    from kafka_archiver.values import intervals

    try:
        return intervals.duration(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def offsets(text: str) -> Any:
    """Read offsets of a partition: orders:0:1-25, the end exclusive."""
    from kafka_archiver.model.set_aside import OffsetsAside

    match = re.fullmatch(r"([\w.-]+):(\d{1,9}):(\d{1,18})-(\d{1,18})", text, re.ASCII)
    if match is None or int(match[3]) >= int(match[4]):
        raise ArgumentTypeError(f"expected TOPIC:PARTITION:START-END, the end exclusive, found {text!r}")
    return OffsetsAside(topic=match[1], partition=int(match[2]), start=int(match[3]), end=int(match[4]))


OUTPUT = option(
    "-o",
    "--output",
    choices=("table", "json", "yaml"),
    default="table",
    metavar="table|json|yaml",
    help="table for people (default), json or yaml for programs",
)
