"""Numbers, sizes and times as people read them."""

from datetime import timedelta


def count(number: int, thing: str) -> str:
    """Return a number with a noun in singular or plural: "1 run", "1,200 objects"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


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


def span(time: timedelta) -> str:
    """Return a time in one unit, rounded: "90 seconds", "90 minutes", "5 hours", "3 days"."""
    seconds = time.total_seconds()
    for unit, thing, most in ((1, "second", 120), (60, "minute", 120), (3600, "hour", 48)):
        if round(seconds / unit) < most:
            return count(round(seconds / unit), thing)
    return count(round(seconds / 86400), "day")
