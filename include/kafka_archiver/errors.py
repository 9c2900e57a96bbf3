"""What can go wrong, by what the caller should do about it.

An orchestrator retries `TransientError` and gives up at once on every other `ArchiverError`.
Messages say what was found, what was expected and what to do, in words for the person on call.
"""


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
    """The brokers' state needs a decision that the archive's policies leave to a person."""
