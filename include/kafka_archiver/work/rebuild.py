"""Rebuild: read a run's offsets again from Kafka, and write new keys with today's settings, which replace the old ones.

For a run that is not final and cannot be finished as planned, the rebuild takes over.
"""

import importlib.metadata
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, assert_never

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.clocks import read_clocks
from kafka_archiver.context.line import Line, read_line, tidy_line
from kafka_archiver.context.local_spark import java_version
from kafka_archiver.messages.errors import ConfigError, PolicyError
from kafka_archiver.messages.wording import count
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import hours_with_proofs
from kafka_archiver.model.settings import Settings
from kafka_archiver.planning.schemas import freeze_schemas
from kafka_archiver.planning.settings import frozen_transform, settings_of
from kafka_archiver.planning.time_settings import with_wall_clock
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.intervals import hour_of, to_ms
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.planned_work import PlannedWork, prepare_work
from kafka_archiver.work.revision import (
    append_revision,
    effective_revision,
    rewriting_plan,
    time_origin,
    unfinished_revisions,
)

log = logging.getLogger(__name__)


def rebuild_run(
    context: Context, run: str, keep: bool = False, fewer: bool = False, since: datetime | None = None
) -> PlannedWork:
    """Plan a new revision of a run, with the archive's present settings.

    :param keep: keep the superseded objects in the store; otherwise `close_hours` removes them.
    :param fewer: replace the run also if fewer records are archived then.
    :param since: a final rebuild that was planned since then counts as this one; None: rebuild in any case.
    :raises ConfigError: there is no such run.
    :raises PolicyError: Kafka no longer has all of its offsets.
    """
    return _rebuild_all(context, [run], keep, fewer, since)


def rebuild_hour(
    context: Context, start: datetime, keep: bool = False, fewer: bool = False, since: datetime | None = None
) -> PlannedWork:
    """Plan new revisions of all runs that have records of an hour. Parameters as of `rebuild_run`."""
    return _rebuild_all(context, runs_of_hour(context, start), keep, fewer, since)


def runs_of_hour(context: Context, start: datetime) -> list[str]:
    """Return the runs that have records of an hour.

    :raises ConfigError: no run has records of the hour.
    """
    hour = hour_of(to_ms(start))
    progress = context.ledger.progress()
    proof = context.ledger.hour(hour, progress)
    required = proof is None and progress and any(hour in hours for hours in hours_with_proofs(progress))
    if required or (proof and proof.former_gone):
        raise context.ledger.proof_gone(hour)
    if proof is None or not (contributions := context.ledger.contributions(proof)):
        raise ConfigError(
            f"archive {context.archive.archive} has no records of hour {isoformat(start)}; expected the start of an "
            f"hour that `airflow archive status {context.archive.archive} --hours` lists with records"
        )
    return [c.run for c in contributions]


def replaceable_plan(context: Context, run: str) -> Plan:
    """Return the revision of a run that a rebuild would replace. Raises as `rebuild_run`."""
    line = read_line(context)
    old, final = effective_revision(context, line, run)
    _present_partitions(context, line.expected(context.ledger), old, final)
    return old


def _rebuild_all(context: Context, runs: Sequence[str], keep: bool, fewer: bool, since: datetime | None) -> PlannedWork:
    planned: list[str] = []
    for run in runs:
        done = _final_rebuild(context, run, since) if since else None
        planned.append((done or plan_rebuild(context, run, keep, fewer, planned)).run)
    line = read_line(context)
    rebuilds = [w.plan for w in line.waiting if w.plan.run in planned]
    # Also rebuilds that are settled already.
    rebuilds += [p for run in planned if run not in {o.run for o in rebuilds} and (p := context.ledger.plan(run))]
    return prepare_work(context, [*(p for p in line.unfinished if p not in rebuilds), *rebuilds[:-1]], rebuilds[-1])


def _final_rebuild(context: Context, run: str, since: datetime) -> Plan | None:
    """Return the revision of a run that counts if it is a rebuild that was planned since a moment."""
    plan, final = effective_revision(context, read_line(context), run)
    if not final or plan.origin != "rebuild" or plan.planned_at < since:
        return None
    log.info("run %s was rebuilt as %s at %s: replaying it", run, plan.run, isoformat(plan.planned_at))
    return plan


