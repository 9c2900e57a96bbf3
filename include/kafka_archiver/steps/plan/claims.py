"""Whose a topic is: of two archives that had it in one place, each would overwrite the other's objects."""

from collections.abc import Iterable, Mapping

from kafka_archiver.errors import PolicyError
from kafka_archiver.keys import claim_document
from kafka_archiver.steps.context import Context
from kafka_archiver.writer.threads import each

_REQUESTS = 16


def claim_topics(context: Context, topics: Iterable[str]) -> None:
    """Take these topics for the archive, all or, but for a race, none.

    With every plan, since a claim may be gone, or somebody else's by now.

    :raises PolicyError: another archive has one of them in the same place.
    """
    owners = require_own(context, topics)
    free = [topic for topic, owner in owners.items() if owner is None]
    _compare(context, dict(zip(free, each(context.ledger.claim, free, _REQUESTS), strict=True)))


def require_own(context: Context, topics: Iterable[str]) -> dict[str, str | None]:
    """Whose these topics are: this archive's, or nobody's yet. Writes nothing.

    :raises PolicyError: another archive has one of them in the same place.
    """
    owners = owners_of(context, topics)
    _compare(context, owners)
    return owners


def owners_of(context: Context, topics: Iterable[str]) -> dict[str, str | None]:
    """Which archive has each topic in this place; None: none."""
    wanted = sorted(topics)
    return dict(zip(wanted, each(context.ledger.claimed, wanted, _REQUESTS), strict=True))


def foreign(context: Context, owners: Mapping[str, str | None]) -> dict[str, str]:
    """Those of the topics that are another archive's, with what that means."""
    return {
        topic: claimed_by(context.store.url, topic, owner)
        for topic, owner in owners.items()
        if owner is not None and owner != context.archive.archive
    }


def _compare(context: Context, owners: Mapping[str, str | None]) -> None:
    for said in foreign(context, owners).values():
        raise PolicyError(said)


def claimed_by(url: str, topic: str, owner: str) -> str:
    """What it means that a topic is another archive's."""
    return (
        f"archive {owner} has topic {topic} in the same place, {url}: both would write the same keys. Give one of "
        f"them another `store.url`; if {owner} is gone for good, or never ran, delete {url}/{claim_document(topic)}"
    )
