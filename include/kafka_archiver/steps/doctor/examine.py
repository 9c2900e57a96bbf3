"""All checks of one archive."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from kafka_archiver.config import Archive
from kafka_archiver.errors import ArchiverError
from kafka_archiver.intervals import Interval
from kafka_archiver.keys import topic_prefix
from kafka_archiver.steps.claims import foreign, owners_of
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.doctor.brokers import check_brokers
from kafka_archiver.steps.doctor.check import Check, problem, tried
from kafka_archiver.steps.doctor.runs import check_runs
from kafka_archiver.steps.doctor.store import check_store
from kafka_archiver.steps.plan import settled_so_far, unfinished


def examine(context: Context, interval: Interval, now: datetime, others: Iterable[Archive] = ()) -> Iterator[Check]:
    """Everything about the brokers, the store and the ledger. Changes nothing but the store's probes, which go again.

    :param interval: the last one that has ended.
    :param others: the other archives of this Airflow.
    """
    yield from check_store(context.store, context.archive.archive)
    neighbours = list(check_neighbours(context.archive, others))
    # Those of the same Airflow are known by name already.
    yield from neighbours or tried("neighbours", lambda: check_claims(context))
    try:
        waiting = unfinished(context)
    except ArchiverError as error:
        yield problem("ledger", str(error), "the group cannot be compared with it")
        return
    yield from check_brokers(context, interval, waiting)
    archive, ledger = context.archive.archive, context.ledger
    yield from tried("runs", lambda: check_runs(archive, waiting, ledger.runs(), settled_so_far(context), now))


def check_claims(context: Context) -> Iterator[Check]:
    """Topics that another archive, perhaps of another Airflow, has in the same place."""
    for said in foreign(context, owners_of(context, context.archive.source.topics or ())).values():
        yield problem("neighbours", said, "no run gets a plan")


def check_neighbours(archive: Archive, others: Iterable[Archive]) -> Iterator[Check]:
    """Archives of one topic: in one place they write the same keys, in one group they move each other's position."""
    mine = {f"{archive.store.url.rstrip('/')}/{topic_prefix(topic)}" for topic in archive.source.topics or ()}
    for other in (other for other in others if other.archive != archive.archive):
        theirs = {f"{other.store.url.rstrip('/')}/{topic_prefix(topic)}" for topic in other.source.topics or ()}
        if shared := sorted(mine & theirs):
            yield problem(
                "neighbours",
                f"archive {other.archive} has the same topics in the same place: {', '.join(shared)}",
                "both write the same keys, and each takes the other's objects for strangers",
                "another `store.url` for one of them",
            )
        if _share_offsets(archive, other):
            yield problem(
                "neighbours",
                f"archive {other.archive} keeps its position in the same group, {archive.group}, for the same topics",
                "each takes for archived what only the other has",
                "leave `source.group` out in one of them (then it is archiver-<archive>), or another name",
            )


def _share_offsets(one: Archive, other: Archive) -> bool:
    # A pattern may match anything.
    topics = [archive.source.topics for archive in (one, other)]
    common = None in topics or set(topics[0] or ()) & set(topics[1] or ())
    return one.group == other.group and one.source.kafka == other.source.kafka and bool(common)
