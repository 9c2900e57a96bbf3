"""The version of Java that evaluates SQL. The plan has it, and every driver and every executor is compared with it.

Java decides values: names of months, patterns, the rules of time zones, upper and lower case. So its locale is fixed.
"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import plan_anew
from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.plan import Plan

_VERSION = "java.specification.version"
# Added to the frame that a task reads. Spark evaluates it in the executor.
COLUMN = "_java"
# `upper`, `lower` and the text of intervals follow the locale of the machine: in Turkish, upper('i') is another letter.
LOCALE = "-Duser.language=en -Duser.country=US -Duser.script= -Duser.variant="


def java_of(spark: SparkSession) -> str:
    """Return the version of Java that runs Spark's driver: `17`."""
    return str(_system(spark).getProperty(_VERSION))


def fix_locale(spark: SparkSession) -> None:
    """Give the driver the locale that executors have by `LOCALE`."""
    jvm: Any = spark._jvm
    jvm.java.util.Locale.setDefault(jvm.java.util.Locale.US)


def with_java(frame: DataFrame) -> DataFrame:
    """Add the column `_java` to a frame: the executor's version."""
    return frame.selectExpr("*", f"reflect('java.lang.System', 'getProperty', '{_VERSION}') AS {COLUMN}")


def require_java(plan: Plan, running: str, where: str) -> None:
    """Compare a version with that of the plan. Plans of earlier releases have none, and take any.

    :raises PermanentError: it is another.
    """
    sql = plan.settings.transform and plan.settings.transform.sql
    if sql and sql.java and sql.java != running:
        raise PermanentError(
            f"the run was planned with Java {sql.java}, and {where} has Java {running}, on which SQL may give other "
            "values.",
            *advise(
                f"Run it on Java {sql.java}; or let Airflow plan with Java {running} too (JAVA_HOME where Airflow "
                "plans), and plan the run anew: ",
                plan_anew(plan.archive, plan.run),
            ),
        )


def _system(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.java.lang.System
