"""The brokers: whether they answer, which topics there are, and what they say of the group and the logs."""

from collections.abc import Generator, Iterator
from dataclasses import replace

from kafka_archiver.errors import ArchiverError
from kafka_archiver.intervals import Interval
from kafka_archiver.plan import Plan
from kafka_archiver.policy import beginnings, troubles
from kafka_archiver.steps.choices import when
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.doctor.check import Check, ok, problem, tried, warning
from kafka_archiver.steps.doctor.retention import check_retention, check_times
from kafka_archiver.steps.plan import live_members, settled_so_far, survey

GROUP = "group"


def check_brokers(context: Context, interval: Interval, waiting: list[Plan]) -> Iterator[Check]:
    """Everything about Kafka; where the brokers do not answer, that alone.

    :param interval: the last one that has ended.
    :param waiting: the unfinished runs.
    """
    cluster = context.cluster
    try:
        count = cluster.size()
        identity = cluster.cluster_id()
    except ArchiverError as error:
        yield problem("brokers", str(error), "nothing else about Kafka could be tried")
        return
    yield ok("brokers", f"{count} {'broker' if count == 1 else 'brokers'} of cluster {identity} at {cluster.brokers}")
    yield from _cluster(context, identity, waiting)
    topics = yield from _topics(context)
    for topic in topics:
        yield from tried(f"settings of {topic}", lambda: _settings(context, topic))  # noqa: B023 - consumed at once
    if topics:
        yield from tried(GROUP, lambda: _group(_with_only(context, topics), interval, waiting))


def _cluster(context: Context, identity: str, waiting: list[Plan]) -> Iterator[Check]:
    runs = settled_so_far(context).runs
    last = waiting[-1] if waiting else context.ledger.plan(runs[-1]) if runs else None
    if last and last.cluster_id != identity:
        yield warning(
            "cluster",
            f"run {last.run} was planned on cluster {last.cluster_id}, now it is {identity}",
            "the Kafka connection leads to other brokers than before, whose offsets mean other records",
            "correct `bootstrap.servers` in the Kafka connection",
            "if Kafka was moved: give the archive a new name and prefix",
        )


def _topics(context: Context) -> Generator[Check, None, list[str]]:
    """Yields checks. Returns the topics that are there."""
    source, cluster = context.archive.source, context.cluster
    if source.pattern is not None:
        try:
            names = [topic.name for topic in cluster.topics(source.wanted)]
        except ArchiverError as error:
            yield problem("topics", str(error))
            return []
        shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        yield ok("topics", f"source.pattern matches {len(names)}: {shown}")
        return names
    there = []
    for name in source.topics or ():
        try:
            [topic] = cluster.topics([name])
        except ArchiverError as error:
            yield problem(
                f"topic {name}", str(error), "every run would fail", "correct source.topics or make the topic"
            )
        else:
            there.append(name)
            yield ok(f"topic {name}", f"{topic.partitions} partitions, id {topic.id}")
    return there


def _settings(context: Context, topic: str) -> Iterator[Check]:
    try:
        [settings] = context.cluster.topic_settings([topic]).values()
    except ArchiverError as error:
        yield warning(
            f"settings of {topic}",
            str(error),
            "nobody can tell whether the topic keeps its records until they are archived",
            "grant DescribeConfigs on the topic; runs do without",
        )
        return
    yield from check_retention(topic, settings, context.archive.schedule)
    yield check_times(topic, settings)


def _with_only(context: Context, topics: list[str]) -> Context:
    """The archive of the topics that are there: a missing one hides nothing of the others."""
    source = context.archive.source
    if source.topics is None:
        return context
    archive = context.archive.model_copy(update={"source": source.model_copy(update={"topics": tuple(topics)})})
    return replace(context, archive=archive)


def _group(context: Context, interval: Interval, waiting: list[Plan]) -> Iterator[Check]:
    archive = context.archive
    if members := context.cluster.members(archive.group):
        yield problem(GROUP, live_members(archive.group, members))
    seen, known = survey(context, interval, waiting)
    found = troubles(archive, seen, known)
    planned = context.ledger.current(interval.id) is not None
    yield from (problem(GROUP, trouble, *([when(interval)] if planned else [])) for trouble in found)
    recreated = {s.name.topic for s in seen if (p := known.get(s.name)) and p.topic_id != s.topic_id}
    if not found:
        for decided in dict.fromkeys(d for b in beginnings(archive, seen, known).values() for d in b.decided):
            yield warning(GROUP, decided, "the archive's policies decide this way, at the next run")
    if not found and not members:
        stands = sum(s.committed is not None for s in seen)
        yield ok(GROUP, f"{archive.group} has no members and an offset for {stands} of {len(seen)} partitions")
    if not recreated:
        yield ok("topic ids", "as the ledger knows them" if known else "nothing is archived yet")
