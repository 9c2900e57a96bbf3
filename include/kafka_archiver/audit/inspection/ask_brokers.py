"""Live: compare the ledger with the brokers' topics and group."""

from dataclasses import replace

from kafka_archiver.audit.brokers import check_live, group_busy, topics_gone
from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.findings import Finding
from kafka_archiver.planning.survey import survey_once
from kafka_archiver.store import Store


def ask_brokers(archive: Archive, cluster: Cluster, store: Store) -> list[Finding]:
    """Compare the ledger with the brokers."""
    context = Context(archive, cluster, store, Ledger(store, archive.archive))
    line = read_line(context)
    expected = line.expected(context.ledger)
    known = {p.topic for p in expected.partitions}
    declared = {*known, *(archive.source.topics or ())}
    existing = [topic for topic, topic_id in cluster.topic_ids(declared).items() if topic_id]
    partitions = {t.name: t.partitions for t in cluster.topics(existing)} if existing else {}
    findings = [
        *group_busy(archive, cluster.members(archive.group)),
        *topics_gone(archive, expected, partitions),
    ]
    # A topic with fewer partitions than before was recreated, which a policy decides.
    gone = any(topic not in partitions for topic in declared if topic_stops(archive, topic))
    first = [f.kind for f in findings if f.kind == "group-busy"] + ["topic-gone"] * gone
    if existing:
        states = survey_once(only(context, existing), line, expected).states
        findings += check_live(archive, states, {p.name: p for p in expected.partitions}, first)
    return findings


def topic_stops(archive: Archive, topic: str) -> bool:
    """Return True if planning fails as long as this topic is missing."""
    selection = archive.source.selection
    return topic in selection if isinstance(selection, tuple) else selection.fullmatch(topic) is not None


def only(context: Context, topics: list[str]) -> Context:
    """The archive with these topics only, which does not wait for transactions."""
    source = context.archive.source.model_copy(update={"topics": tuple(topics), "pattern": None, "settle": 0})
    return replace(context, archive=context.archive.model_copy(update={"source": source}))
