"""Plan a restore: freeze what goes where, before the first record is written."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, PermanentError, TransientError
from kafka_archiver.model.restore import (
    Inexact,
    RestoreOptions,
    RestorePage,
    RestorePlan,
    RestoreSource,
    TargetTopic,
)
from kafka_archiver.model.restore_request import RestoreRequest, require_name
from kafka_archiver.work.restore.exact import refusal
from kafka_archiver.work.restore.gather import gather

# Makes the target ready for what is selected, up to a plan of the archive, or raises what speaks against it.
Prepare = Callable[[Sequence[RestoreSource], int], object]


def plan_restore(
    ledger: Ledger,
    cluster: Cluster,
    request: RestoreRequest,
    prepare: Prepare = lambda *_: None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RestorePlan:
    """Freeze the plan of a restore; if there is one of this name, return it.

    :raises ConfigError: the request selects nothing, or what cannot be restored exactly and is not allowed; or there is
        a plan of this name for another request.
    """
    require_name(request.restore)
    if known := ledger.restore_plan(request.restore):
        return plan_of(known, request)
    plan = outline(
        ledger, cluster, request, prepare, lambda page: ledger.put_restore_page(request.restore, page), clock
    )
    return plan_of(ledger.create_restore_plan(plan), request)


def outline(
    ledger: Ledger,
    cluster: Cluster,
    request: RestoreRequest,
    prepare: Prepare = lambda *_: None,
    keep: Callable[[RestorePage], None] = lambda _: None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RestorePlan:
    """Return the plan that a request makes now; freeze nothing. For a dry run, too.

    :param keep: gets each page.
    """
    gathered = gather(ledger, request.selection)
    sources = []
    for source, pages in gathered.sources():
        entries = []
        for page in pages:
            keep(page)
            entries.append(page.entry)
        sources.append(source.model_copy(update={"pages": tuple(entries)}))
    require_exact(sources, request.options)
    prepare(sources, gathered.through)
    topics = target_topics(cluster, request)
    _require_partitions(sources, topics)
    return RestorePlan(
        archive=ledger.archive,
        restore=request.restore,
        planned_at=clock(),
        through=gathered.through,
        cluster_id=cluster.cluster_id(),
        group=group_of(ledger.archive, request.restore),
        selection=request.selection,
        options=request.options,
        limits=request.limits,
        topics=topics,
        schema_ids=request.schema_ids,
        sources=tuple(sources),
    )


def group_of(archive: str, restore: str) -> str:
    """Return the group of the target whose offsets are a restore's progress."""
    return f"kafka-archiver-restore-{archive}-{restore}"


def target_topics(cluster: Cluster, request: RestoreRequest) -> tuple[TargetTopic, ...]:
    """Return the topics that are written, as they are now.

    :raises PermanentError: one does not exist. :raises TransientError: the end of a log is not sure.
    """
    targets = []
    for source in sorted(request.selection.topics):
        name = request.target_of(source)
        [topic] = cluster.topics([name])
        ends = cluster.high_watermarks(topic.names)
        for partition, end in ends.items():
            if end.unsure:
                raise TransientError(f"the end of {partition} is not sure: {end.unsure}; the next attempt asks again")
        targets.append(
            TargetTopic(
                source=source,
                topic=name,
                topic_id=topic.id,
                partitioner=request.partitioner,
                append_time=request.options.allows("timestamps") and _is_append_time(cluster, name),
                starts=tuple(ends[partition].offset for partition in topic.names),
            )
        )
    return tuple(targets)


def _is_append_time(cluster: Cluster, topic: str) -> bool:
    """Return True if the brokers set the timestamps of a topic, as far as the credentials may know it."""
    try:
        settings = cluster.topic_settings([topic])[topic]
    except PermanentError:
        return False
    return settings.get("message.timestamp.type", "CreateTime") != "CreateTime"


def require_exact(sources: Sequence[RestoreSource], options: RestoreOptions) -> None:
    """Check that everything that is not exact is allowed, as far as the manifests tell.

    :raises NotExactError: it is not; with the count.
    """
    changes: tuple[Inexact, ...] = ("values_only", "rows", "lost")
    for change in changes:
        counts = {str(source): getattr(source, change) for source in sources if getattr(source, change)}
        if counts and not options.allows(change):
            raise refusal(change, sum(counts.values()), ", ".join(counts))


def _require_partitions(sources: Sequence[RestoreSource], topics: Sequence[TargetTopic]) -> None:
    by_source = {topic.source: topic for topic in topics}
    for source in sources:
        topic = by_source[source.topic]
        if topic.partitioner == "same" and source.partition >= topic.partitions:
            raise PermanentError(
                f"{topic.topic} has {topic.partitions} partitions, and records of {source.name} go to the same "
                f"partition: add partitions, or choose --partitioner murmur2 (Java's) or crc32 (librdkafka's)"
            )


def plan_of(plan: RestorePlan, request: RestoreRequest) -> RestorePlan:
    """Return the plan if it is that of the request.

    :raises ConfigError: it selects something else, or is of other topics.
    """
    names = {topic.source: topic.topic for topic in plan.topics}
    expected = {topic: request.target_of(topic) for topic in request.selection.topics}
    partitioners = {topic.partitioner for topic in plan.topics}
    if plan.selection != request.selection or names != expected or partitioners != {request.partitioner}:
        raise ConfigError(
            f"restore {plan.restore} of archive {plan.archive} was planned at {plan.planned_at:%Y-%m-%d %H:%M} UTC for "
            "another selection or other topics: give this restore another name (--restore)"
        )
    return plan
