"""`transform.where`, `select` and `function` as a DataFrame: one row for each record, or any for a function.

Only what looks at one record, and always gives the same for it, is taken: the analysed plan is checked, expression by
expression. Spark drops no row for `where`, and an error of one record (ANSI) does not fail the task: see `TryEval`.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, lit, struct, when
from pyspark.sql.types import DataType, DateType, StructType, TimestampNTZType, TimestampType

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.transforms import Sql
from kafka_archiver.records.pipeline.base import NONE
from kafka_archiver.records.pipeline.transform.code import one_line_of
from kafka_archiver.records.pipeline.transform.from_spark import RAISED_TIME
from kafka_archiver.spark.java import fix_locale
from kafka_archiver.spark.repeatable import literals_of, nodes

# What decides the meaning of SQL, whatever spark.conf says. Without common subexpressions: Spark would evaluate them
# outside of what catches their errors.
MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
}
# Settings of SQL that decide how a query runs, and no value of it.
_HARMLESS = tuple(
    f"spark.sql.{name}"
    for name in (
        "adaptive.", "shuffle.", "files.", "sources.", "streaming.", "ui.", "warehouse.", "catalog", "debug.",
        "codegen.", "inMemoryColumnarStorage.", "cache.", "autoBroadcastJoinThreshold", "extensions",
        "broadcastTimeout", "maxPlanStringLength", "queryExecutionListeners", "artifact.",
        "execution.interruptOnCancel", "execution.arrow.maxRecordsPerBatch", "execution.arrow.maxBytesPerBatch",
        "execution.arrow.compression.", "execution.pyspark.udf.", "execution.python.udf.",
        "execution.pandas.udf.buffer.size",
    )
)  # fmt: skip
_TIME = ("_time",)
_TIMES = TimestampType | TimestampNTZType | DateType
# The archiver's own columns.
_OWN = frozenset({"_chunk", "_offset", "_tried", "_time", "_where"})
_STAR = re.compile(r"^\s*\*(?=\s*(?:$|except\b))", re.IGNORECASE)
Load = Callable[[], Callable[[DataFrame], Any]]


def prepare(spark: SparkSession, sql: Sql) -> None:
    """Set what decides the meaning of SQL, and take back its other settings, but those known to decide no value.

    A function's errors would fail the run, so it gets null instead.
    """
    for name in spark.conf.getAll:
        if name.startswith("spark.sql.") and not name.startswith(_HARMLESS) and spark.conf.isModifiable(name):
            spark.conf.unset(name)
    fix_locale(spark)
    for name, value in {**MEANING, "spark.sql.ansi.enabled": str(sql.function is None).lower()}.items():
        spark.conf.set(name, value)


def schema_of(fields: Mapping[str, Any]) -> StructType:
    """The frame that a `Feed` gives. `fields`: types in Spark's JSON by column."""
    columns = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields.items()]
    return StructType.fromJson({"type": "struct", "fields": columns})


class TransformedFrame(NamedTuple):
    """The result of SQL or a function. `literals`: a digest of the values that a function wrote into it."""

    frame: DataFrame
    literals: str


def transformed(frame: DataFrame, sql: Sql, parses_json: bool, load: Load) -> TransformedFrame:
    """`_chunk` and `_offset` of each record, with `_fate` (int64) unless there is a function, `_row` and `_time`.

    :param frame: of `schema_of`. :param parses_json: the value is JSON of no schema: SQL has its fields as text.
    :param load: gives the function.
    :raises ConfigError: Spark does not take it, or the result depends on more than the record.
    """
    try:
        results = _by_function(_timed(frame, sql), sql, load) if sql.function else _by_sql(frame, sql, parses_json)
        literals = literals_of(results, frame, sql.function is not None)
    except (PySparkException, Py4JJavaError) as error:
        what = " and ".join(f"`{name}`" for name in sql.declared_keys)
        raise ConfigError(f"transform: Spark does not take {what}: {_short(error)}") from None
    return TransformedFrame(results, hashlib.sha256("\0".join(literals).encode()).hexdigest()[:32])


