"""Commit: the ledger's record that a run is final, then the consumer group."""

import logging
from collections.abc import Sequence
from datetime import datetime

from kafka_archiver.errors import IntegrityError
from kafka_archiver.keys import encode, split_object_key
from kafka_archiver.manifest import Commit
from kafka_archiver.plan import Plan
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.runs import written

log = logging.getLogger(__name__)


def commit(context: Context, runs: Sequence[str], now: datetime) -> None:
    """Commit each run: `commit.json` (once), then the group's offsets, never backwards, read back.

    A backfill leaves the group where it is.
    """
    for run in runs:
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
    chunks = {(c.topic, c.partition, c.start, c.generation) for c in plan.chunks()}
    left = [
        (key, upload_id)
        for topic in sorted({p.topic for p in plan.partitions})
        for key, upload_id, _ in context.store.list_uploads(f"{encode(topic)}/")
        if split_object_key(key) in chunks
    ]
    for key, upload_id in left:
        context.store.abort_upload(key, upload_id)
    if left:
        log.info("%d unfinished uploads of killed attempts thrown away", len(left))


def _move_group(context: Context, plan: Plan) -> None:
    before = context.cluster.committed(plan.group, [p.name for p in plan.partitions])
    targets = {}
    for partition in plan.partitions:
        position = before[partition.name]
        if position is None or position < partition.end:
            targets[partition.name] = partition.end
    context.cluster.move_group(plan.group, targets)
    for name, offset in list(targets.items())[:20]:
        log.info("group %s: %s %s → %s", plan.group, name, "none" if before[name] is None else before[name], offset)
    if len(targets) > 20:
        log.info("group %s: %d more partitions moved", plan.group, len(targets) - 20)
    if not targets:
        log.info("group %s stands at the plan's ends or past them already", plan.group)
