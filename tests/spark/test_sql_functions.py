"""Each function of this version of Spark is taken because it is known, or refused by name; no host decides a value."""

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.transforms import Sql
from kafka_archiver.spark.allowed_expressions import DEPENDS, KNOWN, PACKAGE
from kafka_archiver.spark.repeatable import require_repeatable
from kafka_archiver.spark.sql import prepare, schema_of, transformed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

# Somebody has looked at each of them. Besides, aggregates and functions of windows are refused.
_REFUSED = """
    aes_encrypt approx_top_k_estimate collations curdate current_catalog current_database current_date current_path
    current_schema current_time current_timestamp current_timezone current_user from_avro from_protobuf hll_union
    input_file_block_length input_file_block_start input_file_name java_method kll_sketch_merge_bigint
    kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
    kll_sketch_to_string_float localtimestamp make_time monotonically_increasing_id now python_worker_logs rand randn
    random randstr range reflect schema_of_avro schema_of_variant_agg session_user session_window shuffle
    spark_partition_id sql_keywords theta_difference theta_intersection theta_union time time_diff time_from_micros
    time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc to_avro to_protobuf
    to_time try_reflect try_to_time tuple_difference_double tuple_difference_integer tuple_difference_theta_double
    tuple_difference_theta_integer tuple_intersection_double tuple_intersection_integer
    tuple_intersection_theta_double tuple_intersection_theta_integer tuple_union_double tuple_union_integer
    tuple_union_theta_double tuple_union_theta_integer uniform user uuid vector_avg vector_sum version window
    window_time xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short
    xpath_string
"""
# For functions whose own examples are of several records, or that have none.
MORE = ["{}(NULL)", "{}(CAST(NULL AS binary))", "{}(CAST(NULL AS binary), 1)"]
# Texts that some functions read as the present time.
MOMENTS = ["{}('now')"]
FAILED = "error "
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
FIELDS = {
    "_chunk": "long", "_offset": "long", "topic": "string", "partition": "integer", "offset": "long",
    "timestamp": "timestamp", "timestamp_type": "integer", "value": "binary", "key": "binary",
}  # fmt: skip
ROW = (0, 1, "t", 0, 1, datetime(2026, 11, 21, 12, tzinfo=UTC), 0, b"abc", b"k")


