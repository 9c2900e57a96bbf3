"""Lets Spark check a plan's SQL, and say which columns it makes, before the plan is made.

Spark starts only if the SQL, the schemas, Spark or Java have changed since the plan before: it takes many seconds.
"""

import hashlib
import importlib.metadata
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from kafka_archiver.context.local_spark import java_version
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.model.transforms import Sql

if TYPE_CHECKING:
    from kafka_archiver.context.archive_context import Context
    from kafka_archiver.planning.schemas import FrozenSchemas

log = logging.getLogger(__name__)


def with_analysed_sql(
    context: "Context", settings: Settings, frozen: "FrozenSchemas", topics: set[str], before: Plan | None
) -> Settings:
    """Return the settings with what Spark says of their SQL.

    :param topics: that the plan reads. :param before: the plan before, whose answer may still be right.
    :raises ConfigError: Spark does not take the SQL, or no format has its columns.
    :raises TransientError: Spark does not answer.
    """
    transform = settings.transform
    if transform is None or transform.sql is None:
        return settings
    # Imported late: it loads Arrow.
    from kafka_archiver.records.pipeline.transform.questions import SqlQuestion, columns_for, fields_for, parses_json
    from kafka_archiver.records.pipeline.variants import Variants

    sql = _answered_sql(settings, before) or transform.sql
    columns_of = {t: columns_for(fields_for(settings, t, frozen.schemas, frozen.texts)) for t in sorted(topics)}
    digests = {topic: _digest_of_columns(columns) for topic, columns in columns_of.items()}
    if new := {topic: columns for topic, columns in columns_of.items() if sql.seen.get(topic) != digests[topic]}:
        folder = (str(Path(context.archive.file).absolute().parent),) if context.archive.file else ()
        json_ = parses_json(settings, next(iter(new)), frozen.schemas)
        log.info("asking Spark whether it takes %s", " and ".join(f"`{name}`" for name in transform.sql.declared_keys))
        answer = context.spark(SqlQuestion(sql=transform.sql, topics=new, parses_json=json_, path=folder))
        if answer.error:
            raise ConfigError(f"{context.archive.file}: {answer.error}" if context.archive.file else answer.error)
        known = {"seen": {**sql.seen, **digests}, "made": {**sql.made, **answer.made}}
        known["literals"] = {**sql.literals, **answer.literals}
        sql = sql.model_copy(update={"spark": answer.spark, "java": answer.java, **known})
    analysed = settings.model_copy(update={"transform": transform.model_copy(update={"sql": sql})})
    for topic in topics:
        Variants(analysed, topic, frozen.schemas, frozen.texts, keys=context.keys)
    return analysed


def _answered_sql(settings: Settings, before: Plan | None) -> Sql | None:
    """Return the SQL with what Spark said of it before; None: it was other SQL, other settings, another Spark or
    Java.
    """
    sql = before and before.settings.transform and before.settings.transform.sql
    if not before or not sql or sql.spark != importlib.metadata.version("pyspark"):
        return None
    if (java := java_version()) and sql.java != java:
        return None
    return sql if before.settings.asked() == settings.asked() else None


def _digest_of_columns(columns: Mapping[str, JsonValue]) -> str:
    return hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest()[:32]
