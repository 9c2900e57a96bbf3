"""The brokers: whether they answer, which topics exist, and the topics' settings."""

from collections.abc import Generator, Iterator

from kafka_archiver.config import Archive
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.state.doctor.check import Finding, ok, problem, tried, warning
from kafka_archiver.state.doctor.retention import check_retention, check_times


def check_brokers(archive: Archive, cluster: Cluster) -> Generator[Finding, None, list[str]]:
    """Check everything about Kafka except the group. If the brokers do not answer, only that.

    Yields checks. Returns the topics that exist.
    """
    try:
        count = cluster.size()
        identity = cluster.cluster_id()
    except ArchiverError as error:
        yield problem("brokers", str(error), "the other checks of Kafka are skipped")
        return []
    yield ok("brokers", f"{count} {'broker' if count == 1 else 'brokers'} of cluster {identity} at {cluster.brokers}")
    topics = yield from _topics(archive, cluster)
    for topic in topics:
        yield from tried(f"settings of {topic}", lambda: _settings(archive, cluster, topic))  # noqa: B023 - consumed at once
    yield from check_groups(archive, cluster, topics)
    return topics


def check_groups(archive: Archive, cluster: Cluster, topics: list[str]) -> Iterator[Finding]:
    """Check that plans can have the offsets of the groups that `source.snapshot_groups` names."""
    patterns, name = archive.source.snapshot_groups, "snapshot of groups"
    if not patterns:
        return
    means = "after the loss of the cluster, nobody knows where these groups stood"
    try:
        groups = cluster.offsets_of_groups(patterns, topics)
    except ArchiverError as error:
        yield warning(name, str(error), means, "grant Describe on the groups, or correct source.snapshot_groups")
        return
    if groups:
        yield ok(
            name, f"{len(groups)} groups with offsets match source.snapshot_groups: {', '.join(sorted(groups)[:10])}"
        )
    else:
        shown = ", ".join(patterns)
        yield warning(name, f"no group with offsets in these topics matches {shown}", means, "correct the pattern")


def _topics(archive: Archive, cluster: Cluster) -> Generator[Finding, None, list[str]]:
    source = archive.source
    if source.pattern is not None:
        try:
            names = [topic.name for topic in cluster.topics(source.selection)]
        except ArchiverError as error:
            yield problem("topics", str(error))
            return []
        shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        yield ok("topics", f"source.pattern matches {len(names)}: {shown}")
        return names
    existing = []
    for name in source.topics or ():
        try:
            [topic] = cluster.topics([name])
        except ArchiverError as error:
            yield problem(
                f"topic {name}", str(error), "every run would fail", "correct source.topics or make the topic"
            )
        else:
            existing.append(name)
            yield ok(f"topic {name}", f"{topic.partitions} partitions, id {topic.id}")
    return existing


def _settings(archive: Archive, cluster: Cluster, topic: str) -> Iterator[Finding]:
    try:
        [settings] = cluster.topic_settings([topic]).values()
    except ArchiverError as error:
        yield warning(
            f"settings of {topic}",
            str(error),
            "it is unknown whether the topic keeps its records until they are archived",
            "grant DescribeConfigs on the topic; runs do not need it, but a restore would create the topic as it was",
        )
        return
    yield from check_retention(topic, settings, archive.schedule, cluster.tools)
    yield check_times(topic, settings, cluster.tools)
