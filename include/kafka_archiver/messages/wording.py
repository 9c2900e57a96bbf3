"""Numbers, sizes and times as people read them."""

import re
from datetime import timedelta

# A command; or a time in UTC, in the id of a DAG run behind the run's kind.
_TIME = re.compile(r"`[^`]*`|(?:\b([a-z_]+?)__)?(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?(?:\.\d+)?(?:Z|\+00:00)")


def count(number: int, thing: str) -> str:
    """Return a number with a noun in singular or plural: "1 run", "1,200 objects"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def offset_span(start: int, end: int) -> str:
    """Return the offsets from `start` up to, not including, `end`: "offset 5", "offsets 5–9"."""
    return f"offset {start}" if end - start == 1 else f"offsets {start}–{end - 1}"


def size(number: int) -> str:
    """Return bytes in the largest unit that gives at least 1: "3.4 MB"."""
    if number < 1000:
        return f"{number:,} B"
    value, unit = number / 1000, "kB"
    for unit in ("kB", "MB", "GB", "TB"):
        # Would be shown as 1e+03.
        if value < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:,.0f} {unit}"


def shortened(text: str, most: int) -> str:
    """Return the sentences of a text that fit; of a first sentence that is too long the words that fit, and "…"."""
    if len(text) <= most:
        return text
    fits = text[:most]
    whole, end, _ = fits.rpartition(". ")
    return f"{whole}." if end else f"{fits[: most - 2].rpartition(' ')[0] or fits[: most - 2]} …"


def span(time: timedelta) -> str:
    """Return a time in one unit, rounded: "90 seconds", "90 minutes", "5 hours", "3 days"."""
    seconds = time.total_seconds()
    for unit, thing, most in ((1, "second", 120), (60, "minute", 120), (3600, "hour", 48)):
        if round(seconds / unit) < most:
            return count(round(seconds / unit), thing)
    return count(round(seconds / 86400), "day")


def plain_times(text: str) -> str:
    """Return a text with its times in UTC as people read them: "2026-11-21 05:00:07", "manual 2026-11-21 05:00".

    There are no fractions, nor seconds that are zero. Commands, which are between backticks, stay as they are.
    """
    return _TIME.sub(_plain_time, text)


def _plain_time(part: re.Match[str]) -> str:
    kind, day, minute, seconds = part.groups()
    if not day:
        return part[0]
    return f"{kind} " * bool(kind) + f"{day} {minute}" + ("" if seconds in (None, ":00") else seconds)
