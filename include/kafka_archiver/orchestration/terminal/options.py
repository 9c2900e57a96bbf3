"""What the definitions of several commands share. Loaded by every `airflow` call."""

import re
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
    from kafka_archiver.values import intervals

    try:
        return intervals.duration(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def offsets(text: str) -> Any:
    """Offsets of a partition: orders:0:1-25, the end exclusive."""
    from kafka_archiver.model.set_aside import OffsetsAside

    found = re.fullmatch(r"([\w.-]+):(\d{1,9}):(\d{1,18})-(\d{1,18})", text, re.ASCII)
    if found is None or int(found[3]) >= int(found[4]):
        raise ArgumentTypeError(f"expected TOPIC:PARTITION:START-END, the end exclusive, found {text!r}")
    return OffsetsAside(topic=found[1], partition=int(found[2]), start=int(found[3]), end=int(found[4]))


OUTPUT = option(
    "-o",
    "--output",
    choices=("table", "json", "yaml"),
    default="table",
    metavar="table|json|yaml",
    help="table for people (default), json or yaml for programs",
)
