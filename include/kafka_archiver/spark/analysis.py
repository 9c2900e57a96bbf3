"""What Spark thinks of a plan's SQL, without records: a program of its own, which planning starts when SQL has changed.

Input: a `Question` as JSON. The last line of its output: an `Answer` as JSON.
"""

import sys

from pyspark.sql import SparkSession

from kafka_archiver.errors import ArchiverError
from kafka_archiver.pipeline.transform.code import load_function
from kafka_archiver.pipeline.transform.questions import Answer, Question
from kafka_archiver.pipeline.transform.spark_types import field_of
from kafka_archiver.spark.sql import made_by, prepare, schema_of, transformed


def answer(spark: SparkSession, question: Question) -> Answer:
    """Spark's version, and by topic the type of the values that the SQL makes; or what is wrong."""
    told = question.sql
    prepare(spark, told)
    made: dict[str, str] = {}
    try:
        for topic, fields in question.topics.items():
            frame = spark.createDataFrame([], schema_of(fields))
            found = transformed(frame, told, question.parses_json, lambda: load_function(told.function or ""))
            if kind := made_by(found):
                field_of(kind)
                made[topic] = kind
    except ArchiverError as error:
        return Answer(error=str(error))
    return Answer(spark=spark.version, made=made)


def main() -> None:
    """Answer the question of standard input."""
    question = Question.model_validate_json(sys.stdin.read())
    sys.path.extend(question.path)
    builder = SparkSession.builder.master("local[1]").appName("kafka-archiver: analysis")
    spark = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF").getOrCreate()
    found = answer(spark, question)
    spark.stop()
    sys.stdout.write(f"\n{found.model_dump_json()}\n")


if __name__ == "__main__":
    main()
