"""Rebuild: read a settled run again from Kafka, under new keys, in place of what it wrote before."""

import logging
from collections.abc import Sequence
from datetime import datetime

from kafka_archiver.documents import isoformat
from kafka_archiver.errors import ConfigError, PolicyError
from kafka_archiver.intervals import hour_of, to_ms
from kafka_archiver.keys import run_name
from kafka_archiver.plan import PartitionPlan, Plan
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.plan import Work, settled_so_far

log = logging.getLogger(__name__)


def rebuild_run(context: Context, run: str, now: datetime, keep: bool = False) -> Work:
    """Plan a new revision of a settled run, with the settings that the archive has today.

    :param keep: leave the objects that it supersedes in the store; else `close_hours` removes them.
    :raises ConfigError: there is no such run, or it is not settled.
    :raises PolicyError: Kafka does not have all of its offsets any more.
    """
    return _work([_plan(context, run, now, keep)])


def rebuild_hour(context: Context, start: datetime, now: datetime, keep: bool = False) -> Work:
    """Plan new revisions of all runs that have records of an hour. Parameters as of `rebuild_run`."""
    return _work([_plan(context, run, now, keep) for run in runs_of_hour(context, start)])


def runs_of_hour(context: Context, start: datetime) -> list[str]:
    """The runs that have records of an hour.

    :raises ConfigError: none has.
    """
    proof = context.ledger.hour(hour_of(to_ms(start)))
    if proof is None or not proof.runs:
        raise ConfigError(
            f"archive {context.archive.archive} has no records of hour {isoformat(start)}; expected the start of an "
            "hour that `airflow archive status --hours` lists with records"
        )
    return [c.run for c in proof.runs]


def replaceable(context: Context, run: str) -> Plan:
    """The revision of a run that counts, which a rebuild would replace. Raises as `rebuild_run`."""
    old = _settled(context, run)
    _as_they_are(context, old)
    return old


def _work(plans: Sequence[Plan]) -> Work:
    runs = tuple(p.run for p in plans)
    return Work(runs, runs)


def _settled(context: Context, run: str) -> Plan:
    old = context.ledger.current(run.partition("+")[0])
    if old is None or old.run not in settled_so_far(context).runs:
        raise ConfigError(
            f"run {run} of archive {context.archive.archive} {'is not settled yet' if old else 'does not exist'}; "
            "only what is settled can be rebuilt (`airflow archive runs` lists the runs and their states)"
        )
    return old


def _plan(context: Context, run: str, now: datetime, keep: bool) -> Plan:
    old = _settled(context, run)
    revision = old.revision + 1
    begun = context.ledger.plan(run_name(old.interval.id, revision))
    if begun and (begun.keep_superseded, begun.settings) != (keep, context.archive.settings):
        raise ConfigError(
            f"run {begun.run} was begun at {isoformat(begun.planned_at)} "
            f"{'with' if begun.keep_superseded else 'without'} `keep`, under settings of then: it can only go on as it "
            f"began. Rebuild with the same, or remove it first with `airflow archive clean {begun.archive} "
            "--older-than 0d`"
        )
    if begun:
        log.info("run %s was begun at %s: going on with it", begun.run, isoformat(begun.planned_at))
        return begun
    plan = old.model_copy(
        update={
            "revision": revision,
            "supersedes": old.run,
            "keep_superseded": keep,
            "origin": "rebuild",
            "planned_at": now,
            "settings": context.archive.settings,
            "policies": context.archive.policies.model_dump(),
            "partitions": _as_they_are(context, old),
        }
    )
    # A copy is not validated.
    plan = context.ledger.create_plan(Plan.model_validate(plan.model_dump()))
    log.info("planned run %s: %s offsets again, in place of run %s", plan.run, f"{plan.count:,}", old.run)
    return plan


def _as_they_are(context: Context, old: Plan) -> tuple[PartitionPlan, ...]:
    """The same ranges, with the log as it is now.

    :raises PolicyError: the log does not have them.
    """
    ids = context.cluster.topic_ids({p.topic for p in old.partitions if p.ranges})
    progress = settled_so_far(context)
    read = [p for p in old.partitions if p.ranges]
    for partition in read:
        if ids[partition.topic] != partition.topic_id:
            raise PolicyError(
                f"run {old.run} cannot be rebuilt: topic {partition.topic} was deleted"
                f"{' and made again' if ids[partition.topic] else ''} since. What is stored stays as it is"
            )
    names = [p.name for p in read]
    starts, ends = context.cluster.log_starts(names), context.cluster.log_ends(names, "read_uncommitted")
    for partition in read:
        known = progress.partition(partition.name)
        if (known and known.generation > partition.generation) or ends[partition.name] < partition.ranges[-1][1]:
            raise PolicyError(
                f"run {old.run} cannot be rebuilt: the log of {partition.name} is not the one it was read from any "
                "more (truncated, or given up for a new generation). What is stored stays as it is"
            )
        first, start = partition.offset_ranges[0].start, starts[partition.name]
        if first < start:
            raise PolicyError(
                f"run {old.run} cannot be rebuilt: it has {partition.name} from offset {first}, but Kafka has removed "
                f"everything before {start}. What is stored stays as it is"
            )
    return tuple(
        p.model_copy(
            update={
                "closes": False,
                "complete_from": None,
                "decided": (),
                "log_start": starts.get(p.name, p.log_start),
            }
        )
        for p in old.partitions
    )
