"""The brokers: whether they answer, which topics exist, and the topics' settings."""

from collections.abc import Generator, Iterator, Mapping
from datetime import timedelta

from kafka_archiver.config import Archive
from kafka_archiver.config.times import longest_interval
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.actions import command
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.state.doctor.check import Finding, ok, problem, tried, warning

# Records should survive an outage of one night.
INTERVALS = 6
# Kafka's own default for message.timestamp.after.max.ms; before release 3.6 there was no limit.
_AHEAD = timedelta(hours=1)
_FOREVER = timedelta(days=365 * 100)


def check_retention(
    topic: str, settings: Mapping[str, str], schedule: str | None, tools: KafkaTools
) -> Iterator[Finding]:
    """Check a topic's settings against the archive's schedule (None: by hand only)."""
    name = f"retention of {topic}"
    policies = set(settings.get("cleanup.policy", "delete").split(","))
    kept = int(settings.get("retention.ms", "-1"))
    if "delete" in policies and kept >= 0:
        kept_for = timedelta(milliseconds=min(kept, _FOREVER // timedelta(milliseconds=1)))
        yield _kept(name, topic, kept_for, schedule, tools)
    else:
        yield ok(name, "records are never removed by their age")
    size = int(settings.get("retention.bytes", "-1"))
    if "delete" in policies and size >= 0:
        yield warning(
            name,
            f"retention.bytes is {size:,}",
            "a burst can push records out of a partition before they are archived, whatever their age",
            command(tools.alter_topic(topic, "retention.bytes=-1")),
            "keep it, if no partition gets so much in several intervals",
        )
    if "compact" in policies:
        yield warning(
            f"compaction of {topic}",
            f"cleanup.policy is {settings['cleanup.policy']}",
            "older records of a key may be gone before they are archived; their offsets count as absent",
            command(tools.alter_topic(topic, f"min.compaction.lag.ms={7 * 86_400_000}")),
            "keep it, if the last record of each key is enough",
        )


def _kept(name: str, topic: str, kept: timedelta, schedule: str | None, tools: KafkaTools) -> Finding:
    if schedule is None:
        return ok(name, f"records are kept for {_spelt(kept)}; the archive runs by hand only: run it more often")
    interval = longest_interval(schedule)
    observed = f"records are kept for {_spelt(kept)}, a run is due every {_spelt(interval)}"
    enough = max(interval * 24, timedelta(days=7)) // timedelta(milliseconds=1)
    longer = command(tools.alter_topic(topic, f"retention.ms={enough}"))
    if kept <= interval:
        return problem(
            name, observed, "records are removed before they are archived", longer, "a more frequent `schedule`"
        )
    if kept < INTERVALS * interval:
        means = f"when {kept // interval} runs in a row fail, records are lost"
        return warning(name, observed, means, longer, "a more frequent `schedule`")
    return ok(name, observed)


def check_times(topic: str, settings: Mapping[str, str], tools: KafkaTools) -> Finding:
    """Check which clock gives the hour of a record, and how far it may be wrong."""
    name = f"timestamps of {topic}"
    if settings.get("message.timestamp.type", "CreateTime") != "CreateTime":
        return ok(name, "LogAppendTime: the brokers' clock gives the hour of a record")
    ahead = int(settings.get("message.timestamp.after.max.ms", str(1 << 62)))
    if ahead > 24 * _AHEAD // timedelta(milliseconds=1):
        return warning(
            name,
            "CreateTime, and the brokers accept records with times far ahead (message.timestamp.after.max.ms)",
            "records of a producer with a wrong clock are filed in future hours, and hide the records behind them from "
            "Kafka's time index: backfills of such hours stay incomplete",
            tools.alter_topic(topic, f"message.timestamp.after.max.ms={_AHEAD // timedelta(milliseconds=1)}"),
            "keep it, if the producers' clocks can be trusted",
        )
    return ok(name, f"CreateTime: producers' clocks decide, at most {_spelt(timedelta(milliseconds=ahead))} ahead")


def _spelt(time: timedelta) -> str:
    """Spell a time in the largest unit that gives a whole number, down to seconds."""
    units = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
    name, unit = next(
        ((n, u) for n, u in units.items() if time >= u and not time % u), ("second", timedelta(seconds=1))
    )
    count = time / unit
    return f"{count:g} {name}{'s' * (count != 1)}"


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
