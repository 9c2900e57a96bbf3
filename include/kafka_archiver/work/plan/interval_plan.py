"""Plan: freeze the offset ranges of an interval before the first byte is read."""

import logging
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line, append_plan, read_line, tidy_line
from kafka_archiver.messages.actions import Advice, advise
from kafka_archiver.messages.advice import fill as fill_up
from kafka_archiver.messages.errors import PolicyError, TransientError
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.planning.beginnings import beginnings
from kafka_archiver.planning.changed_progress import refuse_changed_progress
from kafka_archiver.planning.handover import check_handover, live_members_message
from kafka_archiver.planning.interval_offsets import interval_offsets
from kafka_archiver.planning.left_out import left_out, still_true, with_older
from kafka_archiver.planning.partition_state import Known
from kafka_archiver.planning.planned_ranges import plan_backfill, plan_forward
from kafka_archiver.planning.returned_logs import refuse_returned_logs
from kafka_archiver.planning.schemas import FrozenSchemas, freeze_schemas
from kafka_archiver.planning.settings import settings_of
from kafka_archiver.planning.snapshots import Snapshots, with_snapshots
from kafka_archiver.planning.spark_sql import with_analysed_sql
from kafka_archiver.planning.survey import TRIES, OvertakenError, Survey, survey
from kafka_archiver.planning.time_index import prove_older
from kafka_archiver.planning.time_settings import with_wall_clock
from kafka_archiver.planning.topic_claims import claim_topics, require_unclaimed
from kafka_archiver.values.intervals import Interval
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.data_keys import with_data_key
from kafka_archiver.work.plan.fill import Fill, ranges_to_fill
from kafka_archiver.work.planned_work import PlannedWork, describe_plan, prepare_work
from kafka_archiver.work.rebuild import replan_changed

log = logging.getLogger(__name__)
Origin = Literal["scheduled", "manual", "backfill"]
CLOCK_SKEW = timedelta(minutes=5)


def plan(
    context: Context, interval: Interval, origin: Origin, fill: Fill | None = None, other: Interval | None = None
) -> PlannedWork:
    """Make sure that the interval has a plan. Returns the work of this DAG run.

    Planned runs that are not settled are finished first. An interval that has a plan already is replayed. If two
    planners work at once, one wins and the other starts again.

    :param fill: take what other runs have left out, whatever the interval is.
    :param other: the interval of a scheduled run if a plan of an earlier schedule begins where its own does.
    :raises PolicyError: the brokers' state needs a person's decision.
    :raises ConfigError: the archive's settings name a format or codec that does not exist.
    :raises TransientError: the brokers, the store or the schema registry do not answer.
    """
    present = context.clock()
    if interval.end > present + CLOCK_SKEW:
        raise PolicyError(
            f"interval {interval} has not ended yet (it is {present:%Y-%m-%d %H:%M:%S} UTC): its hours could not be "
            "complete. Run an interval that is over; check the logical date of a run that was started by hand"
        )
    overtaken, how = "", Advice("")
    for _ in range(TRIES):
        line = replan_changed(context, tidy_line(context, read_line(context)))
        own = _plan_of_start(context, line, interval)
        if own and own.interval != interval and origin == "scheduled" and other:
            interval, own = other, _plan_of_start(context, line, other)
        if own:
            _require_interval(context.archive.archive, own, interval)
            log.info("interval %s was planned at %s: replaying it", interval, f"{own.planned_at:%Y-%m-%d %H:%M}")
            return replace(prepare_work(context, line.unfinished, own), replays=not line.unfinished)
        try:
            proposed, frozen, snapshots, before = _propose(context, interval, origin, line, fill)
        except OvertakenError as error:
            overtaken, how = error.message, Advice(error.advice, error.actions)
            continue
        claim_topics(context, line, {partition.topic for partition in proposed.partitions})
        frozen.store(context.ledger)
        snapshots.store(context.ledger, before)
        proposed = with_data_key(context, proposed)
        if append_plan(context, line, proposed):
            context.ledger.file_plan(proposed)
            log.info("planned interval %s: %s", interval, describe_plan(proposed))
            for decided in (d for p in proposed.partitions for d in p.decided):
                log.warning("%s", decided)
            return prepare_work(context, line.unfinished, proposed)
        overtaken = f"another planner has made plan {proposed.number} of archive {proposed.archive} meanwhile"
        log.info("%s: looking again", overtaken)
    raise TransientError(f"{overtaken} (looked {TRIES} times).", *how)


def _require_interval(archive: str, own: Plan, interval: Interval) -> None:
    """Check that a plan is of the same schedule as an interval that begins with it.

    :raises PolicyError: it is not.
    """
    if own.interval != interval:
        text, actions = advise("If Kafka has older records that no run has: ", fill_up(archive))
        raise PolicyError(
            f"run {own.run} is planned for {own.interval}, but this DAG run is about {interval}: the schedule was "
            "changed. A replay of the planned run needs the old schedule; scheduled runs archive what comes.",
            advice=text,
            actions=actions,
        )


def _plan_of_start(context: Context, line: Line, interval: Interval) -> Plan | None:
    """Return the plan that counts for the start of an interval: the ledger files plans by it."""
    waiting = [w.plan for w in line.waiting if w.plan.interval.id == interval.id and w.outcome in (None, "committed")]
    return waiting[-1] if waiting else context.ledger.current(interval.id)


def is_planned_since(context: Context, interval: Interval, moment: datetime) -> bool | None:
    """Return True if the interval's plan was made after a moment: it covers Kafka's state then; None: it has no plan.

    False, too, if the plan at its start is of another interval: the schedule was changed.
    """
    own = _plan_of_start(context, read_line(context), interval)
    return None if own is None else own.interval == interval and own.planned_at >= moment


