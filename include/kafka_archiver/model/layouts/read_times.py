"""Times of text and numbers, in milliseconds since 1970."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation

from kafka_archiver.messages.foreign_text import record_value
from kafka_archiver.model.layouts.date_patterns import ENGLISH, Names, split
from kafka_archiver.model.layouts.frozen_zone import bounds, zone_of
from kafka_archiver.model.layouts.tokens import TextToken
from kafka_archiver.model.settings import EventTime
from kafka_archiver.values.intervals import to_ms

_PER_MS = {"s": Decimal(1000), "ms": Decimal(1), "us": Decimal("0.001"), "ns": Decimal("0.000001")}
ISO = "iso"
_FRACTION = re.compile(r"(\.\d{6})\d+")
# Python's readers take more, and would read the digits of a number as a date, and 2026_11_21 as a number.
_CLOCK = r"\d\d(?::?\d\d(?::?\d\d(?:[.,]\d+)?)?)?"
_ISO = re.compile(
    rf"(?:\d{{4}}-\d\d-\d\d|\d{{8}}|\d{{4}}-?W\d\d(?:-?\d)?)(?:[Tt ]{_CLOCK}(?: ?(?:Z|[+-]{_CLOCK}))?)?", re.ASCII
)
_DIGITS = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[Ee][+-]?\d+)?", re.ASCII)
_LONGEST = 60


class UnreadableTimeError(ValueError):
    """A text that is no time; the message says what it is."""


class Parser:
    """Reads times as the YAML says: numbers of a unit, or text by patterns."""

    def __init__(self, time: EventTime) -> None:
        self._zone = zone_of(time.timezone, time.zone_data)
        names: Names = time.names or ENGLISH
        patterns = time.patterns or (() if time.unit else (ISO,))
        self._patterns = [compiled(pattern, names) for pattern in patterns]
        # Without unit and patterns, a number is milliseconds.
        self._unit = time.unit or (None if time.patterns else "ms")
        self._expected = [*([f"a number of {self._unit}"] if self._unit else []), *patterns]

    def __call__(self, text: str | None) -> int:
        """The milliseconds.

        :raises UnreadableTimeError: the text is no such time.
        """
        if text is None:
            raise UnreadableTimeError("no UTF-8 text")
        if self._unit and (number := _number(text, self._unit)) is not None:
            first, last = bounds(UTC)
            if first <= number <= last:
                return number
            raise UnreadableTimeError(f"{record_value(text[:_LONGEST])}, outside the years 1 to 9999")
        for read in self._patterns:
            try:
                if (moment := read(text)) is not None:
                    return to_ms((moment if moment.tzinfo else moment.replace(tzinfo=self._zone)).astimezone(UTC))
            except (ValueError, OverflowError):
                continue
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        raise UnreadableTimeError(f"{record_value(repr(shown))}, expected {' or '.join(self._expected)}")


def _number(text: str, unit: str) -> int | None:
    if not _DIGITS.fullmatch(text.strip()):
        return None
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        # An exponent beyond all bounds.
        return None
    if abs(number.adjusted()) > 40:
        return None
    return math.floor(number * _PER_MS[unit])


def compiled(pattern: str, names: Names = ENGLISH) -> Callable[[str], datetime | None]:
    """Return a reader of text by a pattern of letters as Java has them; `iso` is ISO 8601.

    :raises ValueError: the pattern has no meaning.
    """
    if pattern == ISO:
        return _iso
    parts, letters = [], []
    for token in split(pattern):
        if isinstance(token, TextToken):
            parts.append(re.escape(token.text))
        else:
            parts.append(f"({_shape(token.pattern[0], len(token.pattern), names)})")
            letters.append(token.pattern)
    whole = re.compile("".join(parts), re.IGNORECASE)
    if not {"y", "Y", "u"} & {text[0] for text in letters}:
        raise ValueError("it has no year (yyyy)")

    def read(text: str) -> datetime | None:
        match = whole.fullmatch(text)
        return None if match is None else _moment(dict(zip(letters, match.groups(), strict=True)), names)

    return read


def _iso(text: str) -> datetime:
    if not _ISO.fullmatch(text.strip()):
        raise ValueError("not ISO 8601")
    return datetime.fromisoformat(_FRACTION.sub(r"\1", text.strip()))


def _shape(letter: str, length: int, names: Names) -> str:
    if letter in "yYu":
        return r"\d\d" if length == 2 else r"\d{4}"
    if (letter in "MLE" and length > 2) or letter in "EaG":
        return "|".join(sorted(map(re.escape, _names_of(letter, length, names)), key=len, reverse=True))
    if letter in "XxZ":
        return r"Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?"
    if letter in "Sn":
        return rf"\d{{{length}}}"
    if letter in "MdDHhkKms":
        return rf"\d{{{length}}}" if length > 1 else r"\d{1,3}" if letter == "D" else r"\d{1,2}"
    raise ValueError(
        f"{letter!r} is no part of a time that can be read, y M d D E a H h m s S X Z are; text stands in quotes"
    )


def _names_of(letter: str, length: int, names: Names) -> Sequence[str]:
    kind = {"M": "months", "L": "months", "E": "days", "a": "halves", "G": "eras"}[letter]
    return names[f"{kind}_short" if kind in ("months", "days") and length < 4 else kind]


def _moment(parts: Mapping[str, str], names: Names) -> datetime:
    """:raises ValueError: there is no such date."""
    numbers: dict[str, int] = {}
    zone: tzinfo | None = None
    half = None
    for letters, text in parts.items():
        letter = letters[0]
        if letter in "XxZ":
            zone = _zone(text)
        elif letter in "Sn":
            numbers["S"] = int(text[:6].ljust(6, "0"))
        elif letter == "a":
            half = [name.lower() for name in names["halves"]].index(text.lower())
        elif letter in "ML" and not text.isdecimal():
            listed = [name.lower() for name in _names_of("M", len(letters), names)]
            numbers["M"] = listed.index(text.lower()) + 1
        elif letter not in "EG":
            year = letter in "yYu"
            numbers["y" if year else "M" if letter == "L" else letter] = int(text) + 2000 * (year and len(letters) == 2)
    hour = numbers.get("H", numbers.get("k", 0) % 24)
    if "h" in numbers or "K" in numbers:
        hour = numbers.get("h", numbers.get("K", 0)) % 12 + 12 * (half or 0)
    day = date(numbers["y"], numbers.get("M", 1), numbers.get("d", 1))
    if "D" in numbers:
        day = date(numbers["y"], 1, 1) + timedelta(days=numbers["D"] - 1)
        if day.year != numbers["y"]:
            raise ValueError("no such day of the year")
    return datetime(
        day.year, day.month, day.day, hour, numbers.get("m", 0), numbers.get("s", 0), numbers.get("S", 0), zone
    )


def _zone(text: str) -> tzinfo:
    if text.upper() == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(6, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:6]))
    return timezone(-offset if text[0] == "-" else offset)
