"""The native reader as a Spark job: one task a chunk, whose records never cross the JVM."""

from collections.abc import Mapping, Sequence

from pyspark import SparkContext

from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.plan import Chunk
from kafka_archiver.spark.sink import Sink


def write_natively(
    context: SparkContext, chunks: Sequence[Chunk], properties: Mapping[str, str], sink: Sink
) -> list[bytes]:
    """Read and write the chunks. Returns what the sink returned for each.

    :param chunks: each from where the log still has it.
    :param properties: librdkafka's client properties.
    """

    def write(chunk: Chunk) -> bytes:
        whole = sink.chunk_of(chunk.name, chunk.start)
        return sink.write(whole, read_chunk(properties, sink.plan.group, chunk, sink.read_settings))

    return context.parallelize(chunks, len(chunks)).map(write).collect()
