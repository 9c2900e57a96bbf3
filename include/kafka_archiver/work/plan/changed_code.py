"""`policies.changed_code`: runs that were planned with other code, another key, Spark or Java than there is now."""

import importlib.metadata
import logging
from typing import assert_never

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line, read_line, tidy_line
from kafka_archiver.context.local_spark import java_version
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.plan import Plan
from kafka_archiver.planning.settings import frozen_transform
from kafka_archiver.work.rebuild import plan_rebuild

log = logging.getLogger(__name__)


def replan_changed(context: Context, line: Line) -> Line:
    """Plan such runs anew, with today's settings, if the policy says so. Returns the line with their new plans.

    A run that has written its manifest needs no code any more.

    :raises PolicyError: Kafka no longer has all of a run's offsets.
    """
    match context.archive.policies.changed_code:
        case "fail":
            return line
        case "plan_anew":
            pass
        case unknown:
            assert_never(unknown)
    changed = [p for p in line.unfinished if line.outcome_of(p.run) is None and _is_changed(context, p)]
    for plan in changed:
        log.warning("run %s was planned with other code: planning it anew (policies.changed_code)", plan.run)
        plan_rebuild(context, plan.run)
    return tidy_line(context, read_line(context)) if changed else line


def _is_changed(context: Context, plan: Plan) -> bool:
    transform = plan.settings.transform
    if transform is None or plan.letters or context.ledger.manifest(plan.run):
        return False
    if transform.sql and transform.sql.spark != importlib.metadata.version("pyspark"):
        return True
    if transform.sql and transform.sql.java and (java := java_version()) and transform.sql.java != java:
        return True
    try:
        return frozen_transform(transform, context.archive.file, context.keys) != transform
    except ConfigError:
        # The module, or the key, is not there any more.
        return True
