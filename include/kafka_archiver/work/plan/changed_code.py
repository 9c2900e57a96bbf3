"""`policies.changed_code`: runs that were planned with other code, another key, Spark or Java than there is now."""

import importlib.metadata
import logging

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line
from kafka_archiver.context.local_spark import java_version
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.plan import Plan
from kafka_archiver.planning.settings import frozen_transform

log = logging.getLogger(__name__)


def plan_changed_anew(context: Context, line: Line) -> bool:
    """Plan such runs anew, with today's settings, if the policy says so. Returns whether there were any.

    A run that has written its manifest needs no code any more.

    :raises PolicyError: Kafka no longer has all of a run's offsets.
    """
    if context.archive.policies.changed_code != "plan_anew":
        return False
    changed = [p for p in line.unfinished if line.outcome_of(p.run) is None and _is_changed(context, p)]
    # Imported late: a rebuild plans, too.
    from kafka_archiver.work.rebuild import rebuild_run

    for plan in changed:
        log.warning("run %s was planned with other code: planning it anew (policies.changed_code)", plan.run)
        rebuild_run(context, plan.run)
    return bool(changed)


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
