"""A further revision of a run: which revision counts, and a new one at the end of the line."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.clocks import ClockReading
from kafka_archiver.context.line import Line, append_plan, read_line, tidy_line
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import runs
from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.model.object_keys import interval_of, run_name
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.planning.schemas import FrozenSchemas
from kafka_archiver.planning.spark_sql import with_analysed_sql
from kafka_archiver.planning.survey import TRIES
from kafka_archiver.values.documents import isoformat
from kafka_archiver.work.data_keys import with_data_key

log = logging.getLogger(__name__)


def effective_revision(context: Context, line: Line, run: str) -> tuple[Plan, bool]:
    """Return the revision that counts, or that has to be finished; and whether it is final.

    :raises ConfigError: there is no such run.
    :raises IntegrityError: another run has its place in the line.
    """
    interval = interval_of(run)
    waiting = [w for w in line.waiting if w.plan.interval.id == interval and w.outcome in (None, "committed")]
    counts = [w for w in waiting if w.plan.supersedes is None or w.plan.takes_over or w.outcome == "committed"]
    if counts:
        return counts[-1].plan, counts[-1].outcome == "committed"
    old = context.ledger.current(interval)
    if old is None:
        raise ConfigError(
            f"run {run} of archive {context.archive.archive} does not exist.",
            *advise(runs(context.archive.archive), " lists the runs and their states"),
        )
    context.ledger.require_in_line(old)
    # A replaced run is not final. If its replacement is gone, no run has its offsets.
    return old, context.ledger.is_final(old.run)


def append_revision(
    context: Context,
    run: str,
    own: Sequence[str],
    begun: Callable[[Line], Plan | None],
    make: Callable[[Line, Plan, bool], Plan],
) -> Plan:
    """Append a revision of a run to the line, or go on with one that was begun already.

    Gives up other revisions of the line that are not final, except `own`.

    :param begun: the unfinished revision in a line that is as wanted, if any.
    :param make: a plan for the end of the line, in place of the revision that counts; whether that one is final.
    :raises TransientError: other planners were faster at every try.
    """
    for _ in range(TRIES):
        line = read_line(context)
        known = begun(line)
        line = tidy_line(context, line, [*own, *([known.run] if known else [])])
        if known and line.outcome_of(known.run) is None:
            log.info("run %s was begun at %s: going on with it", known.run, isoformat(known.planned_at))
            return known
        plan = make(line, *effective_revision(context, line, run))
        # Any process that reads the line does the same. A takeover cannot replace a run that became final first.
        if not append_plan(context, line, plan):
            continue
        if tidy_line(context, read_line(context), [*own, plan.run]).outcome_of(plan.run) is None:
            log.info("planned run %s in place of run %s", plan.run, plan.supersedes)
            return plan
    raise TransientError(f"other planners of archive {context.archive.archive} were faster {TRIES} times; try again")


def unfinished_revisions(line: Line, run: str, origin: Literal["rebuild", "dead_letters"]) -> Iterator[Plan]:
    """Yield the unfinished revisions of a run that have this origin, the last one first."""
    interval = interval_of(run)
    for waiting in reversed(line.waiting):
        if waiting.plan.interval.id == interval and waiting.plan.origin == origin and waiting.outcome is None:
            yield waiting.plan


def revised_plan(context: Context, line: Line, old: Plan, clocks: ClockReading, **own: Any) -> Plan:
    """Return a plan for the end of the line, in place of `old`. `clocks`: read before anything else that it has of the
    present.

    :param own: what is not as in `old`; at least origin, settings, policies and partitions.
    """
    # The order of Kafka's times says nothing of records that are filed by another time.
    is_ordered = own["settings"].time.is_known_to_kafka
    return Plan(
        archive=old.archive,
        number=line.last + 1,
        interval=old.interval,
        revision=next_revision(context, line, old),
        supersedes=old.run,
        max_disorder_ms=old.max_disorder_ms if is_ordered else None,
        ordered_within_ms=old.ordered_within_ms if is_ordered else None,
        loss_rules=2,
        hour_rules=4,
        planned_at=clocks.earliest,
        at_latest=clocks.latest,
        cluster_id=old.cluster_id,
        group=old.group,
        **own,
    )


def rewriting_plan(
    context: Context,
    line: Line,
    old: Plan,
    clocks: ClockReading,
    settings: Settings,
    frozen: FrozenSchemas,
    partitions: tuple[PartitionPlan, ...],
    **own: Any,
) -> Plan:
    """Return a plan as `revised_plan`, whose objects are written with other settings. Stores schemas and a data key.

    :param own: as of `revised_plan`; at least the origin.
    """
    analysed = with_analysed_sql(context, settings, frozen, {p.topic for p in partitions if p.ranges}, old)
    frozen.store(context.ledger)
    new = revised_plan(
        context,
        line,
        old,
        clocks,
        settings=analysed,
        policies=context.archive.policies.model_dump(),
        schemas=frozen.schemas,
        partitions=partitions,
        **own,
    )
    return with_data_key(context, new)


def next_revision(context: Context, line: Line, old: Plan) -> int:
    """Return the next free revision of this interval."""
    waiting = [w.plan.revision for w in line.waiting if w.plan.interval.id == old.interval.id]
    revision = max([old.revision, *waiting]) + 1
    # Given-up rebuilds have used revisions, too, whatever is left of them.
    while context.ledger.plan(run := run_name(old.interval.id, revision)) or context.ledger.commit(run):
        revision += 1
    return revision


def time_origin(context: Context, old: Plan) -> Plan:
    """Return the plan whose time a revision of `old` keeps: that of the run itself, unless `old` has a wall clock's
    time.
    """
    if not old.revision or old.settings.time.at is not None:
        return old
    return context.ledger.plan(old.interval.id) or old
