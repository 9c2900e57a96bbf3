"""Lenses' statements: `INSERT INTO bucket:prefix SELECT * FROM topic PARTITIONBY … STOREAS … WITH_FLUSH_COUNT = …`."""

import re
from typing import NamedTuple

from kafka_archiver.errors import ConfigError

# A comment starts a line or follows a space: names may have dashes.
_BETWEEN = re.compile(r"(?:\s+|(?:^|(?<=\s))--[^\n]*)*")
# A word, a text in quotes, or a sign.
_TOKEN = re.compile(r"(?:(`[^`]*`|'[^']*'|\"[^\"]*\")|([(),=;])|([^\s`'\"(),=;]+))")
_OPTIONS = ("WITH_FLUSH_COUNT", "WITH_FLUSH_SIZE", "WITH_FLUSH_INTERVAL", "WITHPARTITIONER", "LIMIT", "BATCH")
_CLAUSES = ("PARTITIONBY", "NOPARTITION", "STOREAS", "PROPERTIES", *_OPTIONS)


class Statement(NamedTuple):
    """One statement.

    :param fields: after SELECT; `("*",)` for all.
    :param partition_by: the paths after PARTITIONBY, each as its parts without quotes: ("_value", "a", "b").
    :param options: the WITH… clauses and PROPERTIES, by their names as written (properties in lower case).
    """

    bucket: str
    prefix: str
    fields: tuple[str, ...]
    topic: str
    partition_by: tuple[tuple[str, ...], ...]
    store_as: str
    options: dict[str, str]


def parse(text: str) -> list[Statement]:
    """The statements of a text, separated by semicolons. Words of the language have any case.

    :raises ConfigError: names the statement, what was found and what was expected.
    """
    tokens = _tokens(text)
    found: list[Statement] = []
    while tokens:
        if tokens[0] == ";":
            tokens.pop(0)
            continue
        found.append(_Reader(tokens, len(found) + 1).statement())
    if not found:
        raise ConfigError("KCQL: expected INSERT INTO bucket:prefix SELECT * FROM topic …; found nothing")
    return found


def _tokens(text: str) -> list[str]:
    tokens, place = [], _skipped(text, 0)
    while place < len(text):
        found = _TOKEN.match(text, place)
        if not found:
            raise ConfigError(f"KCQL: a quote is not closed: {text[place : place + 20].strip()!r}")
        tokens.append(found[1] or found[2] or found[3])
        place = _skipped(text, found.end())
    return tokens


def _skipped(text: str, place: int) -> int:
    """The place of the next token, after spaces and comments."""
    found = _BETWEEN.match(text, place)
    return found.end() if found else place


def _plain(word: str) -> str:
    return word[1:-1] if word[:1] in "`'\"" and len(word) > 1 else word


class _Reader:
    """Takes one statement from the tokens."""

    def __init__(self, tokens: list[str], number: int) -> None:
        self._tokens, self._number = tokens, number

    def statement(self) -> Statement:
        self._words("INSERT", "INTO")
        bucket, _, prefix = self._address().partition(":")
        self._words("SELECT")
        fields = [self._any("a field or *")]
        while self._next() == ",":
            self._tokens.pop(0)
            fields.append(self._any("a field"))
        self._words("FROM")
        topic = self._joined()
        by: tuple[tuple[str, ...], ...] = ()
        store_as = ""
        options: dict[str, str] = {}
        while (clause := self._next().upper()) not in ("", ";"):
            self._tokens.pop(0)
            if clause == "PARTITIONBY":
                by = tuple(self._paths())
            elif clause == "STOREAS":
                store_as = _plain(self._any("a format")).upper()
                if self._next() == "(":
                    options |= self._properties()
            elif clause == "PROPERTIES":
                options |= self._properties()
            elif clause in _OPTIONS:
                if self._next() == "=":
                    self._tokens.pop(0)
                options[clause] = _plain(self._any("a value"))
            elif clause != "NOPARTITION":
                raise self._error(f"{', '.join(_CLAUSES)} or the end", clause)
        return Statement(bucket, prefix, tuple(map(_plain, fields)), topic, by, store_as, options)

    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _any(self, expected: str) -> str:
        if self._next() in ("", ";", ",", "(", ")", "="):
            raise self._error(expected, self._next())
        return self._tokens.pop(0)

    def _words(self, *words: str) -> None:
        for word in words:
            if self._next().upper() != word:
                raise self._error(word, self._next())
            self._tokens.pop(0)

    def _address(self) -> str:
        """Bucket and prefix; quotes may be around each or both."""
        last = self._any("a bucket")
        found = _plain(last)
        while last.endswith(":") or self._next().startswith(":"):
            last = self._any("a prefix")
            found += _plain(last)
        return found

    def _joined(self) -> str:
        return _plain(self._any("a topic"))

    def _paths(self) -> list[tuple[str, ...]]:
        found = []
        while True:
            text = self._any("a field")
            # `_value.`a.b`` is three tokens without white space; none of them is a clause.
            while self._next()[:1] == "`" and text.endswith("."):
                text += self._tokens.pop(0)
            found.append(tuple(_plain(part) for part in re.findall(r"`[^`]*`|'[^']*'|[^.`']+", text)))
            if self._next() != ",":
                return found
            self._tokens.pop(0)

    def _properties(self) -> dict[str, str]:
        self._words("(")
        found = {}
        while self._next() != ")":
            name = _plain(self._any("a property"))
            self._words("=")
            found[name.lower()] = _plain(self._any("a value"))
            if self._next() == ",":
                self._tokens.pop(0)
        self._tokens.pop(0)
        return found

    def _error(self, expected: str, found: str) -> ConfigError:
        return ConfigError(f"KCQL, statement {self._number}: expected {expected}; found {found or 'the end'!r}")
