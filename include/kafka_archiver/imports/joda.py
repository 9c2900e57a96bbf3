"""Confluent's `path.format`, `timezone` and `locale`: Joda's and Java's meaning of them here. Pure."""

import re

from kafka_archiver.model.layouts.date_patterns import split, tokens_of
from kafka_archiver.model.layouts.tokens import Time

# Zones that have had this offset, and no other, since 1970.
_HALVES = {"+04:30": "Asia/Kabul", "+05:30": "Asia/Kolkata", "+06:30": "Asia/Yangon", "+09:30": "Australia/Darwin",
           "-09:30": "Pacific/Marquesas"}  # fmt: skip
NO_ZONE = "no named zone has had this offset at all times: `store.layout.timezone` takes names like Asia/Tehran"
_OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d))?")
# Languages of which Java has names. Any other text has those of its root, which are English and short.
_WORDS = """
ar be bg ca cs da de el en es et fi fr ga he hi hr hu id is it ja ko lt lv mk ms mt nl no nb nn pl pt ro ru sk sl sq sr
sv th tr uk vi zh
"""
_LANGUAGES = frozenset(_WORDS.split())


def pattern_of(pattern: str, delimiter: str, zone: str) -> str:
    """Return a pattern by our letters, which are Joda's but for the zone's name.

    :param delimiter: of folders; one at the end is dropped, as the partitioner does.
    :raises ValueError: a letter has no equal here.
    """
    trimmed = pattern.removesuffix(delimiter) if delimiter else pattern
    if any(isinstance(token, Time) and token.pattern[:3] == "ZZZ" for token in split(trimmed)):
        parts = []
        for token in split(trimmed):
            text = zone if isinstance(token, Time) and token.pattern[:3] == "ZZZ" else getattr(token, "text", None)
            parts.append(token.pattern if text is None else quoted(text))  # type: ignore[union-attr]
        trimmed = "".join(parts)
    tokens_of(trimmed)
    return trimmed


def quoted(text: str) -> str:
    """Return a text as a pattern has it."""
    return re.sub(r"[A-Za-z']+", lambda run: "'" + run[0].replace("'", "''") + "'", text)


def braced(pattern: str) -> str:
    """Return a pattern as `store.layout: {path: …}` has it: each part of the time in braces.

    :raises ValueError: a text of it has a brace.
    """
    parts = []
    for token in tokens_of(pattern):
        if isinstance(token, Time):
            parts.append("{" + token.pattern + "}")
        elif set(token.text) & set("{}"):
            raise ValueError(f"{token.text!r} has a brace")
        else:
            parts.append(token.text)
    return "".join(parts)


def zone_of(zone: str) -> tuple[str, bool]:
    """Return the name of a zone that has this zone's times since 1970, and whether there is one.

    Offsets of whole hours have a zone in the database of time zones, and some with half hours.
    """
    offset = _OFFSET.fullmatch(zone)
    if not offset:
        return zone, True
    sign, hours, minutes = offset[1], int(offset[2]), offset[3] or "00"
    if minutes == "00":
        if hours == 0:
            return "UTC", True
        # Their signs are those of POSIX: Etc/GMT-5 is five hours ahead.
        name = f"Etc/GMT{'-' if sign == '+' else '+'}{hours}"
        return (name, True) if hours <= (14 if sign == "+" else 12) else (zone, False)
    named_zone = _HALVES.get(f"{sign}{hours:02d}:{minutes}")
    return (named_zone, True) if named_zone else (zone, False)


def locale_of(pattern: str, locale: str) -> tuple[str, str]:
    """Return the locale of a pattern's names, empty for English, and what a person has to check, empty for nothing.

    The connector makes `new Locale(text)` of it, so `de` is German, and `de-DE` or `US` is a language that does not
    exist: its names are those of Java's root.
    """
    try:
        times = [token.pattern for token in split(pattern) if isinstance(token, Time)]
    except ValueError:
        return "", ""
    named = [run for run in times if run[0] in "EaG" or (run[0] == "M" and len(run) > 2)]
    plain = locale.lower()
    if not named or plain == "en":
        return "", ""
    if plain in _LANGUAGES:
        return plain, "the names are those of Unicode's CLDR, as Java's since 9; those of Java 8 may be others"
    long = [run for run in named if run[0] == "G" or (run[0] in "ME" and len(run) > 3)]
    if long:
        return "", (
            f"Java knows no language {locale!r}, so the connector's names for {', '.join(long)} were its root's: "
            "short English ones (Nov) since Java 9, long ones (November) in Java 8. Here they are long: see its folders"
        )
    return "", ""
