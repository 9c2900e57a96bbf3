"""Parts of times by the pattern letters of Joda, which Confluent's `path.format` has too. ISO calendar, digits 0-9."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from kafka_archiver.model.layouts.tokens import TextToken, Time

# Names of a locale, as a plan freezes them: `months`, `months_short` (from January), `days`, `days_short` (from
# Monday), `halves` (am, pm) and `eras` (only the present one).
Names = Mapping[str, Sequence[str]]
ENGLISH: Names = {
    "months": [
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ],
    "months_short": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "days": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    "days_short": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    "halves": ["AM", "PM"],
    "eras": ["AD"],
}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'])")


def _number(read: Callable[[datetime], int]) -> Callable[[datetime, int, Names], str]:
    return lambda moment, length, names: f"{read(moment):0{length}d}"  # noqa: ARG005


def _year(read: Callable[[datetime], int]) -> Callable[[datetime, int, Names], str]:
    def show(moment: datetime, length: int, names: Names) -> str:  # noqa: ARG001
        return f"{read(moment) % 100:02d}" if length == 2 else f"{read(moment):0{length}d}"

    return show


def _name(kind: str, read: Callable[[datetime], int]) -> Callable[[datetime, int, Names], str]:
    return lambda moment, length, names: names[kind if length > 3 else f"{kind}_short"][read(moment)]


def _month(moment: datetime, length: int, names: Names) -> str:
    if length < 3:
        return f"{moment.month:0{length}d}"
    return _name("months", lambda m: m.month - 1)(moment, length, names)


def _offset(moment: datetime, length: int, names: Names) -> str:  # noqa: ARG001
    seconds = int((moment.utcoffset() or timedelta()).total_seconds())
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}{':' * (length > 1)}{minutes % 60:02d}"


_SHOWN: dict[str, Callable[[datetime, int, Names], str]] = {
    "G": lambda moment, length, names: names["eras"][0],  # noqa: ARG005
    "y": _year(lambda m: m.year),
    "Y": _year(lambda m: m.year),
    "x": _year(lambda m: m.isocalendar().year),
    "w": _number(lambda m: m.isocalendar().week),
    "e": _number(lambda m: m.isoweekday()),
    "E": _name("days", lambda m: m.weekday()),
    "D": _number(lambda m: m.timetuple().tm_yday),
    "M": _month,
    "d": _number(lambda m: m.day),
    "a": lambda moment, length, names: names["halves"][moment.hour // 12],  # noqa: ARG005
    "H": _number(lambda m: m.hour),
    "k": _number(lambda m: m.hour or 24),
    "K": _number(lambda m: m.hour % 12),
    "h": _number(lambda m: m.hour % 12 or 12),
    "m": _number(lambda m: m.minute),
    "s": _number(lambda m: m.second),
    "S": lambda moment, length, names: f"{moment.microsecond // 1000:03d}".ljust(length, "0")[:length],  # noqa: ARG005
    "Z": _offset,
}
# The milliseconds in which a letter's text stays the same, if the zone's offset does; other letters: a day.
_STEPS = {"S": 1, "s": 1000, "m": 60_000} | dict.fromkeys("HkKha", 3_600_000)


def tokens_of(pattern: str) -> list[TextToken | Time]:
    """The tokens of a pattern such as `'year'=YYYY/'month'=MM`.

    :raises ValueError: a quote is not closed, or a letter has no meaning.
    """
    tokens = split(pattern)
    for token in tokens:
        if isinstance(token, Time) and (letter := token.pattern[0]) not in _SHOWN:
            raise ValueError(
                f"{letter!r} in {pattern!r} is no part of a time; expected {' '.join(_SHOWN)}, or text in quotes"
            )
    return tokens


def split(pattern: str) -> list[TextToken | Time]:
    """The texts and the runs of one letter in a pattern; the letters may have no meaning.

    :raises ValueError: a quote is not closed.
    """
    pieces: list[TextToken | Time] = []
    at = 0
    for match in _TOKEN.finditer(pattern):
        if match.start() != at:
            break
        at = match.end()
        quoted, letter, other = match.groups()
        if letter is None:
            pieces.append(TextToken("'" if quoted == "" else other if quoted is None else quoted.replace("''", "'")))
        else:
            pieces.append(Time(match.group()))
    if at != len(pattern):
        raise ValueError(f"the quote in {pattern!r} is not closed")
    return pieces


def shown(time: Time, moment: datetime, names: Names) -> str:
    """The text of a part of a time. A slash in a locale's name becomes %2F."""
    return _SHOWN[time.pattern[0]](moment, len(time.pattern), names).replace("/", "%2F")


def step(times: Sequence[Time]) -> int:
    """The milliseconds in which the text of these parts stays the same, if the zone's offset does."""
    return min((_STEPS.get(time.pattern[0], 86_400_000) for time in times), default=86_400_000)
