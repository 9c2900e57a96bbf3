"""All checks of one archive."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.object_keys import topic_prefix
from kafka_archiver.planning.settings import settings_of
from kafka_archiver.planning.topic_claims import blocked_topics
from kafka_archiver.state.doctor.brokers import check_brokers
from kafka_archiver.state.doctor.check import Finding, ok, problem, tried
from kafka_archiver.state.doctor.condition import check_condition, check_runs
from kafka_archiver.state.doctor.store import check_store
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.store import Store


def examine(
    archive: Archive, cluster: Cluster | None, store: Store | None, facts: Facts, other_archives: Iterable[Archive] = ()
) -> Iterator[Finding]:
    """Examine the brokers, the store and the ledger. Writes only probes to the store, and removes them again.

    A check that fails does not hide the others.

    :param cluster: None if the connection is missing or wrong; `store`: likewise.
    :param facts: what Airflow knows of the archive.
    :param other_archives: the other archives of this Airflow.
    """
    yield from tried("format", lambda: check_format(archive))
    of_store = list(check_store(store, archive.archive)) if store else []
    yield from of_store
    neighbours = list(check_neighbours(archive, other_archives))
    yield from neighbours
    existing = (yield from check_brokers(archive, cluster)) if cluster else []
    if cluster is None or store is None:
        yield from check_runs(archive.archive, facts, None, None, datetime.now(UTC))
        return
    context = Context(archive, cluster, store, Ledger(store, archive.archive))
    if not neighbours and all(check.severity != "problem" for check in of_store):
        # Not after other findings: the archives of this Airflow are named already, and a store's problem too.
        yield from tried("neighbours", lambda: check_claims(context))
    yield from check_condition(_with_only(context, existing), facts, bool(existing))


def _with_only(context: Context, topics: list[str]) -> Context:
    """Return the archive with the existing topics only: a missing topic must not hide the others."""
    source = context.archive.source
    if source.topics is None or not topics:
        return context
    archive = context.archive.model_copy(update={"source": source.model_copy(update={"topics": tuple(topics)})})
    return replace(context, archive=archive)


def check_format(archive: Archive) -> Iterator[Finding]:
    """Check that objects can be written as the YAML says."""
    settings = settings_of(archive)
    yield ok("format", f"{settings.format}, content {settings.content}, codec {settings.codec}")


def check_claims(context: Context) -> Iterator[Finding]:
    """Check for topics that another archive, perhaps of another Airflow, has in the same place, or has objects of."""
    for conflict in blocked_topics(context, read_line(context), context.archive.source.topics or ()).values():
        yield problem("neighbours", conflict, "no run gets a plan")


def check_neighbours(archive: Archive, other_archives: Iterable[Archive]) -> Iterator[Finding]:
    """Check for archives of the same topics: in one place they write the same keys, in one group they share offsets."""
    own_places = {f"{archive.store.url.rstrip('/')}/{topic_prefix(topic)}" for topic in archive.source.topics or ()}
    for other in (other for other in other_archives if other.archive != archive.archive):
        other_places = {f"{other.store.url.rstrip('/')}/{topic_prefix(topic)}" for topic in other.source.topics or ()}
        if shared := sorted(own_places & other_places):
            yield problem(
                "neighbours",
                f"archive {other.archive} has the same topics in the same place: {', '.join(shared)}",
                "both write the same keys, and each finds the other's objects unexplained",
                "another `store.url` for one of them",
            )
        if _share_offsets(archive, other):
            yield problem(
                "neighbours",
                f"archive {other.archive} keeps its position in the same group, {archive.group}, for the same topics",
                "each skips the offsets that only the other has archived",
                "leave out `source.group` in one of them (then it is archiver-<archive>), or choose another name",
            )


def _share_offsets(first: Archive, second: Archive) -> bool:
    # A pattern may match anything.
    topics = [archive.source.topics for archive in (first, second)]
    common = None in topics or set(topics[0] or ()) & set(topics[1] or ())
    return first.group == second.group and first.source.kafka == second.source.kafka and bool(common)
