"""Take the intent of a run: an attempt has to take it before it completes uploads."""

from kafka_archiver.ledger.ledger import Ledger, Stored
from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.model.manifest import Intent


def refuse_closed(intent: Intent | None) -> None:
    """:raises PermanentError: another run has taken this one's place."""
    if intent and intent.closed:
        raise PermanentError(
            f"run {intent.run} of archive {intent.archive} has been replaced by another run meanwhile: none of its "
            "objects become visible any more"
        )


def take(ledger: Ledger, intent: Intent, before: Stored[Intent]) -> Stored[Intent]:
    """Take the intent, and return it as stored.

    :raises TransientError: another attempt has taken it since `before` was read.
    """
    taken = ledger.put_intent(intent, before)
    if taken is None:
        raise TransientError(
            f"another attempt of run {intent.run} completes its objects now; the next attempt sees what it wrote"
        )
    return taken
