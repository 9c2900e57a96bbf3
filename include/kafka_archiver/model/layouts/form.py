"""The form of an archive's keys: folders, then the name. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import assert_never

from kafka_archiver.model.layouts.date_patterns import ENGLISH, Names
from kafka_archiver.model.layouts.tokens import (
    FIXED,
    Field,
    Offsets,
    Own,
    Partition,
    Piece,
    Start,
    TextToken,
    Time,
    TimesToken,
    Token,
    TopicToken,
    pieces,
)
from kafka_archiver.model.object_keys import NO_TIME, ObjectName, decode, encode, is_reserved

# The name of hourly's objects and of all dead letters.
NAME: tuple[Token, ...] = (TopicToken(), TextToken("+"), Partition(), TextToken("+"), Start(20))
_SUFFIX = r"(?:\+g(?P<generation>\d+))?(?:\+r(?P<revision>\d+))?(?:\+k\d+)?(?:\+s\d+)?(?:\.[^/]*)?"


@dataclass(frozen=True, eq=False)
class PathForm:
    """The form of the keys of an archive's objects.

    `joint`: what stands between the folders and the name. `columns`: those that readers take from the paths.
    `missing`: what happens to a record without one of the values: `bad_record`, `null` (then `null_name` stands for
    it) or `skip`. `longest`: bytes of one encoded value. `zone`, `zone_data`, `every_ms`: of the time. `names`: of the
    locale.
    """

    folders: tuple[Token, ...]
    name: tuple[Token, ...] = NAME
    joint: str = "/"
    columns: tuple[str, ...] = ()
    missing: str = "bad_record"
    null_name: str = NO_TIME
    longest: int = 200
    zone: str = "UTC"
    zone_data: str = ""
    every_ms: int = 0
    names: Names = field(default_factory=lambda: ENGLISH)

    def __post_init__(self) -> None:
        # Each slash ends a token, so that the folders can be told apart.
        object.__setattr__(self, "folders", tuple(_split(self.folders)))

    @cached_property
    def lead(self) -> int:
        """Return the number of the folders' tokens before everything that varies within a topic."""
        if all(isinstance(token, TextToken | TopicToken) for token in self.folders):
            return len(self.folders)
        known = 0
        for number, token in enumerate(self.folders):
            if not isinstance(token, TextToken | TopicToken):
                break
            if isinstance(token, TextToken) and token.text.endswith("/"):
                known = number + 1
        return known

    @cached_property
    def path(self) -> tuple[Piece, ...]:
        """Return the tokens of the folders below a topic's prefix."""
        return pieces(self.folders[self.lead :])

    @property
    def whole(self) -> bool:
        """Return True if a topic's prefix is all that stands before the name."""
        return self.lead == len(self.folders)

    @property
    def is_shared(self) -> bool:
        """Return True if a topic's prefix may have objects of other topics."""
        return not any(isinstance(token, TopicToken) for token in self.folders[: self.lead])

    def prefix(self, topic: str) -> str:
        """The prefix of the keys of all objects of a topic; empty if none is common to them."""
        tokens = self.folders[: self.lead]
        text = "".join(token.text if isinstance(token, TextToken) else encode(topic) for token in tokens)
        return text + self.joint * self.whole

    def key(self, place: ObjectName, path: str, extension: str, schemas: str = "") -> str:
        """The key of the object with those records of a chunk that are filed under `path`.

        :param path: below the topic's prefix. :param extension: with its dot.
        :param schemas: as in `object_keys.object_key`.
        """
        suffix = f"+g{place.generation}" * bool(place.generation) + f"+r{place.revision}" * bool(place.revision)
        name = "".join(fixed(token, place) for token in self.name)
        return f"{self.prefix(place.topic)}{path}{self.joint * (not self.whole)}{name}{suffix}{schemas}{extension}"

    def place(self, key: str) -> ObjectName | None:
        """The place in a key of this form; None for any other key. Not for dead letters."""
        match = None if is_reserved(key) else self._key.fullmatch(key)
        if match is None:
            return None
        topic, partition, start = (match[self._groups[kind][0]] for kind in ("topic", "partition", "start"))
        own = (int(match[name] or 0) for name in ("generation", "revision"))
        place = ObjectName(decode(topic), int(partition), int(start), *own)
        # Each object has one key: not also one with other zeros, or with another place in its folders.
        return place if all(match[group] == fixed(token, place) for group, token in self._fixed) else None

    @cached_property
    def also(self) -> str:
        """The characters that stand between two values of a folder; they are encoded in values."""
        return "".join(sorted({text[0] for text in self._between()}))

    @cached_property
    def _tokens(self) -> tuple[Piece, ...]:
        return pieces((*self.folders, TextToken(self.joint), *self.name))

    @cached_property
    def _fixed(self) -> list[tuple[str, Token]]:
        return [
            (f"f{n}", token)
            for n, token in enumerate(self._tokens)
            if isinstance(token, TopicToken | Partition | Start)
        ]

    @cached_property
    def _groups(self) -> dict[str, list[str]]:
        kinds = {"topic": TopicToken, "partition": Partition, "start": Start}
        return {kind: [g for g, token in self._fixed if isinstance(token, of)] for kind, of in kinds.items()}

    @cached_property
    def _key(self) -> re.Pattern[str]:
        value = f"[^/{re.escape(self.also)}]*"
        parts = []
        for number, token in enumerate(self._tokens):
            match token:
                case TextToken():
                    parts.append(re.escape(token.text))
                case TopicToken():
                    # Again it is the same; else the text between the two could be part of it.
                    first = self._groups["topic"][0]
                    again = rf"(?P={first})" if first != f"f{number}" else "[A-Za-z0-9._~%-]+"
                    parts.append(rf"(?P<f{number}>{again})")
                case Partition() | Start():
                    parts.append(rf"(?P<f{number}>\d+)")
                case TimesToken():
                    parts.append("[^/]*?")
                case Time() | Field() | Offsets() | Own():
                    parts.append(value)
                case _:
                    assert_never(token)
        return re.compile("".join(parts) + _SUFFIX)

    def _between(self) -> list[str]:
        """The texts between two varying tokens of one folder.

        :raises ValueError: there is none, or it could be part of a value.
        """
        patterns = []
        waiting: Sequence[Piece] = ()
        for token in self._tokens:
            if isinstance(token, TextToken):
                waiting = () if "/" in token.text else (*waiting, token) if waiting else ()
                continue
            if waiting:
                between = "".join(t.text for t in waiting[1:] if isinstance(t, TextToken))
                values = [t for t in (waiting[0], token) if not isinstance(t, FIXED)]
                if not between or (values and (between[0].isalnum() or between[0] in "%+")):
                    raise ValueError(
                        "expected text between two placeholders of one folder or name that begins with no letter, "
                        f"digit, % or +, such as - or _; found {between!r}"
                    )
                if not values and (between[0].isdigit() or between[-1].isdigit()):
                    raise ValueError(f"expected no digit beside a number in a name, found {between!r}")
                if values:
                    patterns.append(between)
            waiting = (token,)
        return patterns

    def check(self) -> None:
        """Check that every object has a key of its own, from which its place can be read.

        :raises ValueError: not so; the message says what to change.
        """
        self._check_text()
        if any(not isinstance(token, FIXED) for token in self.name):
            raise ValueError("expected only {topic}, {partition} and {start} in the name")
        self._between()
        have = [kind for kind, groups in self._groups.items() if groups]
        if lacks := [f"{{{kind}}}" for kind in ("topic", "partition", "start") if kind not in have]:
            raise ValueError(
                f"expected {' and '.join(lacks)} in the name or as a folder: else two objects could have one key"
            )
        if not any(isinstance(token, Start) for token in self.name):
            raise ValueError("expected {start} in the name: else two chunks could have one key")
        if any(isinstance(token, Start) for token in self.folders):
            raise ValueError("expected {start} only in the name; {offset/10000} makes folders of offsets")
        if isinstance(self.name[-1], TopicToken):
            raise ValueError("expected something after {topic} at the end of the name, such as +{start}")
        if self.missing == "null" and set(self.null_name) & set(self.also):
            raise ValueError(f"expected a `null_name` without {self.also!r}, which stand between values")

    def _check_text(self) -> None:
        whole = "".join(token.text if isinstance(token, TextToken) else "x" for token in self.folders)
        name = "".join(token.text if isinstance(token, TextToken) else "x" for token in self.name)
        folders = whole.split("/")
        if not all(folders) or {".", ".."} & set(folders):
            raise ValueError(
                f"expected folders with names, divided by single slashes, found {whole!r} (x: placeholders)"
            )
        if not name or "/" in name:
            raise ValueError(f"expected a name without slashes, found {name!r} (x: placeholders)")
        if name.startswith(("_", ".")):
            raise ValueError(f"expected a name that does not begin with _ or ., which Spark skips; found {name!r}")
        if whole.startswith("_"):
            raise ValueError("expected a path that does not begin with _, as the archiver's own folders do")
        for text in (whole, name):
            if any(ord(c) < 32 or c in "\\\x7f" for c in text):
                raise ValueError(f"expected no control characters and backslashes, found {text!r}")
        marks = re.compile(r"\+[grks]$|\+[grks]\d")
        texts = [token.text for token in self.name if isinstance(token, TextToken)]
        topics = [
            token.text
            for token, following in pairwise(self.name)
            if isinstance(token, TextToken) and isinstance(following, TopicToken)
        ]
        if any(marks.search(text) for text in texts) or any(text.endswith("+") for text in topics):
            raise ValueError(
                "expected a name without +g, +r, +k and +s before a number, and without + before {topic}, because the "
                f"archiver appends such; found {name!r}"
            )


def _split(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        if isinstance(token, TextToken):
            yield from (TextToken(text) for text in re.findall(r"[^/]*/|[^/]+", token.text))
        else:
            yield token


def fixed(token: Piece, place: ObjectName) -> str:
    """The text of a token that is the same for a whole chunk."""
    match token:
        case TextToken():
            return token.text
        case TopicToken():
            return encode(place.topic)
        case Partition():
            return f"{place.partition:0{token.digits}d}"
        case Start():
            return f"{place.start:0{token.digits}d}"
        case Time() | Field() | Offsets() | Own() | TimesToken():
            raise TypeError(f"{token} depends on the record")
        case _:
            assert_never(token)
