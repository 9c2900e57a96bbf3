"""Lenses' statements: `INSERT INTO bucket:prefix SELECT * FROM topic PARTITIONBY … STOREAS … WITH_FLUSH_COUNT = …`."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_archiver.messages.errors import ConfigError

# A comment starts a line or follows a space: names may have dashes.
_BETWEEN = re.compile(r"(?:\s+|(?:^|(?<=\s))--[^\n]*)*")
# A text in quotes, a sign, or a word.
# A quote that is not closed ends with the statement.
_TOKEN = re.compile(r"(`[^`;]*`|'[^']*'|\"[^\"]*\"|[`'\"][^;]*|[(),=;]|[^\s`'\"(),=;]+)")
# A reference like ${env:BUCKET}, which Kafka Connect replaces before, has colons of its own.
_BUCKET = re.compile(r"(?:\$\{[^{}]*\}|[^:])*")
_OPTIONS = ("WITH_FLUSH_COUNT", "WITH_FLUSH_SIZE", "WITH_FLUSH_INTERVAL", "WITHPARTITIONER", "LIMIT", "BATCH")
_CLAUSES = ("PARTITIONBY", "NOPARTITION", "STOREAS", "PROPERTIES", *_OPTIONS)

# The order of the connector's grammar.
_RANKS = {"BATCH": 1, "PARTITIONBY": 2, "NOPARTITION": 2, "STOREAS": 3, "PROPERTIES": 6, "LIMIT": 5}
_OLD = ("WITH_FLUSH_COUNT", "WITH_FLUSH_SIZE", "WITH_FLUSH_INTERVAL", "WITHPARTITIONER")
_RANKS |= dict.fromkeys(_OLD, 4)


class Statement(NamedTuple):
    """One statement.

    :param fields: after SELECT; `("*",)` for all.
    :param partition_by: the paths after PARTITIONBY, each as its parts without quotes: ("_value", "a", "b").
    :param late: the first clause that is out of the connector's order, which reads neither it nor what follows.
    :param options: the WITH… clauses and PROPERTIES, by their names as written (properties in lower case).
    """

    bucket: str
    prefix: str
    fields: tuple[str, ...]
    topic: str
    partition_by: tuple[tuple[str, ...], ...]
    store_as: str
    options: dict[str, str]
    no_partition: bool = False
    late: str = ""


class Parsed(NamedTuple):
    """The statements by their number in the text, and what is wrong with the others."""

    statements: dict[int, Statement]
    faults: tuple[str, ...]


def parse(text: str) -> Parsed:
    """Return the statements of a text, separated by semicolons. Words of the language have any case.

    :raises ConfigError: there is no good statement; the message has a line for each of the others.
    """
    tokens = _tokens(text)
    statements: dict[int, Statement] = {}
    faults: list[str] = []
    while tokens:
        if tokens[0] == ";":
            tokens.pop(0)
            continue
        number = len(statements) + len(faults) + 1
        try:
            statements[number] = _Reader(tokens, number).statement()
        except ConfigError as error:
            faults.append(str(error))
            while tokens and tokens[0] != ";":
                tokens.pop(0)
    if not statements:
        expected = "KCQL: expected INSERT INTO bucket:prefix SELECT * FROM topic …; found nothing"
        raise ConfigError("\n".join(faults) or expected)
    return Parsed(statements, tuple(faults))


def _tokens(text: str) -> list[str]:
    tokens, place = [], _skipped(text, 0)
    while match := _TOKEN.match(text, place):
        tokens.append(match[0])
        place = _skipped(text, match.end())
    return tokens


def _skipped(text: str, place: int) -> int:
    """Return the place of the next token, after spaces and comments."""
    match = _BETWEEN.match(text, place)
    return match.end() if match else place


def _plain(word: str) -> str:
    return word[1:-1] if word[:1] in "`'\"" and len(word) > 1 else word


@dataclass
class _Clauses:
    """The clauses behind the topic."""

    partition_by: tuple[tuple[str, ...], ...] = ()
    store_as: str = ""
    options: dict[str, str] = field(default_factory=dict)
    no_partition: bool = False


class _Reader:
    """Takes one statement from the tokens."""

    def __init__(self, tokens: list[str], number: int) -> None:
        self._tokens, self._number = tokens, number

    def statement(self) -> Statement:
        self._words("INSERT", "INTO")
        address = self._address()
        bucket = _BUCKET.match(address)[0]  # type: ignore[index] # matches anything
        prefix = address[len(bucket) + 1 :]
        if not bucket:
            raise self._error("a bucket", address)
        if _BUCKET.match(prefix)[0] != prefix:  # type: ignore[index] # matches anything
            raise self._error("one colon, between bucket and prefix", address)
        self._words("SELECT")
        fields = [self._any("a field or *")]
        while self._next() == ",":
            self._tokens.pop(0)
            fields.append(self._any("a field"))
        self._words("FROM")
        topic = _plain(self._any("a topic"))
        if self._next().upper() == "IGNORE":
            # The sink writes all fields, whatever SELECT and IGNORE name.
            self._tokens.pop(0)
            fields += [f"IGNORE {'.'.join(path)}" for path in self._paths()]
        late = ""
        clauses, rank = _Clauses(), 0
        while (clause := self._next().upper()) not in ("", ";"):
            self._tokens.pop(0)
            # The connector's parser stops at a clause out of its order, without an error.
            own = _RANKS.get(clause, 0)
            late = late or (clause if own < rank or (own == rank and clause not in _OLD) else "")
            rank = max(rank, _RANKS.get(clause, 0))
            self._clause(clause, _Clauses() if late else clauses)
        return Statement(bucket, prefix, tuple(map(_plain, fields)), topic, **vars(clauses), late=late)

    def _clause(self, clause: str, clauses: "_Clauses") -> None:
        """Take what belongs to a clause."""
        if clause == "PARTITIONBY":
            clauses.partition_by = tuple(self._paths())
            texts = [".".join(path).lower() for path in clauses.partition_by]
            if twice := [text for text in texts if texts.count(text) > 1]:
                raise self._error("each field once", twice[0])
        elif clause == "STOREAS":
            clauses.store_as = _plain(self._any("a format")).upper()
            if self._next() == "(":
                clauses.options |= self._properties()
        elif clause == "PROPERTIES":
            clauses.options |= self._properties()
        elif clause in _OPTIONS:
            if self._next() == "=":
                self._tokens.pop(0)
            clauses.options[clause] = _plain(self._any("a value"))
        elif clause == "NOPARTITION":
            clauses.no_partition = True
        else:
            raise self._error(f"{', '.join(_CLAUSES)} or the end", clause)

    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _any(self, expected: str) -> str:
        if self._next() in ("", ";", ",", "(", ")", "="):
            raise self._error(expected, self._next())
        token = self._tokens.pop(0)
        if token[0] in "`'\"" and (len(token) == 1 or token[-1] != token[0]):
            raise self._error("the end of the quote", token)
        return token

    def _words(self, *words: str) -> None:
        for word in words:
            if self._next().upper() != word:
                raise self._error(word, self._next())
            self._tokens.pop(0)

    def _address(self) -> str:
        """Bucket and prefix; quotes may be around each or both."""
        last = self._any("a bucket")
        address = _plain(last)
        while last.endswith(":") or self._next().startswith(":"):
            last = self._any("a prefix")
            address += _plain(last)
        return address

    def _paths(self) -> list[tuple[str, ...]]:
        paths = []
        while True:
            text = self._any("a field")
            # `_value.`a.b`` is three tokens without white space; none of them is a clause.
            while self._next()[:1] == "`" and text.endswith("."):
                text += self._tokens.pop(0)
            parts = tuple(_plain(part) for part in re.findall(r"`[^`]*`|'[^']*'|[^.`']+", text))
            if not all(parts) or not parts:
                raise self._error("a field", text)
            paths.append(parts)
            if self._next() != ",":
                return paths
            self._tokens.pop(0)

    def _properties(self) -> dict[str, str]:
        self._words("(")
        properties = {}
        while self._next() != ")":
            name = _plain(self._any("a property"))
            self._words("=")
            properties[name.lower()] = _plain(self._any("a value"))
            if self._next() == ",":
                self._tokens.pop(0)
        self._tokens.pop(0)
        return properties

    def _error(self, expected: str, actual: str) -> ConfigError:
        return ConfigError(f"KCQL, statement {self._number}: expected {expected}; found {actual[:40] or 'the end'!r}")
