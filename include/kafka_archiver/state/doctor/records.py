"""The newest records: whether they can be decoded as the YAML says."""

from collections.abc import Iterator

from kafka_archiver.context.archive_context import Context
from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.kafka.topics import Topic
from kafka_archiver.model.settings import Settings
from kafka_archiver.planning.schemas import freeze_schemas
from kafka_archiver.planning.settings import settings_of
from kafka_archiver.planning.spark_sql import with_analysed_sql
from kafka_archiver.state.doctor.check import Finding, ok, problem, tried, warning
from kafka_archiver.state.doctor.newest import PATIENCE_SECONDS, TOPICS, newest, planned, topics_of

_MEANS = {
    "fail": "a run that reads such a record fails (`policies.bad_record: fail`)",
    "dead_letter": "such records become dead letters (`policies.bad_record: dead_letter`)",
    "skip": "such records are not archived (`policies.bad_record: skip`)",
}


def check_records(context: Context) -> Iterator[Finding]:
    """Decode the newest records of each topic as a plan of now would. Writes nothing.

    Nothing is checked if nothing is decoded or transformed, or if the brokers do not answer.
    """
    archive = context.archive
    decoded = archive.has_columns or archive.settings.decodes
    if not decoded and archive.settings.transform is None:
        return
    settings = settings_of(archive, context.keys)
    needs_spark = settings != settings.without_spark()
    for topic in list(topics_of(archive, context.cluster))[:TOPICS]:
        findings = list(tried(f"records of {topic.name}", lambda: [_decoded(context, settings.without_spark(), topic)]))  # noqa: B023
        yield from findings
        if needs_spark and findings[0].severity != "problem":
            # Once: Spark takes seconds to start.
            needs_spark = False
            yield from tried(f"SQL of {topic.name}", lambda: [_taken(context, settings, topic)])  # noqa: B023


def _taken(context: Context, settings: Settings, topic: Topic) -> Finding:
    """Check that Spark takes the SQL, as planning asks it."""
    read = [planned(topic, chunk) for chunk in newest(context.archive, context.cluster, topic)]
    frozen = freeze_schemas(context, settings, read)
    if read:
        with_analysed_sql(context, settings, frozen, {topic.name}, None)
    return ok(f"SQL of {topic.name}", "Spark takes it" if read else "there are no records")


def _decoded(context: Context, settings: Settings, topic: Topic) -> Finding:
    # Imported late: the commands start without Arrow.
    from kafka_archiver.records.pipeline.variants import Variants

    archive, cluster, name = context.archive, context.cluster, f"records of {topic.name}"
    chunks = list(newest(archive, cluster, topic))
    if not chunks:
        return ok(name, "there are none")
    frozen = freeze_schemas(context, settings, [planned(topic, chunk) for chunk in chunks])
    pipeline = Variants(settings, topic.name, frozen.schemas, frozen.texts, keys=context.keys)
    whole = settings.model_copy(update={"content": "record"})
    bad: list[str] = []
    for chunk in chunks:
        for batch in read_chunk(cluster.properties, archive.group, chunk, whole, PATIENCE_SECONDS):
            reasons = pipeline.run(batch).rejected
            bad += (f"{chunk.name} offset {offset}: {reasons[offset]}" for offset in sorted(reasons))
    count = pipeline.counts.archived + pipeline.counts.filtered + len(bad)
    if not bad:
        return ok(name, f"the newest {count} can be archived as the YAML says")
    policy = archive.policies.bad_record
    return (problem if policy == "fail" else warning)(
        name,
        f"{len(bad)} of the newest {count} cannot be archived as the YAML says, the first one: {bad[0]}",
        _MEANS[policy],
        "correct `source.key`, `source.value` or `source.headers`, if the records are as they should be",
        *(["`policies.bad_record: dead_letter` keeps them apart, to be archived later"] if policy == "fail" else []),
    )
