"""The chunks of a plan with SQL: read in a task, then Spark's expressions, then written, in the same task."""

import json
import uuid
from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark import SparkContext
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame, SparkSession

from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import plan_anew
from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.model.transforms import Sql
from kafka_archiver.records.pipeline.transform.code import load_function, require_code
from kafka_archiver.records.pipeline.transform.questions import columns_for, fields_for, parses_json
from kafka_archiver.spark.failures import raised_by_python
from kafka_archiver.spark.feed import Feed
from kafka_archiver.spark.java import java_of, require_java, with_java
from kafka_archiver.spark.native import reader_of, share
from kafka_archiver.spark.reading import read_settings
from kafka_archiver.spark.sink import Sink
from kafka_archiver.spark.source import chunks_frame
from kafka_archiver.spark.sql import TransformedFrame, made_by, prepare, schema_of, transformed

Rows = "task int, result binary"


def sql_frame(
    spark: SparkSession, chunks: Sequence[Chunk], kafka: Mapping[str, str], sink: Sink, sql: Sql, by_spark: bool
) -> DataFrame:
    """A frame whose action writes the chunks; its rows are those of `Sink.write_spooled`.

    :param kafka: librdkafka's client properties. :param by_spark: whether Spark's Kafka source reads.
    :raises PermanentError: Spark, or the function, is not that of the plan.
    """
    _require_as_planned(spark, sql, sink.plan)
    prepare(spark, sql)
    job = uuid.uuid4().hex
    topics = list(dict.fromkeys(chunk.topic for chunk in chunks))
    frames = []
    for topic in topics:
        some = [chunk for chunk in chunks if chunk.topic == topic]
        result = transformed_records(spark, topic, some, kafka, sink, sql, job, by_spark)
        _require_same(made_by(result.frame), sql.made.get(topic), topic, sink)
        if sql.literals.get(topic, result.literals) != result.literals:
            raise PermanentError(
                f"transform.function: {sql.function} made another frame than when the run was planned; its result "
                "must depend on its code alone: no clock or variable of this machine, and no action on the records, "
                "as `count` is"
            )
        frames.append(result.frame.mapInArrow(lambda batches: sink.write_spooled(batches, job), Rows))
    return reduce(DataFrame.unionAll, frames)


def shares_by_topic(context: SparkContext, chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Return the chunks of each task of `sql_frame`, if Spark's source does not read."""
    topics = list(dict.fromkeys(chunk.topic for chunk in chunks))
    of_topics = ([chunk for chunk in chunks if chunk.topic == topic] for topic in topics)
    return [task for some in of_topics for task in share(some, context.defaultParallelism)]


def transformed_records(
    spark: SparkSession,
    topic: str,
    chunks: Sequence[Chunk],
    kafka: Mapping[str, str],
    sink: Sink,
    sql: Sql,
    job: str,
    by_spark: bool = False,
) -> TransformedFrame:
    """Return Spark's result for the records of chunks of a topic, after `prepare`."""
    frame = _fed(spark, topic, chunks, kafka, sink, job, by_spark)
    json_ = parses_json(sink.plan.settings, topic, sink.job.decoded)
    return transformed(frame, sql, json_, lambda: load_function(sql.function or ""))


def of_function(error: Exception, function: str) -> PermanentError | None:
    """The error if a PySpark function of the archive failed on a record, and not the archiver or Spark itself."""
    lines = str(error).partition("\n\nJVM stacktrace")[0].strip().splitlines()
    if not isinstance(error, PySparkException) or not lines or any("kafka_archiver" in line for line in lines):
        return None
    what = raised_by_python(str(error)) or lines[-1] if isinstance(error, PythonException) else lines[0]
    return PermanentError(
        f"transform.function: {function} failed in Spark, which tells no policy the record, so none can decide "
        f"about it: {what.strip()}. Catch the error in the function, or use `transform.mapper`, whose errors "
        "`policies.bad_record` decides about"
    )


def _fed(
    spark: SparkSession,
    topic: str,
    chunks: Sequence[Chunk],
    kafka: Mapping[str, str],
    sink: Sink,
    job: str,
    by_spark: bool,
) -> DataFrame:
    """Return the records of a topic as Spark's expressions see them."""
    plan = sink.plan
    settings = read_settings(plan.settings, sink.job)
    schema = schema_of(columns_for(fields_for(plan.settings, topic, sink.job.decoded, sink.job.schemas)))
    if by_spark:
        source = with_java(chunks_frame(spark, chunks, settings, kafka))
        return source.mapInArrow(Feed(sink, job).of_frame, schema)
    read = reader_of(sink, kafka)
    tasks = share(chunks, spark.sparkContext.defaultParallelism)
    numbers = with_java(spark.range(0, len(tasks), 1, len(tasks)))
    return numbers.mapInArrow(Feed(sink, job, tasks, read).by_number, schema)


def _require_as_planned(spark: SparkSession, sql: Sql, plan: Plan) -> None:
    if sql.spark != spark.version:
        raise PermanentError(
            f"the run was planned with Spark {sql.spark}, and this is Spark {spark.version}, whose SQL may give other "
            "values.",
            *advise("Run it on that version, or plan the run anew: ", plan_anew(plan.archive, plan.run)),
        )
    require_java(plan, java_of(spark), "Spark's driver")
    if sql.function:
        require_code("function", sql.function, sql.modules, sql.digest)


def _require_same(actual: str | None, planned: str | None, topic: str, sink: Sink) -> None:
    if (actual and json.loads(actual)) != (planned and json.loads(planned)):
        raise PermanentError(
            f"Spark makes other columns of topic {topic} by `transform` than when the run was planned (settings "
            f"of Spark that change the meaning of SQL?): expected {planned}, found {actual}.",
            *advise("To plan the run anew: ", plan_anew(sink.plan.archive, sink.plan.run)),
        )
