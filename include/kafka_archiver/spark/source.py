"""Source: the chunks of a plan as one DataFrame, read with Spark's Kafka source.

A read takes one range per partition. So read k has the k-th chunk of each partition, and a union joins the reads: one
Spark task per chunk.
"""

import json
from collections.abc import Iterable, Mapping
from functools import reduce

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, unix_millis

from kafka_archiver.kafka.java_properties import java_properties
from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.ranges import Range, TopicPartition

# Internals of Spark: the partition class of a union, and the method of a Kafka partition for its offsets.
_UNION, _RANGE = "org.apache.spark.rdd.UnionPartition", "offsetRange"


def chunks_frame(
    spark: SparkSession, chunks: Iterable[Chunk], settings: Settings, properties: Mapping[str, str]
) -> DataFrame:
    """The records of the chunks, one Spark partition per chunk, with the columns that the writer needs.

    Columns: `topic`, `partition`, `offset`, `timestamp` (ms), `value` and, for whole
    records, `timestamp_type`, `key`, `headers`.

    :param properties: librdkafka's client properties.
    """
    frames = [_read(spark, read, settings, properties) for read in _reads(chunks)]
    columns = [
        col("topic"),
        col("partition"),
        col("offset"),
        # Milliseconds do not depend on the session's time zone; a Spark timestamp does.
        unix_millis("timestamp").alias("timestamp"),
        *([col("timestampType").alias("timestamp_type"), col("key")] if settings.whole_records else []),
        col("value"),
        *([col("headers")] if settings.whole_records else []),
    ]
    return reduce(DataFrame.unionAll, frames).select(*columns)


def range_read(frame: DataFrame, task: int) -> tuple[TopicPartition, Range]:
    """The offsets that a task on `chunks_frame` read, from Spark's plan: also if there was no record.

    :raises PermanentError: this version of Spark does not tell.
    """
    try:
        part = frame._jdf.queryExecution().toRdd().partitions()[task]
        while part.getClass().getName() == _UNION:
            part = part.parentPartition()
        read = getattr(part, _RANGE)()
        name = TopicPartition(read.topicPartition().topic(), read.topicPartition().partition())
        return name, Range(read.fromOffset(), read.untilOffset())
    except (Py4JError, TypeError) as error:
        raise PermanentError(
            f"a task found no record, and Spark {frame.sparkSession.version} does not say which offsets it read, so "
            "there is no proof that they have no record. Set `source.reader: native`"
        ) from error


def _reads(chunks: Iterable[Chunk]) -> Iterable[list[Chunk]]:
    waiting: dict[TopicPartition, list[Chunk]] = {}
    for chunk in chunks:
        waiting.setdefault(chunk.name, []).append(chunk)
    for turn in range(max(map(len, waiting.values()), default=0)):
        yield [mine[turn] for mine in waiting.values() if turn < len(mine)]


def offsets_json(chunks: Iterable[Chunk], end: bool) -> str:
    """The chunks' starts (or ends) in Spark's JSON: {"topic": {"partition": offset}}."""
    offsets: dict[str, dict[str, int]] = {}
    for chunk in chunks:
        offsets.setdefault(chunk.topic, {})[str(chunk.partition)] = chunk.end if end else chunk.start
    return json.dumps(offsets, sort_keys=True)


def _read(spark: SparkSession, chunks: list[Chunk], settings: Settings, properties: Mapping[str, str]) -> DataFrame:
    assigned: dict[str, list[int]] = {}
    for chunk in chunks:
        assigned.setdefault(chunk.topic, []).append(chunk.partition)
    # Spark drops prefetched records between polls, so large fetches are waste: with 2 MiB instead of 8, a task takes
    # 5 % less CPU and the JVM 25 % less memory. Larger records still arrive.
    reader = (
        spark.read.format("kafka")
        .options(**{f"kafka.{name}": value for name, value in java_properties(properties).items()})
        .option("assign", json.dumps(assigned, sort_keys=True))
        .option("startingOffsets", offsets_json(chunks, end=False))
        .option("endingOffsets", offsets_json(chunks, end=True))
        .option("failOnDataLoss", "true")
        .option("kafka.isolation.level", settings.isolation)
        .option("kafka.max.poll.records", "5000")
        .option("kafka.max.partition.fetch.bytes", str(2 << 20))
        .option("groupIdPrefix", "kafka-archiver")
        .option("includeHeaders", str(settings.whole_records).lower())
    )
    return reader.load()
