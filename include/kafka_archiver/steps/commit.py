"""Commit: the ledger's record that a run is final, then the consumer group."""

import logging
from collections.abc import Sequence
from datetime import datetime

from kafka_archiver.errors import IntegrityError
from kafka_archiver.keys import split_object_key, topic_prefix
from kafka_archiver.manifest import Commit
from kafka_archiver.plan import Plan
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.plan import settled_so_far
from kafka_archiver.steps.runs import that_count, written

log = logging.getLogger(__name__)
FOLLOWS = "moved_group: follow_ledger"


def commit(context: Context, runs: Sequence[str], now: datetime) -> None:
    """Commit each run: `commit.json` (once), then the group's offsets, never backwards, read back.

    A backfill leaves the group where it is.
    """
    for run in that_count(context, runs):
        plan, manifest = written(context, run)
        if manifest.plan_digest != plan.digest:
            raise IntegrityError(f"run {run}: the manifest is of another plan; clear the task `archive` of this run")
        made = context.ledger.create_commit(
            Commit(
                archive=plan.archive,
                run=run,
                revision=plan.revision,
                plan_digest=plan.digest,
                manifest_digest=manifest.digest,
                committed_at=now,
            )
        )
        log.info("run %s committed at %s: %s records", run, f"{made.committed_at:%H:%M:%S}", f"{manifest.rows:,}")
        _throw_away_uploads(context, plan)
        if plan.moves_group:
            _move_group(context, plan)
        else:
            log.info("a backfill leaves group %s where it is", plan.group)


def _throw_away_uploads(context: Context, plan: Plan) -> None:
    """What killed attempts had sent and nobody completed. Once a run is final, whoever still uploads is a zombie."""
    places = plan.places()
    left = [
        (key, upload_id)
        for topic in sorted({p.topic for p in plan.partitions})
        for dead_letter in (False, True)
        for key, upload_id, _ in context.store.list_uploads(topic_prefix(topic, dead_letter))
        if split_object_key(key) in places
    ]
    for key, upload_id in left:
        context.store.abort_upload(key, upload_id)
    if left:
        log.info("%d unfinished uploads of killed attempts thrown away", len(left))


def _move_group(context: Context, plan: Plan) -> None:
    ids = context.cluster.topic_ids({p.topic for p in plan.partitions})
    there = [p for p in plan.partitions if ids[p.topic] == p.topic_id]
    before = context.cluster.committed(plan.group, [p.name for p in there])
    progress = settled_so_far(context)
    targets = {}
    for partition in there:
        position, settled = before[partition.name], progress.partition(partition.name)
        if settled and settled.generation > partition.generation:
            continue
        same = settled if settled and settled.generation == partition.generation else None
        # A replay of an older run must not put the group back to where that run ended.
        target = max(partition.end, same.next or 0) if same else partition.end
        # Until the run that begins a generation is settled, the group's offset may be of the log before; and one that
        # somebody moved by hand goes where the ledger says, when the policy says so.
        begins = same is None and partition.generation > 0
        follows = plan.run not in progress.runs and any(FOLLOWS in decided for decided in partition.decided)
        if position is None or position < target or ((begins or follows) and position != target):
            targets[partition.name] = target
    context.cluster.move_group(plan.group, targets)
    for name, offset in list(targets.items())[:20]:
        log.info("group %s: %s %s → %s", plan.group, name, "none" if before[name] is None else before[name], offset)
    if len(targets) > 20:
        log.info("group %s: %d more partitions moved", plan.group, len(targets) - 20)
    if not targets:
        log.info("group %s stands at the plan's ends or past them already", plan.group)
