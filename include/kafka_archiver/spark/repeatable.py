"""Judges an analysed plan of Spark: it may look at one record only, and always gives the same for it."""

import re
from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, SparkSession

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.spark.allowed_expressions import DEPENDS, KNOWN, OF_FUNCTIONS, PACKAGE, REPLACEMENTS

_PROJECTIONS = frozenset({"Project", "SubqueryAlias"})
_FUNCTIONS = _PROJECTIONS | {"Filter", "Generate"}
_REPLACED = PACKAGE + "RuntimeReplaceable"
# Spark gives these the time at which it reads them: timestamp'now', cast('today' as date).
_TODAY = re.compile(r"\b(?:now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_TIMES = ("time", "date")
# Spark prints such values in `printf` by their addresses in memory.
_WITHOUT_TEXT = ("binary", "array", "map", "struct", "variant", "interval", "geography", "geometry")
# An option of from_xml that names a file.
_XSD = "rowvalidationxsdpath"


def literals_of(result: DataFrame, records: DataFrame, is_function: bool) -> list[str]:
    """Return the literals that the plan of `result` has, which reads `records` once.

    :raises ConfigError: the result depends on more than one record, or on more than records.
    """
    literals: list[str] = []
    for node in _plan_of(result, records, _FUNCTIONS if is_function else _PROJECTIONS):
        for expression in _items(node.expressions()):
            require_repeatable(expression, is_function)
            # Only those that are written: the text of one that Spark makes may have an address of memory.
            literals += [str(e.sql()) for e in nodes(expression) if e.getClass().getSimpleName() == "Literal"]
    return literals


def _plan_of(result: DataFrame, records: DataFrame, allowed: frozenset[str]) -> list[JavaObject]:
    """Return the nodes of a plan above the one of `records`."""
    leaf = records._jdf.queryExecution().analyzed()
    waiting = [result._jdf.queryExecution().analyzed()]
    above = []
    leaves = 0
    while waiting:
        node = waiting.pop()
        if node.fastEquals(leaf) or node.sameResult(leaf):
            leaves += 1
            continue
        name = node.getClass().getSimpleName()
        if name not in allowed:
            raise ConfigError(
                f"transform: Spark plans {name}, and a record must become its rows without others: expected "
                "projections, and in a function filters and explode; no aggregate, window, sort, join or other data"
            )
        above.append(node)
        waiting += _items(node.children())
    if leaves != 1:
        raise ConfigError(f"transform: Spark's plan reads the records {leaves} times; expected once")
    return above


def require_repeatable(expression: JavaObject, is_function: bool = False) -> None:
    """Look at an expression of an analysed plan, and at what Spark evaluates in the place of parts of it.

    :raises ConfigError: it may give something else for the same record, or nobody knows that it does not.
    """
    for node in nodes(expression):
        _require_known(node, KNOWN | OF_FUNCTIONS if is_function else KNOWN)
        if replacement := _replacement(node):
            for replaced in _replaced_nodes(replacement):
                _require_known(replaced, KNOWN | REPLACEMENTS, str(node.prettyName()))


def nodes(expression: JavaObject) -> Iterator[JavaObject]:
    """Yield an expression and all below it, itself first."""
    yield expression
    for child in _items(expression.children()):
        yield from nodes(child)


def _items(sequence: JavaObject) -> list[JavaObject]:
    return [sequence.apply(n) for n in range(sequence.size())]


def _replacement(node: JavaObject) -> JavaObject | None:
    """Return what Spark evaluates in the place of an expression, as of `to_timestamp`."""
    return node.replacement() if _class_of(node, _REPLACED).isInstance(node) else None


def _replaced_nodes(expression: JavaObject) -> Iterator[JavaObject]:
    for node in nodes(expression):
        yield node
        if replacement := _replacement(node):
            yield from _replaced_nodes(replacement)


def _class_of(node: JavaObject, name: str) -> JavaObject:
    return node.getClass().getClassLoader().loadClass(name)


def _require_known(node: JavaObject, known: frozenset[str], function: str = "") -> None:
    """:param function: whose replacement the node is part of."""
    name = str(node.getClass().getSimpleName())
    shown = function or str(node.prettyName())
    below = _items(node.children())
    is_random = not node.deterministic() and all(child.deterministic() for child in below)
    if reason := DEPENDS.get(name) or (is_random and "chance, or on how often Spark evaluates it"):
        raise ConfigError(
            f"transform: {shown} depends on {reason}, so it does not always give the same for the same record, and a "
            "retry has to write the same bytes; leave it out"
        )
    if name not in known or not str(node.getClass().getName()).startswith(PACKAGE):
        raise ConfigError(
            f"transform: {shown} ({name}) is not one of the functions of Spark that are known to give the same for the "
            "same record, and a retry has to write the same bytes; leave it out, or use `transform.mapper`"
        )
    if check := _CHECKS.get(name):
        check(node, below)


def _require_no_moment(literal: JavaObject, _: list[JavaObject]) -> None:
    origin = literal.origin()
    if not str(literal.dataType().typeName()).startswith(_TIMES) or origin.sqlText().isEmpty():
        return
    # Of a time only, and only as it is written: Spark makes literals of no SQL, too.
    text = str(origin.sqlText().get())[origin.startIndex().get() : origin.stopIndex().get() + 1]
    if _TODAY.search(text):
        raise ConfigError(_moment(text))


def _require_no_moment_in_cast(cast: JavaObject, below: list[JavaObject]) -> None:
    kinds = str(cast.dataType().typeName()), str(below[0].dataType().typeName())
    if not kinds[0].startswith(_TIMES) or not kinds[1].startswith("string") or not _is_constant(below[0]):
        return
    text = _constant(below[0])
    if _TODAY.search(text):
        raise ConfigError(_moment(f"{text!r} as {cast.dataType().sql()}"))


def _is_constant(expression: JavaObject) -> bool:
    """Return True if an expression has no column. Spark calls few `foldable` before it has replaced parts of them."""
    names = {str(node.getClass().getSimpleName()) for node in nodes(expression)}
    return bool(expression.references().isEmpty()) and "NamedLambdaVariable" not in names


def _constant(expression: JavaObject) -> str:
    """Return the text that an expression without columns has; empty if it has none."""
    spark = SparkSession.active()
    jvm: Any = spark._jvm
    column = Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))
    plan = spark.range(1).select(column.alias("text"))._jdf.queryExecution().optimizedPlan()
    literals = [node for node in nodes(plan.expressions().apply(0)) if node.getClass().getSimpleName() == "Literal"]
    return str(literals[0].value()) if len(literals) == 1 else ""


def _moment(what: str) -> str:
    return (
        f"transform: {what} is the time at which Spark reads it, and a retry has to write the same bytes; write the "
        "time itself"
    )


def _require_text(printed: JavaObject, below: list[JavaObject]) -> None:
    kinds = [str(child.dataType().typeName()) for child in below[1:]]
    if wrong := next((kind for kind in kinds if kind.startswith(_WITHOUT_TEXT)), None):
        raise ConfigError(
            f"transform: {printed.prettyName()} of a value of type {wrong} prints an address of memory, and a retry "
            "has to write the same bytes; cast the value to string, or write hex(value)"
        )


def _require_no_file(parsed: JavaObject, _: list[JavaObject]) -> None:
    if _XSD in str(parsed.options()).lower():
        raise ConfigError(f"transform: {parsed.prettyName()} reads a file for rowValidationXSDPath; leave it out")


_CHECKS: dict[str, Any] = {
    "Literal": _require_no_moment,
    "Cast": _require_no_moment_in_cast,
    "FormatString": _require_text,
    "XmlToStructs": _require_no_file,
    "SchemaOfXml": _require_no_file,
}
