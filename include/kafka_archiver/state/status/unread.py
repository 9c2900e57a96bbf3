"""Topics that the YAML names no longer, although Kafka has records of them that no run has archived."""

from collections.abc import Iterator, Mapping

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line
from kafka_archiver.kafka.topics import Topic
from kafka_archiver.messages.actions import words
from kafka_archiver.messages.advice import acknowledge
from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.messages.wording import count
from kafka_archiver.model.findings import Finding, warning
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.values.ranges import Range, TopicPartition


def of_unread_topics(context: Context, line: Line) -> Iterator[Finding]:
    """Yield a finding for each topic with offsets that no run will take. Asks nothing if the YAML names all topics.

    :raises TransientError: the brokers do not answer.
    """
    source = context.archive.source
    known = line.expected(context.ledger).by_name()
    for topic in sorted({name.topic for name in known if not source.selects(name.topic)}):
        try:
            if context.cluster.topic_ids([topic])[topic]:
                [present] = context.cluster.topics([topic])
                yield from _left_behind(context, present, known)
        except PermanentError as error:
            yield _finding(context, topic, 0, f"how many of its offsets were never archived is unknown: {error}")


def _left_behind(
    context: Context, topic: Topic, known: Mapping[TopicPartition, PartitionProgress]
) -> Iterator[Finding]:
    starts, highs = context.cluster.log_starts(topic.names), context.cluster.high_watermarks(topic.names)
    position, number, lost = 0, 0, 0
    for name in topic.names:
        before, end = known.get(name), highs[name].offset
        if before is None or before.topic_id != topic.id:
            # No run has read this log.
            number += max(end - starts[name], 0)
            continue
        left = before.without([Range(before.next or 0, end)])
        position += before.next or 0
        number += sum(r.size for r in left)
        lost += sum(Range(r.start, min(r.end, starts[name])).size for r in left)
    if number:
        gone = f", {lost:,} of which Kafka has removed" if lost else ""
        yield _finding(
            context,
            topic.name,
            position,
            f"{count(number, 'offset')} of it {'was' if number == 1 else 'were'} never archived{gone}",
        )


def _finding(context: Context, topic: str, position: int, observed: str) -> Finding:
    archive, key = context.archive.archive, f"source.{'pattern' if context.archive.source.pattern else 'topics'}"
    # If the archive reads the topic again, and then no longer, that is another finding.
    name = f"topic-not-read:{topic}:{position}"
    return warning(
        "topic not read",
        f"{key} names topic {topic} no longer, and {observed}",
        words(f"put {topic} back into {key}, at least until a run has archived the rest"),
        acknowledge(archive, name),
        name=name,
    )