def functions(spark: "SparkSession") -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, group and examples of each function of Spark."""
    analysis: Any = spark._jvm.org.apache.spark.sql.catalyst.analysis  # type: ignore[union-attr]
    for registry in (analysis.FunctionRegistry.builtin(), analysis.TableFunctionRegistry.builtin()):
        names = registry.listFunction().iterator()
        while names.hasNext():
            identifier = names.next()
            info = registry.lookupFunction(identifier).get()
            examples = re.findall(r"> (SELECT.*?);?\n", info.getExamples() + "\n")
            yield str(identifier.funcName()), str(info.getGroup()), examples


@cache
def is_taken(spark: "SparkSession", statement: str) -> bool:
    try:
        waiting = [spark.sql(statement)._jdf.queryExecution().analyzed()]
    except (PySparkException, Py4JJavaError):
        return False
    try:
        while waiting:
            plan = waiting.pop()
            if plan.getClass().getSimpleName() in ("Range", "PythonWorkerLogs"):
                return False
            parts, below = plan.expressions(), plan.children()
            for n in range(parts.size()):
                require_repeatable(parts.apply(n), is_function=True)
            waiting += [below.apply(n) for n in range(below.size())]
    except ConfigError:
        return False
    return True


def test_each_function_of_spark_is_known_or_refused_and_a_new_one_is_refused_until_it_is_looked_at(
    spark: "SparkSession",
) -> None:
    prepare(spark, Sql(select=("1",)))
    count, refused = 0, set()
    for name, group, examples in functions(spark):
        count += 1
        if group == "sketch_funcs" or not examples:
            examples += [f"SELECT {more.format(name)}" for more in MORE]
        if any(is_taken(spark, statement) for statement in examples):
            assert group not in ("agg_funcs", "window_funcs"), name
            assert name not in _REFUSED.split(), name
        elif group not in ("agg_funcs", "window_funcs"):
            refused.add(name)
    assert count > 570
    assert sorted(refused) == _REFUSED.split()


def results_of(spark: "SparkSession", statements: list[str]) -> dict[str, str]:
    """Return what each statement gives, or the name of its error, as text. Many are one query."""
    try:
        columns = ", ".join(text.removeprefix("SELECT ") for text in statements)
        rows = spark.sql(f"SELECT {columns}").collect()
    except (PySparkException, Py4JJavaError) as error:
        if len(statements) == 1:
            # The text of Py4J's has the number of an object.
            name = error.getCondition() if isinstance(error, PySparkException) else type(error).__name__
            return {statements[0]: f"{FAILED}{name}"}
    else:
        if len(rows) == 1 and len(rows[0]) == len(statements):
            return dict(zip(statements, map(repr, rows[0]), strict=True))
        if len(statements) == 1:
            return {statements[0]: repr(rows)}
    middle = len(statements) // 2
    return results_of(spark, statements[:middle]) | results_of(spark, statements[middle:])


@contextmanager
def java_in(spark: "SparkSession", zone: str) -> Iterator[None]:
    """Give Java another time zone of its own. Expressions are evaluated and not compiled, which takes longer."""
    zones: Any = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(zone))
    for key, value in INTERPRETED.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        zones.setDefault(before)
        for key in INTERPRETED:
            spark.conf.unset(key)


@pytest.mark.slow
def test_no_function_that_is_taken_gives_something_else_at_another_moment_or_in_another_time_zone(
    spark: "SparkSession",
) -> None:
    prepare(spark, Sql(select=("1",)))
    asked = {
        statement
        for name, group, examples in functions(spark)
        if group not in ("agg_funcs", "window_funcs", "generator_funcs", "sketch_funcs")
        for statement in (*examples, *(f"SELECT {text.format(name)}" for text in MOMENTS))
    }
    statements = sorted(text for text in asked if " FROM " not in text and is_taken(spark, text))
    assert len(statements) > 600
    with java_in(spark, "Pacific/Kiritimati"):
        first = {text: result for each in statements for text, result in results_of(spark, [each]).items()}
    # What fails would fail a whole batch.
    failing, working = (
        [text for text in statements if first[text].startswith(FAILED) == failed] for failed in (True, False)
    )
    batches = [[text] for text in failing] + [working[place : place + 50] for place in range(0, len(working), 50)]
    with java_in(spark, "America/St_Johns"):
        second = {text: result for batch in batches for text, result in results_of(spark, batch).items()}
    assert {text: (first[text], second[text]) for text in statements if first[text] != second[text]} == {}


def test_each_known_expression_is_one_of_spark() -> None:
    [catalyst] = (Path(pyspark.__file__).parent / "jars").glob("spark-catalyst_*.jar")
    folder = PACKAGE.replace(".", "/")
    with zipfile.ZipFile(catalyst) as jar:
        classes = {name.rpartition("/")[2].removesuffix(".class") for name in jar.namelist() if folder in name}
    assert KNOWN - classes == set()
    assert KNOWN & DEPENDS.keys() == set()


def outcome(spark: "SparkSession", text: str) -> Any:
    """Return what the SQL makes of a record, or the reason for which it is refused."""
    sql = Sql(select=(f"{text} AS x",))
    prepare(spark, sql)
    try:
        frame = transformed(spark.createDataFrame([ROW], schema_of(FIELDS)), sql, False, lambda: repr).frame
    except ConfigError as error:
        return str(error)
    return (frame.collect()[0]["_row"] or [None])[0]


@pytest.mark.parametrize(
    "text",
    [
        "cast(nvl('now', 'x') as timestamp)",
        "cast(btrim(' now ') as timestamp)",
        "cast(mask('now', NULL, NULL, NULL, NULL) as date)",
        "cast(nullif('now', 'x') as timestamp)",
        "timestamp(lower('NOW'))",
        "cast(try_element_at(array('now'), 1) as date)",
        "timestamp_ntz'now'",
        "hour('now')",
        "date_add('today', 1)",
        "greatest(timestamp, cast('tomorrow' as timestamp))",
    ],
)
def test_the_present_time_is_found_in_whatever_makes_its_text(spark: "SparkSession", text: str) -> None:
    assert "is the time at which Spark reads it, and a retry has to write the same bytes" in outcome(spark, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("printf('%s', value)", "printf of a value of type binary prints an address of memory"),
        ("format_string('%s %s', topic, array(1))", "of a value of type array prints an address of memory"),
        ("xpath_string(topic, 'a')", "depends on the files and addresses that a document names (its DTD)"),
        ("from_xml(topic, 'a int', map('rowValidationXSDPath', '/a'))", "reads a file for rowValidationXSDPath"),
        ("schema_of_xml('<a/>', map('ROWVALIDATIONXSDPATH', '/a'))", "reads a file for rowValidationXSDPath"),
        ("unix_timestamp()", "current_timestamp depends on the time of the query"),
        ("convert_timezone('UTC', timestamp_ntz'2026-01-01')", "current_timezone depends on the session of Spark"),
        ("uniform(0, 1, 7)", "uniform depends on chance"),
        ("reflect('java.util.UUID', 'randomUUID')", "reflect depends on code outside of Spark's SQL"),
        ("window_time(struct(timestamp))", "Spark"),
        ("x -> 1", "Spark does not take `select`"),
    ],
)
def test_what_depends_on_more_than_the_record_is_refused_by_name(spark: "SparkSession", text: str, reason: str) -> None:
    assert reason in str(outcome(spark, text))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("transform(array('now'), x -> try_cast(x as timestamp) is null)", [True]),
        ("try_cast(concat(substr(topic, 1, 0), 'now') as timestamp)", None),
        ("printf('%s %05d %.2f', topic, offset, 1.5D)", "t 00001 1.50"),
        ("aggregate(map_values(map('a', 1, 'b', 2)), 0, (a, b) -> a + b)", 3),
        ("parse_json('{\"a\": [7]}'):a[0]::int", 7),
        ("upper('iı') || lower('I') || cast(interval 1 minute as string)", "IIiINTERVAL '01' MINUTE"),
        ("date_format(timestamp + interval 1 month, 'EEEE d. MMMM yyyy')", "Monday 21. December 2026"),
    ],
)
def test_ordinary_sql_is_taken_and_follows_no_locale_of_the_machine(
    spark: "SparkSession", text: str, result: Any
) -> None:
    locale: Any = spark._jvm.java.util.Locale  # type: ignore[union-attr]
    locale.setDefault(locale.forLanguageTag("tr-TR"))
    assert outcome(spark, text) == result


def test_a_setting_of_spark_decides_no_value_of_a_python_udf(spark: "SparkSession") -> None:
    spark.conf.set("spark.sql.execution.pythonUDF.arrow.enabled", "false")
    spark.conf.set("spark.sql.optimizer.enableJsonExpressionOptimization", "false")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "77")
    prepare(spark, Sql(function="a:b"))
    assert spark.conf.get("spark.sql.execution.pythonUDF.arrow.enabled") == "true"
    assert spark.conf.get("spark.sql.optimizer.enableJsonExpressionOptimization") == "true"
    # It says only how a query runs.
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "77"
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
