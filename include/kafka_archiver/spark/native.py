"""The native reader as a Spark job: a task for each chunk, whose records never cross the JVM."""

import pickle
from collections.abc import Iterable, Mapping, Sequence

from pyspark import SparkContext

from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.plan import Chunk
from kafka_archiver.spark.reading import read_settings, whole_chunk
from kafka_archiver.spark.sink import Sink
from kafka_archiver.store import open_store
from kafka_archiver.writer.commit import abort

# A second Python worker costs a CPU second to start, as much as a hundred thousand records; but these may be large.
TASK_OFFSETS = 10_000
# Each chunk may have an object for every hour, whatever its records.
TASK_CHUNKS = 8


def write_natively(
    context: SparkContext, chunks: Sequence[Chunk], properties: Mapping[str, str], sink: Sink
) -> list[bytes]:
    """Read and write the chunks. Returns what the sink returned for each.

    :param chunks: each from where the log still has it.
    :param properties: librdkafka's client properties.
    """

    settings = read_settings(sink.plan.settings, sink.bad_record)

    def write(some: Iterable[Chunk]) -> list[bytes]:
        written: list[bytes] = []
        try:
            for chunk in some:
                whole = whole_chunk(sink.plan, chunk.name, chunk.start)
                records = read_chunk(properties, sink.plan.group, chunk, settings)
                written.append(sink.write(whole, records))
        except BaseException:
            # The driver learns of a chunk only when its whole task has succeeded.
            abort([pickle.loads(item)[0] for item in written], open_store(sink.url, sink.options))
            raise
        return written

    return context.parallelize(chunks, tasks(chunks)).mapPartitions(write).collect()


def tasks(chunks: Sequence[Chunk]) -> int:
    """How many tasks are worth their cost: one a chunk, fewer when there is little in them."""
    offsets = sum(chunk.end - chunk.start for chunk in chunks)
    return min(len(chunks), 1 + offsets // TASK_OFFSETS + len(chunks) // TASK_CHUNKS)
