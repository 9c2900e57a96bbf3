"""What the definitions of several commands share. Loaded by every `airflow` call."""

from argparse import ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any

from airflow.cli.cli_config import Arg


def option(*flags: str, **settings: Any) -> Arg:
    """An option or argument, with the settings of argparse's `add_argument`."""
    return Arg(flags, **settings)  # type: ignore[no-untyped-call]


def moment(text: str) -> datetime:
    """A time as Airflow's own commands read it: a date alone is midnight, no zone is core.default_timezone."""
    from airflow.sdk.timezone import parse

    try:
        time = parse(text)
    except ValueError:
        time = None
    # "P1D" and "2026-11-21/2026-11-22" parse too: as durations.
    if not isinstance(time, datetime):
        raise ArgumentTypeError(f"expected a time like 2026-11-21T05:00:00Z, found {text!r}")
    return time


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"expected a whole number above 0, found {text!r}")
    return int(text)


def duration(text: str) -> timedelta:
    """A number and a unit: 90s, 30m, 12h, 1d or 2w."""
    from kafka_archiver import intervals

    try:
        return intervals.duration(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


OUTPUT = option(
    "-o",
    "--output",
    choices=("table", "json", "yaml"),
    default="table",
    metavar="table|json|yaml",
    help="table for people (default), json or yaml for programs",
)
