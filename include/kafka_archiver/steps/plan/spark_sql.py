"""Asks Spark about a plan's SQL before the plan is made: whether it takes it, and which columns it makes.

Spark starts only if the SQL, the schemas or Spark have changed since the plan before: it takes many seconds.
"""

import importlib.metadata
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_archiver.errors import ConfigError
from kafka_archiver.plan import Plan, Settings

if TYPE_CHECKING:
    from kafka_archiver.steps.context import Context
    from kafka_archiver.steps.plan.schemas import Frozen

log = logging.getLogger(__name__)


def with_spark(
    context: "Context", settings: Settings, frozen: "Frozen", topics: set[str], before: Plan | None
) -> Settings:
    """The settings with what Spark says of their SQL.

    :param topics: that the plan reads. :param before: the plan before, whose answer may still be right.
    :raises ConfigError: Spark does not take the SQL, or no format has its columns.
    :raises TransientError: Spark does not answer.
    """
    told = settings.transform
    if told is None or told.sql is None or not topics:
        return settings
    if known := _known(settings, frozen, topics, before):
        return known
    # Imported late: it loads Arrow.
    from kafka_archiver.pipeline.transform.questions import Question, columns_for, fields_for, parses_json
    from kafka_archiver.pipeline.variants import Variants

    folder = (str(Path(context.archive.file).absolute().parent),) if context.archive.file else ()
    seen = {t: columns_for(fields_for(settings, t, frozen.schemas, frozen.texts)) for t in sorted(topics)}
    json_ = parses_json(settings, next(iter(seen)), frozen.schemas)
    log.info("asking Spark about the SQL of `transform`")
    answer = context.spark(Question(sql=told.sql, topics=seen, parses_json=json_, path=folder))
    if answer.error:
        raise ConfigError(f"{context.archive.file}: {answer.error}" if context.archive.file else answer.error)
    sql = told.sql.model_copy(update={"spark": answer.spark, "made": answer.made})
    made = settings.model_copy(update={"transform": told.model_copy(update={"sql": sql})})
    for topic in topics:
        Variants(made, topic, frozen.schemas, frozen.texts, keys=context.keys)
    return made


def _known(settings: Settings, frozen: "Frozen", topics: set[str], before: Plan | None) -> Settings | None:
    """The settings of the plan before, if the same question has the same answer."""
    sql = before and before.settings.transform and before.settings.transform.sql
    if not before or not sql or before.settings.asked() != settings.asked() or before.schemas != frozen.schemas:
        return None
    same = sql.spark == importlib.metadata.version("pyspark")
    if not same or (sql.makes_values and sql.made.keys() != topics):
        return None
    return settings.model_copy(update={"transform": before.settings.transform})
