"""Claims of topics: two archives of one topic in one place would overwrite each other's objects."""

from collections.abc import Iterable, Mapping

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.adopted import Adoption
from kafka_archiver.model.layouts.registry import prefixes, resolve
from kafka_archiver.model.leftovers import place_of
from kafka_archiver.model.object_keys import claim_document, ledger_prefix, topic_prefix
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.threads import each

_REQUESTS = 16


def claim_topics(context: Context, line: Line, topics: Iterable[str]) -> None:
    """Claim these topics for the archive: all or, except in a race, none.

    Called for every plan: a claim may have been deleted, or be another archive's by now.

    :raises PolicyError: as `require_unclaimed`.
    """
    free = require_unclaimed(context, line, topics)
    _refuse_first(
        _claimed_by_others(context, dict(zip(free, each(context.ledger.claim, free, _REQUESTS), strict=True)))
    )


def require_unclaimed(context: Context, line: Line, topics: Iterable[str]) -> list[str]:
    """Return the topics that no archive has claimed yet; the others are this archive's. Writes nothing.

    :raises PolicyError: another archive has one of them in the same place, or has left objects of it there.
    """
    owners = _owners(context, topics)
    _refuse_first(_reasons_against(context, line, owners))
    return [topic for topic, owner in owners.items() if owner is None]


def blocked_topics(context: Context, line: Line, topics: Iterable[str]) -> dict[str, str]:
    """Return the topics that the archive cannot take, each with the reason."""
    return _reasons_against(context, line, _owners(context, topics))


def _owners(context: Context, topics: Iterable[str]) -> dict[str, str | None]:
    """Return the archive that has each topic in this place; None: no archive has it."""
    in_order = sorted(topics)
    return dict(zip(in_order, each(context.ledger.claimed, in_order, _REQUESTS), strict=True))


def _reasons_against(context: Context, line: Line, owners: Mapping[str, str | None]) -> dict[str, str]:
    own = {p.topic for p in line.settled.partitions} | {p.topic for w in line.waiting for p in w.plan.partitions}
    new = [topic for topic, owner in owners.items() if owner is None and topic not in own]
    if new and (adoption := context.ledger.adoption()):
        return dict.fromkeys(new, _adopted_message(context.archive.archive, adoption))
    # Two short listings, only for new topics.
    keys = dict(zip(new, each(lambda topic: _first_object_of(context, topic), new, _REQUESTS), strict=True))
    # Claims are written before objects. If another planner of this archive wrote the objects, the claim exists now.
    present_owners = {**owners, **_owners(context, [topic for topic, key in keys.items() if key])}
    left = {
        t: _leftover_message(context.store.url, t, key) for t, key in keys.items() if key and present_owners[t] is None
    }
    return _claimed_by_others(context, present_owners) | left


def _first_object_of(context: Context, topic: str) -> str | None:
    settings = resolve(context.archive.settings)
    listed = (s.key for prefix in prefixes([topic], Settings(), settings) for s in context.store.list(prefix))
    return next((key for key in listed if (place := place_of(key, settings)) and place.topic == topic), None)


def _claimed_by_others(context: Context, owners: Mapping[str, str | None]) -> dict[str, str]:
    return {
        topic: _claimed_message(context.store.url, topic, owner)
        for topic, owner in owners.items()
        if owner is not None and owner != context.archive.archive
    }


def _refuse_first(reasons: Mapping[str, str]) -> None:
    for reason in reasons.values():
        raise PolicyError(reason)


def _adopted_message(archive: str, adoption: Adoption) -> str:
    return (
        f"archive {archive} has adopted {adoption.adopted_from}, which {adoption.tool} wrote, and archives nothing: "
        "give the archive that goes on another name and another `store.url`, and pause this one's DAG "
        f"(airflow dags pause archive_{archive})"
    )


def _claimed_message(url: str, topic: str, owner: str) -> str:
    places = [topic_prefix(topic), topic_prefix(topic, dead_letter=True), ledger_prefix(owner)]
    owner = foreign(owner)
    return (
        f"archive {owner} has topic {topic} in the same place, {url}: both would write the same keys. Give one of them "
        f"another `store.url`; if {owner} was renamed, give it its name back. Only if {owner} is gone for good, or "
        f"never ran: move the objects below {' and '.join(f'{url}/{place}' for place in places)} to another place "
        f"(Kafka may not have the records any more), then delete {url}/{claim_document(topic)}"
    )


def _leftover_message(url: str, topic: str, key: str) -> str:
    return (
        f"no archive has topic {topic} in this place, {url}, but objects of it are there ({foreign(key, 1024)}), and "
        "this archive would write the same keys. Give this archive another `store.url`; if it was renamed, give it its "
        "name back. Only if the archive that wrote the objects is gone for good: first move its objects and its ledger "
        "to another place (Kafka may not have the records any more)"
    )
