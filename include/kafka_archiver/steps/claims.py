"""Whose a topic is: of two archives that had it in one place, each would overwrite the other's objects."""

from collections.abc import Iterable

from kafka_archiver.errors import PolicyError
from kafka_archiver.keys import claim_document
from kafka_archiver.steps.context import Context
from kafka_archiver.writer.threads import each

_REQUESTS = 16


def claim_topics(context: Context, topics: Iterable[str]) -> None:
    """Take these topics for the archive.

    :raises PolicyError: another archive has one of them in the same place.
    """
    wanted = sorted(topics)
    for topic, owner in zip(wanted, each(context.ledger.claim, wanted, _REQUESTS), strict=True):
        if owner != context.archive.archive:
            raise PolicyError(claimed_by(context.store.url, topic, owner))


def claimed_by(url: str, topic: str, owner: str) -> str:
    """What it means that a topic is another archive's."""
    return (
        f"archive {owner} has topic {topic} in the same place, {url}: both would write the same keys. Give one of "
        f"them another `store.url`; if {owner} is gone for good, delete {url}/{claim_document(topic)}"
    )
