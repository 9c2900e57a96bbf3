"""Some records of a plan, from which a schema is inferred."""

from collections.abc import Iterable, Iterator

from kafka_archiver.context.archive_context import Context
from kafka_archiver.model.plan import Chunk, PartitionPlan, Settings

# Partitions of a topic, and offsets at the start of each one's planned range.
PARTITIONS, OFFSETS = 10, 200
_PATIENCE_SECONDS = 5.0


def sample_values(
    context: Context, settings: Settings, partitions: Iterable[PartitionPlan], column: str
) -> Iterator[bytes]:
    """Yield keys or values that are not null, of the first offsets of some partitions of one topic.

    :raises TransientError: the brokers do not answer.
    """
    # Imported late, because it loads Kafka's client, and Airflow parses modules that import this one all day.
    from kafka_archiver.kafka.reader import read_chunk

    whole = settings.model_copy(update={"content": "record"})
    for partition in [p for p in partitions if p.ranges][:PARTITIONS]:
        start, end = partition.ranges[0]
        chunk = Chunk(
            topic=partition.topic,
            partition=partition.partition,
            generation=partition.generation,
            start=start,
            end=min(end, start + OFFSETS),
        )
        for batch in read_chunk(context.cluster.properties, context.archive.group, chunk, whole, _PATIENCE_SECONDS):
            yield from (value for value in batch.column(column).to_pylist() if value is not None)
