"""Templates of folders and names: text with placeholders in braces."""

import re

from kafka_archiver.model.layouts.date_patterns import tokens_of
from kafka_archiver.model.layouts.tokens import Field, Offsets, Partition, Start, TextToken, Token, TopicToken

_PIECE = re.compile(r"\{([^{}]*)\}|([^{}]+)")
_NUMBER = re.compile(r"(partition|start)(?::(\d{1,2}))?")
_FIELD = re.compile(r"(?s:(?:value|key)(?:\..+)?|header\..+)")
_BUCKET = re.compile(r"offset/([1-9]\d{0,17})")
EXPECTED = "{topic}, {partition}, {start}, {value.a.b}, {key}, {header.x}, {offset/10000}, or a time like {yyyy-MM-dd}"


def parsed(template: str) -> tuple[Token, ...]:
    """The tokens of a template.

    :raises ValueError: a brace is not closed, or a placeholder means nothing.
    """
    tokens: list[Token] = []
    at = 0
    for match in _PIECE.finditer(template):
        if match.start() != at:
            break
        at = match.end()
        placeholder, text = match.groups()
        tokens += [TextToken(text)] if placeholder is None else _placeholder(placeholder)
    if at != len(template):
        raise ValueError(f"a brace in {template!r} has no other brace")
    return tuple(tokens)


def field_of(name: str) -> str:
    """The name of a value of the record, checked.

    :raises ValueError: it is not `value`, `key`, `header`, or a field of them.
    """
    if not _FIELD.fullmatch(name) or "" in name.split("."):
        raise ValueError(f"expected a field like value.country, key, key.id or header.x, found {name!r}")
    if "`" in name and not name.startswith("header."):
        raise ValueError(
            f"expected a field without backticks, found {name!r}: give a name that has dots another one first "
            "(`transform.steps`: `rename: {value.`a.b`: ab}`), and file by that"
        )
    return name


def _placeholder(inside: str) -> list[Token]:
    if inside == "topic":
        return [TopicToken()]
    if match := _NUMBER.fullmatch(inside):
        digits = int(match[2] or 1)
        return [Partition(digits) if match[1] == "partition" else Start(digits)]
    if _FIELD.fullmatch(inside):
        return [Field(field_of(inside))]
    if match := _BUCKET.fullmatch(inside):
        return [Offsets(int(match[1]))]
    try:
        tokens = tokens_of(inside)
    except ValueError as error:
        raise ValueError(f"the placeholder {{{inside}}}: expected {EXPECTED} ({error})") from None
    if not tokens:
        raise ValueError(f"an empty placeholder {{}}: expected {EXPECTED}")
    return list(tokens)
