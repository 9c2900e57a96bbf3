"""Plan: freeze the offset ranges of an interval before the first byte is read."""

import logging
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from kafka_archiver.errors import PolicyError
from kafka_archiver.intervals import MS_PER_HOUR, Interval, hour_start, to_ms
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import PartitionPlan, Plan
from kafka_archiver.planning import begins_behind, plan_backfill, plan_forward
from kafka_archiver.policy import Known, Seen, beginnings
from kafka_archiver.proof import Progress
from kafka_archiver.steps.claims import claim_topics, require_own
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.look import complete_from, look, refuse_hidden_topics

log = logging.getLogger(__name__)
Origin = Literal["scheduled", "backfill"]
CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Work:
    """What one DAG run has to do. `runs`: the ledger's runs it finishes, oldest plan first.

    `archive`: those of them whose offsets have to be read; Spark is skipped when there is none.
    """

    runs: tuple[str, ...]
    archive: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For XCom."""
        return {name: list(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """What `to_dict` gave."""
        return cls(**{name: tuple(value) for name, value in data.items()})


def plan(context: Context, interval: Interval, origin: Origin, now: datetime) -> Work:
    """Make sure that the interval has a plan, and say what is to be done.

    Runs that were planned and not settled (their hours not proved) are finished first. An interval that has a plan
    already is replayed by it. Two planners at once: one wins, both use its plan.

    :raises PolicyError: the brokers' state needs a person's decision.
    """
    if interval.end > now + CLOCK_SKEW:
        raise PolicyError(
            f"interval {interval} has not ended yet (it is {now:%Y-%m-%d %H:%M:%S} UTC): its hours could not be "
            "complete. Run an interval that is over; check the logical date of a run that was started by hand"
        )
    waiting = unfinished(context)
    own = context.ledger.current(interval.id)
    if own and own.interval != interval:
        raise PolicyError(
            f"run {own.run} is planned for {own.interval}, but this DAG run is about {interval}: the schedule was "
            "changed. What the planned run has is archived; backfill the rest with intervals that start elsewhere, "
            "or under the old schedule"
        )
    if own:
        log.info("interval %s has a plan of %s already: replaying it", interval, f"{own.planned_at:%Y-%m-%d %H:%M:%S}")
    else:
        proposed = _propose(context, interval, origin, now, waiting)
        claim_topics(context, {partition.topic for partition in proposed.partitions})
        own = context.ledger.create_plan(proposed)
        log.info("planned interval %s: %s", interval, describe(own))
        for decided in (d for p in own.partitions for d in p.decided):
            log.warning("%s", decided)
    plans = {p.run: p for p in [*waiting, own]}
    for earlier in plans.values():
        if earlier is not own:
            log.info("run %s is not finished: it is finished first (%s)", earlier.run, describe(earlier))
    work = sorted(plans.values(), key=lambda p: (p.planned_at, p.run))
    to_archive = [p for p in work if p.count and (p is own or context.ledger.commit(p.run) is None)]
    for done in work:
        if not done.count and context.ledger.manifest(done.run) is None:
            context.ledger.create_manifest(Manifest.of(done, [], []))
    if not to_archive:
        log.info("nothing to read: Spark is skipped")
    return Work(tuple(p.run for p in work), tuple(p.run for p in to_archive))


def propose(context: Context, interval: Interval, origin: Origin, now: datetime) -> Plan:
    """The plan that would be made now. Writes nothing.

    :raises PolicyError: the brokers' state needs a person's decision.
    """
    proposed = _propose(context, interval, origin, now, unfinished(context))
    require_own(context, {partition.topic for partition in proposed.partitions})
    return proposed


def describe(plan: Plan) -> str:
    """A plan in a few words: how many offsets, and the ranges of the first partitions."""
    ranges = [f"{p.name} {r}" for p in plan.partitions for r in p.offset_ranges]
    shown = ", ".join(ranges[:8]) + (f" and {len(ranges) - 8} more" if len(ranges) > 8 else "")
    return f"{plan.count:,} offsets of {len(plan.partitions)} partitions" + (f": {shown}" if shown else "")


def settled_so_far(context: Context) -> Progress:
    """The archive's progress; of a new archive, that there is none."""
    return context.ledger.progress() or Progress(archive=context.archive.archive)


def expected_progress(context: Context, settled: Progress, unfinished: list[Plan]) -> Progress:
    """The progress once the unfinished runs are finished."""
    for earlier in sorted(unfinished, key=lambda p: (p.planned_at, p.run)):
        settled = settled.after(earlier, context.ledger.manifest(earlier.run))
    return settled


def unfinished(context: Context) -> list[Plan]:
    """Runs that were planned and not settled. A rebuild that was given up stops nobody: its run is archived already."""
    settled = set(settled_so_far(context).runs)
    runs = context.ledger.runs()
    plans = [context.ledger.plan(run) for run, found in runs.items() if "plan" in found and run not in settled]
    return [p for p in plans if p is not None and (p.supersedes is None or "commit" in runs[p.run])]


def survey(context: Context, interval: Interval, waiting: list[Plan]) -> tuple[list[Seen], Known]:
    """The partitions as the brokers describe them, and what settled and waiting runs cover of them.

    :param waiting: what `unfinished` gave.
    :raises PolicyError: topics that were archived before have vanished.
    """
    settled = settled_so_far(context)
    expected = expected_progress(context, settled, waiting)
    seen = look(context, interval, settled, waiting)
    refuse_hidden_topics(context, expected, seen)
    return seen, {p.name: p for p in expected.partitions}


def _propose(context: Context, interval: Interval, origin: Origin, now: datetime, waiting: list[Plan]) -> Plan:
    archive = context.archive
    if members := context.cluster.members(archive.group):
        raise PolicyError(live_members(archive.group, members))
    seen, known = survey(context, interval, waiting)
    return Plan(
        archive=archive.archive,
        interval=interval,
        origin=origin,
        planned_at=now,
        cluster_id=context.cluster.cluster_id(),
        group=archive.group,
        settings=archive.settings,
        policies=archive.policies.model_dump(),
        partitions=tuple(plan_backfill(seen, known) if origin == "backfill" else _forward(context, seen, known, now)),
    )


def live_members(group: str, members: list[str]) -> str:
    """What it means that a group has members."""
    return (
        f"group {group} has live members: {', '.join(members[:5])}. The archive keeps its position in this "
        "group, and nobody else may commit there; stop those consumers or give the archive a group of its own "
        "(source.group)"
    )


def _forward(context: Context, seen: list[Seen], known: Known, now: datetime) -> list[PartitionPlan]:
    starts = beginnings(context.archive, seen, known)
    # Nobody knows what was in a log that was given up: the hours until now may lack some of it.
    anew = {name: hour_start(to_ms(now) // MS_PER_HOUR + 1) for name, start in starts.items() if start.anew}
    whole_from = complete_from(context, begins_behind(seen, known, starts), now) | anew
    return plan_forward(context.archive.source.max_records_per_run, seen, known, starts, whole_from)
