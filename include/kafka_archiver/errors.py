"""What can go wrong, by what the caller should do about it.

An orchestrator retries `TransientError` and gives up at once on every other `ArchiverError`.
Messages say what was found, what was expected and what to do, in words for the person on call.
"""

from collections.abc import Mapping


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