def plan_rebuild(context: Context, run: str, keep: bool = False, fewer: bool = False, own: Sequence[str] = ()) -> Plan:
    """Append the plan of a rebuild to the line, or return that of one that was begun already.

    :param keep: as of `rebuild_run`, which also says what is raised. :param fewer: as there.
    :param own: other rebuilds that are at work, and stay.
    """
    settings = settings_of(context.archive, context.keys)

    def make(line: Line, old: Plan, final: bool) -> Plan:
        clocks = read_clocks(context)
        partitions = _present_partitions(context, line.expected(context.ledger), old, final)
        frozen = freeze_schemas(context, settings, partitions, old.schemas)
        timed = with_wall_clock(settings, clocks.earliest, time_origin(context, old))
        own = {
            "origin": "rebuild",
            "takes_over": not final,
            "keep_superseded": keep,
            # A run that is not final has archived nothing yet.
            "refuses_fewer": final and not fewer,
        }
        return rewriting_plan(context, line, old, clocks, timed, frozen, partitions, **own)

    return append_revision(context, run, own, lambda line: _begun_rebuild(line, run, settings, keep, fewer), make)


def _begun_rebuild(line: Line, run: str, settings: Settings, keep: bool, fewer: bool) -> Plan | None:
    """Return an unfinished rebuild of this run, if it is as requested."""
    for plan in unfinished_revisions(line, run, "rebuild"):
        as_wanted = (plan.settings.asked(), plan.keep_superseded) == (settings, keep)
        if as_wanted and (plan.takes_over or plan.refuses_fewer != fewer):
            return plan
    return None


def _present_partitions(context: Context, expected: Progress, old: Plan, final: bool) -> tuple[PartitionPlan, ...]:
    """Return the same ranges, with the present start of the logs.

    :param final: whether the run is final. If a run has written nothing yet, a policy decides about missing offsets.
    :raises PolicyError: the log does not have the offsets.
    """
    starts = _require_all_offsets(context, expected, old) if final or context.ledger.manifest(old.run) else {}
    return tuple(p.again().model_copy(update={"log_start": starts.get(p.name, p.log_start)}) for p in old.partitions)


def _require_all_offsets(context: Context, expected: Progress, old: Plan) -> dict[TopicPartition, int]:
    """Check that Kafka has all offsets of the run. Returns the start of each log."""
    read = [p for p in old.partitions if p.ranges]
    ids = context.cluster.topic_ids({p.topic for p in read})
    for partition in read:
        if ids[partition.topic] != partition.topic_id:
            raise PolicyError(
                f"run {old.run} cannot be rebuilt: topic {partition.topic} was deleted"
                f"{' and made again' if ids[partition.topic] else ''} since. The stored objects stay as they are"
            )
    names = [p.name for p in read]
    starts, ends = context.cluster.log_starts(names), context.cluster.log_ends(names, "read_uncommitted")
    progresses = expected.by_name()
    for partition in read:
        known = progresses.get(partition.name)
        if (known and known.generation > partition.generation) or ends[partition.name] < partition.ranges[-1][1]:
            raise PolicyError(
                f"run {old.run} cannot be rebuilt: the log of {partition.name} is no longer the one that the run was "
                "read from (truncated, or replaced by a new generation). The stored objects stay as they are"
            )
        first, start = partition.offset_ranges[0].start, starts[partition.name]
        if first < start:
            raise PolicyError(
                f"run {old.run} cannot be rebuilt: it has {partition.name} from offset {first}, but Kafka has removed "
                f"everything before {start}. The stored objects stay as they are"
            )
    return starts


def effective_plans(context: Context, runs: Sequence[str]) -> list[Plan]:
    """Return the revisions of these runs that count now. Reads the ledger only. Raises as `effective_revision`."""
    line = read_line(context)
    return [effective_revision(context, line, run)[0] for run in runs]


class RebuildExtent(NamedTuple):
    """The extent of a rebuild: what it would read again and replace. `hours`: those of the replaced objects'
    records.
    """

    runs: int
    offsets: int
    records: int
    objects: int
    bytes: int
    hours: int

    def __str__(self) -> str:
        """Return it in one line."""
        return (
            f"{count(self.runs, 'run')} with {count(self.records, 'archived record')} in "
            f"{count(self.objects, 'object')} of {count(self.bytes, 'byte')}, of {count(self.hours, 'hour')}"
        )


def rebuild_extent(context: Context, plans: Sequence[Plan]) -> RebuildExtent:
    """Return what the rebuild of these runs would replace. Reads the ledger only."""
    manifests = [manifest for plan in plans if (manifest := context.ledger.manifest(plan.run))]
    stored = [entry for manifest in manifests for entry in manifest.stored]
    hours = {hour for entry in stored for hour in entry.hours if hour is not None}
    return RebuildExtent(
        runs=len(plans),
        offsets=sum(plan.count for plan in plans),
        records=sum(manifest.account["archived"] for manifest in manifests),
        objects=len(stored),
        bytes=sum(entry.bytes for entry in stored),
        hours=len(hours),
    )


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
