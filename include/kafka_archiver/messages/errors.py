"""The errors, by what the caller should do about them.

An orchestrator retries `TransientError` and gives up at once on every other `ArchiverError`.
Messages say what was found, what was expected and what to do, for the person on call.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

from kafka_archiver.messages.actions import Action, from_dicts, to_dicts

# The cause of a failure for which Airflow has no exception.
SILENCE = (
    "process ended without reporting an error (killed, out of memory, marked as failed by a person, or its machine is "
    "gone), or Airflow could not store its result"
)

# A kind of failure that the next run mends: a person marked a task as done that had not run.
NOT_RUN = "task not run"

# What differs from failure to failure: the store's id of a request, an address or identifier in hexadecimal, a number.
_VARYING = re.compile(r"(?<=\brequest )[^\s(),;]+|0x[0-9a-f]+|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|\d+", re.IGNORECASE)


def shape(cause: str) -> str:
    """The cause without its figures and identifiers: two hours that fail for one reason have one shape."""
    return _VARYING.sub("#", cause)


# Between the words of a class's name.
_BETWEEN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def kind_in_words(error: BaseException) -> str:
    """Return the class of an error as words: "key error", "SSL error"."""
    parts = _BETWEEN.split(type(error).__name__)
    return " ".join(part if part.isupper() and len(part) > 1 else part.lower() for part in parts)


def error_in_words(error: BaseException) -> str:
    """Return an error as people read it: one of this package by its message, another one with its kind before it."""
    return str(error) if isinstance(error, ArchiverError) else f"{kind_in_words(error)}: {error}".removesuffix(": ")


class ArchiverError(Exception):
    """Base of every error raised on purpose by this package.

    `found`: what is wrong. `advice`: what to do, in words. `actions`: the exact commands, the best one first. `kinds`:
    the kinds of the findings of `status` that say the same.
    """

    def __init__(
        self, message: str, advice: str = "", actions: Iterable[Action] = (), kinds: Iterable[str] = ()
    ) -> None:
        super().__init__(f"{message} {advice}".rstrip())
        self.message, self.advice, self.actions, self.kinds = message, advice, tuple(actions), tuple(kinds)

    def advised(self, advice: str, actions: Iterable[Action] = ()) -> "ArchiverError":
        """Return the error with more advice, as the nearest class that can be made from values."""
        failure = Failure.of(self)
        more = f"{failure.advice} {advice}".lstrip()
        # A reason may end without a full stop.
        message = failure.message if failure.advice else f"{failure.message.rstrip('.')}."
        return failure._replace(message=message, advice=more, actions=(*failure.actions, *actions)).error()


class PermanentError(ArchiverError):
    """A retry would not help: a person has to act, or a setting has to change."""


class ColdObjectError(PermanentError):
    """An object lies in a storage class from which somebody has to restore it before it can be read."""


class TransientError(ArchiverError):
    """A retry may help: a timeout, a throttled request, a broker that restarts."""


class UncertainError(TransientError):
    """A transaction of a restore may or may not have been committed: only the target's log can tell."""


class FencedError(TransientError):
    """Another writer has taken over a partition that this one writes."""


class ConfigError(PermanentError):
    """A setting is wrong; the message names the file, the key, what was expected and what was found."""


class DocumentError(PermanentError):
    """A ledger document cannot be read, or is not the document that its key promises."""


class IntegrityError(PermanentError):
    """The store or the account differs from what was promised: a missing, different or unexplained object or offset."""


class PolicyError(PermanentError):
    """The brokers' state needs a decision that the archive's policies leave to a person.

    `policy`: the deciding policy, if there is one; `where`: the partition; `choice`: the choice that goes on.
    `actions` has the command of each choice, the one that goes on first.
    """

    def __init__(
        self,
        message: str,
        policy: str = "",
        where: str = "",
        choice: str = "",
        advice: str = "",
        actions: Iterable[Action] = (),
        kinds: Iterable[str] = (),
    ) -> None:
        super().__init__(message, advice, actions, tuple(kinds) or ((policy.replace("_", " "),) if policy else ()))
        self.policy, self.where, self.choice = policy, where, choice


class BadRecordError(PermanentError):
    """Records that the archive's format cannot hold, or whose value is too large or not what `value.decode` says.

    `records`: the reason for each offset, in offset order; `offset` and `reason` are those of the first record.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        records: Mapping[int, str],
        advice: str = "",
        actions: Iterable[Action] = (),
    ) -> None:
        self.records = dict(sorted(records.items()))
        self.offset, self.reason = next(iter(self.records.items()))
        further = len(self.records) - 1
        more = f"; and {further} more of the same batch" if further else ""
        message = f"{topic}[{partition}] offset {self.offset}: {self.reason}{more}{'.' * bool(advice)}"
        super().__init__(message, advice, actions)
        self._arguments = (topic, partition, self.records, advice, self.actions)

    @classmethod
    def without_records(
        cls, message: str, advice: str = "", actions: Iterable[Action] = (), kinds: Iterable[str] = ()
    ) -> Self:
        """Return the error as whoever shows it needs it: without its records."""
        error = cls.__new__(cls)
        PermanentError.__init__(error, message, advice, actions, kinds)
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        # A Spark task raises it and the driver catches it; the default would pickle only the message.
        return type(self), self._arguments


def _policy_error(
    message: str, advice: str = "", actions: Iterable[Action] = (), kinds: Iterable[str] = ()
) -> PolicyError:
    return PolicyError(message, advice=advice, actions=actions, kinds=kinds)


_KINDS: dict[str, Callable[[str, str, Iterable[Action], Iterable[str]], ArchiverError]] = {
    **{kind.__name__: kind for kind in (PermanentError, TransientError, ConfigError, DocumentError, IntegrityError)},
    PolicyError.__name__: _policy_error,
    BadRecordError.__name__: BadRecordError.without_records,
}


class Failure(NamedTuple):
    """An error as a value. Spark tasks hand it to the driver, and the driver to Airflow. `kind`: the error's class.

    `message`, `advice`, `actions`, `kinds`: see `ArchiverError`.
    """

    kind: str
    message: str
    advice: str = ""
    actions: tuple[Action, ...] = ()
    kinds: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: ArchiverError) -> Self:
        """The error as the nearest class that can be made again from values."""
        kind = next((c.__name__ for c in type(error).__mro__ if c.__name__ in _KINDS), "PermanentError")
        return cls(kind, error.message, error.advice, error.actions, error.kinds)

    def error(self) -> ArchiverError:
        return _KINDS[self.kind](self.message, self.advice, self.actions, self.kinds)

    def to_json(self) -> str:
        """The text of the file that a driver on the task's machine writes."""
        return json.dumps({**self._asdict(), "actions": to_dicts(self.actions)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`.

        :raises ValueError: the text is something else.
        """
        value = json.loads(text)
        if not isinstance(value, dict) or value.get("kind") not in _KINDS or not isinstance(value.get("message"), str):
            raise ValueError("no failure")
        kinds = tuple(map(str, value.get("kinds", ())))
        return cls(
            value["kind"], value["message"], str(value.get("advice", "")), from_dicts(value.get("actions")), kinds
        )