def propose(context: Context, interval: Interval, origin: Origin) -> Plan:
    """Return the plan that would be made now. Writes nothing.

    :raises PolicyError: the brokers' state needs a person's decision.
    """
    line = read_line(context)
    proposed, *_ = _propose(context, interval, origin, line)
    require_unclaimed(context, line, {partition.topic for partition in proposed.partitions})
    return proposed


def count_left_out(context: Context, since: datetime | None) -> dict[TopicPartition, int]:
    """Return how many offsets of each log runs that fill the archive would take. Writes nothing.

    :raises PolicyError: the brokers' state needs a person's decision.
    """
    line = read_line(context)
    expected = line.expected(context.ledger)
    observed = survey(context, line, expected)
    known = expected.by_name()
    return {p.name: p.count for p in _plan_fill(context, observed, known, Fill(since), None) if p.count}


def _propose(
    context: Context, interval: Interval, origin: Origin, line: Line, fill: Fill | None = None
) -> tuple[Plan, FrozenSchemas, Snapshots, Plan | None]:
    """Return the plan that would be made now, its schemas, its snapshots, and the plan before it. Writes nothing."""
    archive = context.archive
    # First, so that a format that cannot be written fails before anything is planned.
    settings = settings_of(archive, context.keys)
    if members := context.cluster.members(archive.group):
        raise PolicyError(live_members_message(archive.group, members), kinds=("group in use",))
    expected = line.expected(context.ledger)
    observed = survey(context, line, expected)
    known = expected.by_name()
    before = context.ledger.planned(line.last) if line.last else None
    present = observed.at.latest or observed.at.earliest
    # The progress has nothing of a run that ended without a result.
    without_result = {w.plan.run for w in line.waiting if w.outcome in ("replaced", "given_up")}
    compared = None if before and before.run in without_result else before
    refuse_changed_progress(compared, line.settled, expected, present)
    if origin != "backfill":
        check_handover(context, observed.states, known)
    assumed = None
    if fill:
        partitions = _plan_fill(context, observed, known, fill, archive.source.max_records_per_run)
    elif origin == "backfill":
        partitions, assumed = _plan_backfill(context, interval, observed, known)
    else:
        # First: the policy for recreated topics would advise what this refuses.
        refuse_returned_logs(context, line.last, observed.states, known)
        partitions = _plan_forward(context, observed, known)
    # What an observation that waits has found out goes with it, if a log is made again.
    asked = {o.name: o for o in expected.older if o.holds_for(settings.time)}
    missing = left_out(partitions, known, asked, origin != "backfill", present)
    starts = {state.name: state.log_start for state in observed.states}
    evidence = prove_older(
        context.cluster,
        missing,
        starts,
        still_true(expected.asked(), settings.time, before),
        present,
        settings.time.is_known_to_kafka,
    )
    # After the high watermarks.
    frozen = freeze_schemas(context, settings, partitions)
    read = {partition.topic for partition in partitions if partition.ranges}
    settings = with_analysed_sql(context, settings, frozen, read, before)
    plan = Plan(
        archive=archive.archive,
        number=line.last + 1,
        interval=interval,
        origin=origin,
        # A run that fills the archive proves no hour alone.
        max_disorder_ms=assumed,
        ordered_within_ms=_declared_disorder(archive),
        loss_rules=2,
        hour_rules=4,
        planned_at=observed.at.earliest,
        at_latest=observed.at.latest,
        cluster_id=context.cluster.cluster_id(),
        group=archive.group,
        settings=with_wall_clock(settings, observed.at.earliest),
        policies=archive.policies.model_dump(),
        schemas=frozen.schemas,
        partitions=with_older(partitions, evidence),
    )
    snapshots = Snapshots()
    if origin != "backfill" and fill is None:
        plan, snapshots = with_snapshots(context, plan, before)
    return plan, frozen, snapshots, before


def _plan_forward(context: Context, observed: Survey, known: Known) -> list[PartitionPlan]:
    starts = beginnings(context.archive, observed.states, known)
    return plan_forward(context.archive.source.max_records_per_run, observed.states, known, starts)


def _plan_backfill(
    context: Context, interval: Interval, observed: Survey, known: Known
) -> tuple[list[PartitionPlan], int | None]:
    """Return the partitions' part of a backfill, and what it assumes about the order of times (ms)."""
    archive = context.archive
    disorder = archive.timestamp.max_disorder
    candidates = interval_offsets(context.cluster, observed.states, known, interval, archive.source.isolation, disorder)
    if candidates.unordered:
        log.warning(
            "records of %s contradict timestamp.max_disorder: this backfill assumes nothing, and completes its hours "
            "only together with all others",
            candidates.unordered[0],
        )
    partitions = plan_backfill(observed.states, known, candidates.ranges)
    # Without a majority, one answer about the time index may be of a broker that leads no more, and the next is not.
    is_sure = not candidates.unordered and not any(state.unsure for state in observed.states)
    return partitions, _declared_disorder(archive) if is_sure else None


def _declared_disorder(archive: Archive) -> int | None:
    """Return `timestamp.max_disorder` in milliseconds."""
    declared = archive.timestamp.max_disorder
    return None if declared is None else declared // timedelta(milliseconds=1)


def _plan_fill(context: Context, observed: Survey, known: Known, fill: Fill, limit: int | None) -> list[PartitionPlan]:
    return plan_backfill(observed.states, known, ranges_to_fill(context, observed, known, fill), limit)
