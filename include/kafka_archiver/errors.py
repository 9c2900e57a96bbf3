"""The errors, by what the caller should do about them.

An orchestrator retries `TransientError` and gives up at once on every other `ArchiverError`.
Messages say what was found, what was expected and what to do, for the person on call.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

# The cause of a failure for which Airflow has no exception.
SILENCE = (
    "process ended without reporting an error (killed, out of memory, or its machine is gone), or Airflow could not "
    "store its result"
)

# What differs from failure to failure: the store's id of a request, an address or identifier in hexadecimal, a number.
_VARYING = re.compile(r"(?<=\brequest )[^\s(),;]+|0x[0-9a-f]+|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|\d+", re.IGNORECASE)


def shape(cause: str) -> str:
    """The cause without its figures and identifiers: two hours that fail for one reason have one shape."""
    return _VARYING.sub("#", cause)


class ArchiverError(Exception):
    """Base of every error raised on purpose by this package."""


class PermanentError(ArchiverError):
    """A retry would not help: a person has to act, or a setting has to change."""


class TransientError(ArchiverError):
    """A retry may help: a timeout, a throttled request, a broker that restarts."""


class ConfigError(PermanentError):
    """A setting is wrong; the message names the file, the key, what was expected and what was found."""


class DocumentError(PermanentError):
    """A ledger document cannot be read, or is not the document that its key promises."""


class IntegrityError(PermanentError):
    """The store or the account differs from what was promised: a missing, different or unexplained object or offset."""


class PolicyError(PermanentError):
    """The brokers' state needs a decision that the archive's policies leave to a person.

    `policy`: the deciding policy, if there is one; `where`: the partition; `choice`: the choice that goes on. The
    message is `found` and `advice`; `choices` has the command of each choice, the one that goes on first.
    """

    def __init__(
        self,
        message: str,
        policy: str = "",
        where: str = "",
        choice: str = "",
        advice: str = "",
        choices: tuple[str, ...] = (),
    ) -> None:
        super().__init__(f"{message} {advice}".rstrip())
        self.policy, self.where, self.choice = policy, where, choice
        self.found, self.advice, self.choices = message, advice, choices


class BadRecordError(PermanentError):
    """Records that the archive's format cannot hold, or whose value is too large or not what `value.decode` says.

    `records`: the reason for each offset, in offset order; `offset` and `reason` are those of the first record.
    """

    def __init__(self, topic: str, partition: int, records: Mapping[int, str], choices: str = "") -> None:
        self.records = dict(sorted(records.items()))
        self.offset, self.reason = next(iter(self.records.items()))
        others = len(self.records) - 1
        more = f"; and {others} more of the same batch" if others else ""
        super().__init__(
            f"{topic}[{partition}] offset {self.offset}: {self.reason}{more}{'. ' * bool(choices)}{choices}"
        )
        self._arguments = (topic, partition, self.records, choices)

    @classmethod
    def told(cls, message: str) -> Self:
        """The error as whoever shows it needs it: its message alone."""
        error = cls.__new__(cls)
        PermanentError.__init__(error, message)
        return error

    def __reduce__(self) -> tuple[type["BadRecordError"], tuple[str, int, Mapping[int, str], str]]:
        # A Spark task raises it and the driver catches it; the default would pickle only the message.
        return type(self), self._arguments


_KINDS: dict[str, Callable[[str], ArchiverError]] = {
    **{
        kind.__name__: kind
        for kind in (PermanentError, TransientError, ConfigError, DocumentError, IntegrityError, PolicyError)
    },
    BadRecordError.__name__: BadRecordError.told,
}


class Failure(NamedTuple):
    """An error as a value. Spark tasks hand it to the driver, and the driver to Airflow. `kind`: the error's class."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: ArchiverError) -> Self:
        """The error as the nearest class that can be made again from a message."""
        return cls(
            next((c.__name__ for c in type(error).__mro__ if c.__name__ in _KINDS), "PermanentError"), str(error)
        )

    def error(self) -> ArchiverError:
        """The error to raise."""
        return _KINDS[self.kind](self.message)

    def to_json(self) -> str:
        """The text of the file that a driver on the task's machine writes."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`.

        :raises ValueError: the text is something else.
        """
        found = json.loads(text)
        if not isinstance(found, dict) or found.get("kind") not in _KINDS or not isinstance(found.get("message"), str):
            raise ValueError("no failure")
        return cls(found["kind"], found["message"])
