"""Spark takes the SQL that an import makes of transforms, and gives the values that Kafka Connect documents."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from kafka_archiver.imports.base import Keys
from kafka_archiver.imports.smt import CONNECT, transforms_of
from kafka_archiver.model.transforms import Sql
from kafka_archiver.records.pipeline.transform.questions import SqlQuestion
from kafka_archiver.spark.analysis import answer
from kafka_archiver.spark.sql import prepare, schema_of, transformed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

AFTER = {"type": "struct", "fields": [{"name": "id", "type": "integer", "nullable": True, "metadata": {}}]}
VALUE = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in {"id": "integer", "card": "string", "n": "string", "after": AFTER}.items()
    ],
}
HEADERS = {
    "type": "array",
    "containsNull": False,
    "elementType": {
        "type": "struct",
        "fields": [
            {"name": "key", "type": "string", "nullable": False, "metadata": {}},
            {"name": "value", "type": "binary", "nullable": True, "metadata": {}},
        ],
    },
}
FIELDS = {
    "_chunk": "long", "_offset": "long", "topic": "string", "partition": "integer", "offset": "long",
    "timestamp": "timestamp", "timestamp_type": "integer", "key": "binary", "value": VALUE, "headers": HEADERS,
}  # fmt: skip


def sql_of(more: dict[str, str], **transforms: str) -> Sql:
    keys = {"transforms": ",".join(transforms), **more}
    for name, options in transforms.items():
        kind, *settings = options.split()
        keys[f"transforms.{name}.type"] = CONNECT + kind
        keys |= {f"transforms.{name}.{key}": value for key, value in (setting.split("=") for setting in settings)}
    section = transforms_of(Keys(keys), True, "", keyed=False, skips_null=True).section
    return Sql(where=section.get("where"), select=tuple(section.get("select", ())))


def rows_of(spark: "SparkSession", sql: Sql) -> list[Any]:
    assert answer(spark, SqlQuestion(sql=sql, topics={"orders": FIELDS}, parses_json=False)).error == ""
    record = (0, 42, "orders", 3, 42, None, 0, None, (7, "4111", "12", (9,)), [("trace", b"x")])
    deleted = (0, 43, "orders", 3, 43, None, 0, None, (8, "4112", "13", None), [])
    prepare(spark, sql)
    frame = spark.createDataFrame([record, deleted], schema_of(FIELDS))
    result = transformed(frame, sql, False, lambda: None).frame
    parsed = [json.loads(line) for line in result.toJSON().collect()]
    # Without `select`, records stay as they are: their offset names them.
    return [row.get("_row", {"offset": row["_offset"]}) for row in parsed if row["_fate"] == 1]


TRACED = {"predicates": "p", "predicates.p.type": f"{CONNECT}predicates.HasHeaderKey", "predicates.p.name": "trace"}
TOPIC = {"predicates": "p", "predicates.p.type": f"{CONNECT}predicates.TopicNameMatches"}


@pytest.mark.parametrize(
    ("more", "transforms", "expected"),
    [
        ({}, {"a": "InsertField$Value static.field=e static.value=it's topic.field=t partition.field=p offset.field=o"},
         [{"t": "orders", "p": 3, "o": 42, "e": "it's"}, {"t": "orders", "p": 3, "o": 43, "e": "it's"}]),
        ({}, {"a": "Cast$Value spec=n:int64,id:string"}, [{"n": 12, "id": "7"}, {"n": 13, "id": "8"}]),
        ({}, {"a": "ReplaceField$Value include=id,n renames=n:number"},
         [{"id": 7, "number": "12"}, {"id": 8, "number": "13"}]),
        # The second record has no `after`: the connector leaves out the null value that it makes.
        ({}, {"a": "ExtractField$Value field=after", "b": "Cast$Value spec=id:string"}, [{"id": "9"}]),
        ({}, {"a": "HoistField$Value field=line"},
         [{"line": {"id": 7, "card": "4111", "n": "12", "after": {"id": 9}}},
          {"line": {"id": 8, "card": "4112", "n": "13"}}]),
        (TRACED, {"a": "Filter predicate=p"}, [{"offset": 43}]),
        (TRACED, {"a": "Filter predicate=p negate=true"}, [{"offset": 42}]),
        (TOPIC | {"predicates.p.pattern": "ord|orders"}, {"a": "Filter predicate=p"}, []),
        (TOPIC | {"predicates.p.pattern": r"ord\w"}, {"a": "Filter predicate=p"}, [{"offset": 42}, {"offset": 43}]),
    ],
    ids=str,
)  # fmt: skip
def test_spark_makes_what_kafka_connect_documents(
    spark: "SparkSession", more: dict[str, str], transforms: dict[str, str], expected: list[dict[str, Any]]
) -> None:
    rows = rows_of(spark, sql_of(more, **transforms))
    assert [{name: row[name] for name in has} for row, has in zip(rows, expected, strict=True)] == expected