def made_by(frame: DataFrame) -> str | None:
    """The type of the values that a frame of `transformed` has, as Spark's JSON; None: values stay.

    :raises ConfigError: they have no column.
    """
    types: list[DataType] = [field.dataType for field in frame.schema if field.name == "_row"]
    if types and types[0].simpleString() == "struct<>":
        raise ConfigError("transform: the value would have no column left: expected at least one behind `transform`")
    return json.dumps(types[0].jsonValue(), sort_keys=True) if types else None


def _by_sql(frame: DataFrame, sql: Sql, parses_json: bool) -> DataFrame:
    spark = frame.sparkSession
    # Behind each text a new line, because it may end with a comment.
    where_text, rows = f"named_struct('w', {sql.where or 'true'}\n)", f"struct({_listed(sql.select)})"
    source = frame
    if parses_json:
        time = f"named_struct('t', {sql.time or 'null'}\n)"
        source = frame.withColumn("value", _fields_of_json(spark, [where_text, rows, time]))
    # First alone, so that an error is of the expression that has it.
    where = source.select(_parsed(spark, sql.where or "true").alias("w"))
    _require_public("transform.where", where)
    if (kind := where.schema["w"].dataType.simpleString()) != "boolean":
        raise ConfigError(f"transform.where: expected a condition, true or false; found an expression of type {kind}")
    source = _timed(source, sql)
    judged = source.select("*", _tried(spark, where_text).alias("_where"))
    true, raised = col("_where.w"), col("_where").isNull()
    if not sql.select:
        fate = when(raised, lit(-1)).when(true, lit(1)).otherwise(lit(0)).cast("long")
        return judged.select("_chunk", "_offset", fate.alias("_fate"), *_TIME[: bool(sql.time)])
    stars = "value.*" if isinstance(source.schema["value"].dataType, StructType) else "value"
    rows = f"struct({_listed(_STAR.sub(stars, item) for item in sql.select)})"
    _require_public("transform.select", source.select(_parsed(spark, rows)))
    row = when(true, _tried(spark, rows)).alias("_row")
    chosen = judged.select("_chunk", "_offset", "_where", row, *_TIME[: bool(sql.time)])
    fate = (
        when(raised, lit(-1)).when(~true | true.isNull(), lit(0)).when(col("_row").isNull(), lit(-2)).otherwise(lit(1))
    )
    return chosen.select("_chunk", "_offset", fate.cast("long").alias("_fate"), "_row", *_TIME[: bool(sql.time)])


def _listed(items: Iterable[str]) -> str:
    return ", ".join(f"{item}\n" for item in items)


def _timed(frame: DataFrame, sql: Sql) -> DataFrame:
    """The frame with the column `_time`, if SQL gives the time: milliseconds since 1970, or as `from_spark` has it."""
    if not sql.time:
        return frame
    spark = frame.sparkSession
    alone = frame.select(_parsed(spark, sql.time).alias("t"))
    _require_public("timestamp.sql", alone)
    kind = alone.schema["t"].dataType
    if not isinstance(kind, _TIMES):
        raise ConfigError(
            f"timestamp.sql: expected a timestamp or a date, found an expression of type {kind.simpleString()}; "
            "timestamp_millis, timestamp_seconds and to_timestamp make one"
        )
    tried = _tried(spark, f"named_struct('t', unix_millis(CAST(({sql.time}\n) AS timestamp)))")
    time = when(col("_tried").isNull(), lit(RAISED_TIME)).otherwise(coalesce(col("_tried.t"), lit(NONE)))
    columns = [col(f"`{name}`") for name in frame.columns]
    return frame.select(*columns, tried.alias("_tried")).select(*columns, time.cast("long").alias("_time"))


def _by_function(frame: DataFrame, sql: Sql, load: Load) -> DataFrame:
    """The function's rows: all columns of its result but `_kafka`, which says which record a row is of."""
    kafka = [name for name in frame.columns if name not in ("value",)]
    value = frame.schema["value"].dataType
    values = [col("value.*")] if isinstance(value, StructType) else [col("value")]
    source = frame.select(struct(*kafka).alias("_kafka"), *values)
    try:
        result = load()(source)
    except PySparkException:
        raise
    except Exception as error:
        raise ConfigError(f"transform.function: it raised {one_line_of(error)}") from error
    if not isinstance(result, DataFrame):
        raise ConfigError(f"transform.function: expected a DataFrame, found {type(result).__name__}")
    if _attribute(result) is None or _attribute(result) != _attribute(source):
        raise ConfigError(
            "transform.function: its result has no column `_kafka`, or another one; the column says which record a row "
            "is of, so it has to stay as it was"
        )
    names = [name for name in result.columns if name != "_kafka"]
    if not names:
        raise ConfigError("transform.function: its result has no column but `_kafka`; expected those of the value")
    row = struct(*(result[f"`{name}`"] for name in names))
    names = ["_chunk", "_offset", *_TIME[: bool(sql.time)]]
    return result.select(*(col(f"_kafka.{name}").alias(name) for name in names), row.alias("_row"))


