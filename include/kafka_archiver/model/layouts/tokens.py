"""The tokens of which folders and names of objects are made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TextToken:
    """The same text in every path."""

    text: str


@dataclass(frozen=True, slots=True)
class TopicToken:
    """The topic's name, percent-encoded."""


@dataclass(frozen=True, slots=True)
class Partition:
    """The partition's number, with at least so many digits."""

    digits: int = 1


@dataclass(frozen=True, slots=True)
class Start:
    """The first offset of the chunk, with at least so many digits. Only names have it."""

    digits: int = 1


@dataclass(frozen=True, slots=True)
class Time:
    """A unit of the record's time. `pattern`: one letter, repeated, as in patterns of Joda: `yyyy`."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Field:
    """A value of the record: `value`, `value.a.b`, `key`, `key.a` or `header.x`.

    `buckets`: if not 0, the number of the bucket that the value's CRC-32 gives, instead of the value.
    """

    field: str
    buckets: int = 0


@dataclass(frozen=True, slots=True)
class Offsets:
    """The first offset of the bucket of so many offsets that has the record; 20 digits."""

    size: int


@runtime_checkable
class Own(Protocol):
    """A token of a layout that another distribution adds."""

    def labels(self, batch: "pa.RecordBatch") -> Sequence[str | None]:
        """The text of each record, which is then percent-encoded; None: it has none. By the record alone."""


@dataclass(frozen=True, slots=True)
class TimesToken:
    """Everything in one folder from the first to the last part of the time. It is one null if there is no time."""

    tokens: tuple[TextToken | Time, ...]


Token = TextToken | TopicToken | Partition | Start | Time | Field | Offsets | Own
Piece = Token | TimesToken
# Tokens with one value for all records of a chunk.
FIXED = (TextToken, TopicToken, Partition, Start)


def needs(tokens: Sequence[Token]) -> set[str]:
    """The columns of Kafka that the tokens need: value, key, headers."""
    roots = {token.field.split(".")[0] for token in tokens if isinstance(token, Field)}
    return {"headers" if name == "header" else name for name in roots}


def pieces(tokens: Sequence[Token]) -> tuple[Piece, ...]:
    """The tokens, those of times joined."""
    pieces_of_text: list[Piece] = []
    at = 0
    while at < len(tokens):
        end = at + 1
        if isinstance(tokens[at], Time):
            for number in range(at + 1, len(tokens)):
                token = tokens[number]
                if isinstance(token, Time):
                    end = number + 1
                elif not isinstance(token, TextToken) or "/" in token.text:
                    break
            pieces_of_text.append(TimesToken(tuple(t for t in tokens[at:end] if isinstance(t, TextToken | Time))))
        else:
            pieces_of_text.append(tokens[at])
        at = end
    return tuple(pieces_of_text)
