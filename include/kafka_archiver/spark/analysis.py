"""Asks Spark about a plan's SQL, without records: a program of its own, which planning starts when SQL has changed.

Input: a `SqlQuestion` as JSON. The last line of its output: an `SqlAnswer` as JSON.
"""

import sys

from pyspark.sql import SparkSession

from kafka_archiver.messages.errors import ArchiverError, ConfigError
from kafka_archiver.records.pipeline.transform.code import load_function
from kafka_archiver.records.pipeline.transform.questions import SqlAnswer, SqlQuestion
from kafka_archiver.records.pipeline.transform.spark_types import field_of
from kafka_archiver.spark.java import java_of
from kafka_archiver.spark.sql import made_by, prepare, schema_of, transformed


def answer(spark: SparkSession, question: SqlQuestion) -> SqlAnswer:
    """Return the versions of Spark and Java, and by topic the type of the SQL's values; or what is wrong."""
    sql = question.sql
    load = lambda: load_function(sql.function or "")  # noqa: E731
    prepare(spark, sql)
    types_by_topic: dict[str, str] = {}
    literals: dict[str, str] = {}
    try:
        for topic, fields in question.topics.items():
            frame = spark.createDataFrame([], schema_of(fields))
            result = transformed(frame, sql, question.parses_json, load)
            if sql.function:
                literals[topic] = result.literals
                if transformed(frame, sql, question.parses_json, load).literals != result.literals:
                    raise ConfigError(
                        f"transform.function: {sql.function} made two different frames when it was called twice, as "
                        "with a clock or random numbers in Python; a retry has to write the same bytes"
                    )
            if kind := made_by(result.frame):
                field_of(kind)
                types_by_topic[topic] = kind
    except ArchiverError as error:
        return SqlAnswer(error=str(error))
    return SqlAnswer(spark=spark.version, java=java_of(spark), made=types_by_topic, literals=literals)


def main() -> None:
    """Answer the question of standard input."""
    question = SqlQuestion.model_validate_json(sys.stdin.read())
    sys.path.extend(question.path)
    builder = SparkSession.builder.master("local[1]").appName("kafka-archiver: analysis")
    spark = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF").getOrCreate()
    result = answer(spark, question)
    spark.stop()
    sys.stdout.write(f"\n{result.model_dump_json()}\n")


if __name__ == "__main__":
    main()