def _attribute(frame: DataFrame) -> str | None:
    """The identity of the column `_kafka`, which any expression would change."""
    output = frame._jdf.queryExecution().analyzed().output()
    ids = [str(output.apply(n).exprId()) for n in range(output.size()) if output.apply(n).name() == "_kafka"]
    return ids[0] if len(ids) == 1 else None


def _parsed(spark: SparkSession, text: str) -> Column:
    return _column(spark, _expression(spark, text))


def _tried(spark: SparkSession, text: str) -> Column:
    """The expression, null where it raises."""
    tried = _jvm(spark).org.apache.spark.sql.catalyst.expressions.TryEval(_expression(spark, text))
    return _column(spark, tried)


def _expression(spark: SparkSession, text: str) -> JavaObject:
    return spark._jsparkSession.sessionState().sqlParser().parseExpression(text)


def _column(spark: SparkSession, expression: JavaObject) -> Column:
    return Column(_jvm(spark).org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def _fields_of_json(spark: SparkSession, texts: list[str]) -> Column:
    """A struct of the fields of a JSON value that SQL names, as text: `value.a.b`.

    :raises ConfigError: SQL has the whole value, too, of which it would see these fields only.
    """
    fields: dict[str, Any] = {}
    whole = False
    for text in texts:
        for node in nodes(_expression(spark, text)):
            whole |= node.getClass().getSimpleName().startswith("UnresolvedStar")
            below = node.children()
            for names in filter(None, (_names(below.apply(n)) for n in range(below.size()))):
                if names[0].lower() == "value":
                    whole |= len(names) == 1 and node.getClass().getSimpleName() not in ("IsNull", "IsNotNull")
                    level = fields
                    for name in names[1:]:
                        level = level.setdefault(name, {})
    if fields and whole:
        raise ConfigError(
            "transform: `*` or the whole `value` beside fields of a JSON value that has no `schema`, where SQL sees "
            "only the fields that it names; name each field that you want, as value.a, or give the value a `schema`"
        )
    if not fields:
        return col("value")

    def built(level: Mapping[str, Any], path: str) -> str:
        expression = f"get_json_object(cast(value as string), {_quoted(path)})"
        if not level:
            return expression
        if wrong := next((name for name in level if "'" in name), None):
            raise ConfigError(f"transform: the field {wrong!r} of a JSON value has a quote; give the value a `schema`")
        members = (_quoted(name) + ", " + built(below, f"{path}['{name}']") for name, below in level.items())
        # Also the value itself, or an object in it, may be null.
        return f"IF({'value' if path == '$' else expression} IS NULL, NULL, named_struct({', '.join(members)}))"

    return _parsed(spark, built(fields, "$"))


def _names(expression: JavaObject) -> list[str]:
    """The names of a column, and of fields in it; empty for other expressions."""
    if expression.getClass().getSimpleName() != "UnresolvedAttribute":
        return []
    parts = expression.nameParts()
    return [parts.apply(n) for n in range(parts.size())]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _require_public(key: str, frame: DataFrame) -> None:
    """:raises ConfigError: the expression that the frame selects has a column that SQL does not see."""
    for node in nodes(frame._jdf.queryExecution().analyzed().expressions().apply(0)):
        if node.getClass().getSimpleName() == "AttributeReference" and node.name() in _OWN:
            raise ConfigError(
                f"{key}: the column {node.name()} is the archiver's own; name the columns of the record, or write "
                "`value.*` instead of a `*` within an expression"
            )


def _short(error: PySparkException | Py4JJavaError) -> str:
    text = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error)
    text = text.partition("\n\nJVM stacktrace")[0]
    return " ".join(text.partition(";\n'Project")[0].split())[:500]
