"""Commit: the ledger's record that a run is final (`model/manifest.Commit`), then the consumer group."""

import logging
from collections.abc import Sequence

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.clocks import later_time
from kafka_archiver.context.line import group_stamp, read_line, stamped_number
from kafka_archiver.context.run_documents import effective_runs, written_documents
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.manifest import Commit, Manifest
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.values.ranges import TopicPartition

log = logging.getLogger(__name__)
FOLLOWS_LEDGER = "moved_group: follow_ledger"


def commit(context: Context, runs: Sequence[str]) -> None:
    """Commit each run: `commit.json` (once), then the group's offsets, never backwards, read back.

    A backfill or a rebuild does not move the group. A rebuild that takes over moves it as the replaced run would.

    :raises IntegrityError: the run is committed already with another manifest, or is not in the line.
    """
    for run, stored in effective_runs(context, runs):
        plan, manifest = written_documents(context, run)
        if manifest.plan_digest != plan.digest:
            raise IntegrityError(f"run {run}: manifest.json is of another plan: restore it from a version or copy")
        context.ledger.require_in_line(plan)
        stored = stored or _create_commit(context, plan, manifest)
        if stored.outcome != "committed":
            log.warning(
                "run %s is left alone: it was %s by %s meanwhile", run, stored.outcome.replace("_", " "), stored.by
            )
            continue
        if stored.manifest_digest != manifest.digest:
            raise IntegrityError(
                f"run {run} of archive {plan.archive} is committed with manifest "
                f"{(stored.manifest_digest or '')[:12]}, but its manifest is {manifest.digest[:12]} now: a final run "
                "must not change. Restore manifest.json from a version or copy of the store"
            )
        log.info("run %s committed at %s: %s records", run, f"{stored.committed_at:%H:%M:%S}", f"{manifest.rows:,}")
        if plan.moves_group or plan.takes_over:
            _move_group(context, plan)
        else:
            log.info("a %s does not move group %s", plan.origin, plan.group)


def _create_commit(context: Context, plan: Plan, manifest: Manifest) -> Commit:
    return context.ledger.create_commit(
        Commit(
            archive=plan.archive,
            run=plan.run,
            revision=plan.revision,
            plan_digest=plan.digest,
            manifest_digest=manifest.digest,
            committed_at=later_time(context),
        )
    )


def _move_group(context: Context, plan: Plan) -> None:
    """Move the group to the end of the committed runs. Repeated if other processes have committed more meanwhile."""
    reached = _committed_progress(context)
    while True:
        targets = _group_targets(context, plan, reached)
        offsets = {name: target for name, (_, target) in targets.items()}
        context.cluster.move_group(plan.group, offsets, group_stamp(plan.archive, max(plan.number, reached.settled)))
        for name, (before, offset) in list(targets.items())[:20]:
            log.info("group %s: %s %s → %d", plan.group, name, "none" if before is None else before, offset)
        if len(targets) > 20:
            log.info("group %s: %d more partitions moved", plan.group, len(targets) - 20)
        if not targets:
            log.info("group %s stands at the plan's ends or past them already", plan.group)
        # If another process committed more meanwhile, we may have moved the group back.
        known, reached = reached.settled, _committed_progress(context)
        if not targets or reached.settled <= known:
            return


def _committed_progress(context: Context) -> Progress:
    """Return the progress after every run of the line up to the first one that has not ended."""
    line = read_line(context)
    progress = line.settled
    for waiting in line.waiting:
        if waiting.outcome is None:
            break
        progress = progress.after(waiting.plan, waiting.outcome)
    return progress


def _group_targets(context: Context, plan: Plan, reached: Progress) -> dict[TopicPartition, tuple[int | None, int]]:
    """Return the partitions where the group has to move: its present offset, and the target."""
    ids = context.cluster.topic_ids({p.topic for p in plan.partitions})
    partitions = [p for p in plan.partitions if ids[p.topic] == p.topic_id]
    progress = {p.name: p for p in reached.partitions}
    stands = context.cluster.positions(plan.group, [p.name for p in partitions])
    targets = {}
    for partition in partitions:
        known, place = progress.get(partition.name), stands[partition.name]
        if known is None or known.next is None or known.generation != partition.generation:
            # Until the run that begins a generation is settled, its own end counts; an older generation's never does.
            if (known and known.generation > partition.generation) or not plan.moves_group:
                continue
            target = partition.end
        else:
            # For a rebuild that takes over, the line knows whether its run moved the group.
            target = max(known.next, partition.end) if plan.moves_group else known.next
        # An offset that somebody set by hand, ahead of ours, is left to the next planner and its policies.
        begins = (
            partition.generation > 0 and place is not None and stamped_number(place.stamp, plan.archive) < plan.number
        )
        follows = any(FOLLOWS_LEDGER in decided for decided in partition.decided) and reached.settled <= plan.number
        if place is None or place.offset < target or ((begins or follows) and place.offset != target):
            targets[partition.name] = place.offset if place else None, target
    return targets
