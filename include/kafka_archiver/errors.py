"""What can go wrong, by what the caller should do about it.

An orchestrator retries `TransientError` and gives up at once on every other `ArchiverError`.
Messages say what was found, what was expected and what to do, in words for the person on call.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple, Self


class ArchiverError(Exception):
    """Base of every error raised on purpose by this package."""


class PermanentError(ArchiverError):
    """Trying again changes nothing: a person (or a setting) has to."""


class TransientError(ArchiverError):
    """Trying again may help: a timeout, a throttled request, a broker that restarts."""


class ConfigError(PermanentError):
    """A setting is wrong; the message names the file, the key, what was expected and what was found."""


class DocumentError(PermanentError):
    """A ledger document cannot be read as what it claims to be."""


class IntegrityError(PermanentError):
    """What is stored is not what was promised: a missing, different or unexplained object or offset."""


class PolicyError(PermanentError):
    """The brokers' state needs a decision that the archive's policies leave to a person.

    `policy`: which one decides, if it is one; `where`: the partition; `choice`: with which it goes on. The message is
    what was `found`, and `advice`; `choices` has the command of each choice, that which goes on first.
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

    `records` says why of each offset, in offset order; `offset` and `reason` are the first one's.
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

    def __reduce__(self) -> tuple[type["BadRecordError"], tuple[str, int, Mapping[int, str], str]]:
        # Raised in a Spark task, caught in the driver: the default would pickle the message alone.
        return type(self), self._arguments


_KINDS: dict[str, type[ArchiverError]] = {
    kind.__name__: kind
    for kind in (PermanentError, TransientError, ConfigError, DocumentError, IntegrityError, PolicyError)
}


class Failure(NamedTuple):
    """An error as a value, which a task hands to the driver, and the driver to Airflow. `kind`: the error's class."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: ArchiverError) -> Self:
        """The error, as the nearest class that is for everybody's use."""
        return cls(
            next((c.__name__ for c in type(error).__mro__ if c.__name__ in _KINDS), "PermanentError"), str(error)
        )

    def error(self) -> ArchiverError:
        """The error, to be raised."""
        return _KINDS[self.kind](self.message)

    def to_json(self) -> str:
        """For the file of a driver that runs beside its task."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote.

        :raises ValueError: it is something else.
        """
        found = json.loads(text)
        if not isinstance(found, dict) or found.get("kind") not in _KINDS or not isinstance(found.get("message"), str):
            raise ValueError("no failure")
        return cls(found["kind"], found["message"])
