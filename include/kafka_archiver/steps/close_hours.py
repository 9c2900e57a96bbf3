"""Close hours: recompute the proofs of the hours a run touched or completed. Derived data, written last."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kafka_archiver.errors import IntegrityError
from kafka_archiver.intervals import hour_start
from kafka_archiver.manifest import Manifest
from kafka_archiver.proof import HourProof, Progress, Verdict, hours_to_prove, prove
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.runs import that_count, written

log = logging.getLogger(__name__)
THREADS = 16


def close_hours(context: Context, runs: Sequence[str]) -> list[HourProof]:
    """Prove the hours of each run, then note it in the archive's progress: from then on it is settled.

    :returns: the complete hours that these runs closed or changed. Asked again it returns them again, so that
        an announcement that was lost with a crash is made by the next attempt.
    """
    due: dict[int | None, HourProof] = {}
    for run in that_count(context, runs):
        progress = context.ledger.progress() or Progress(archive=context.archive.archive)
        plan, manifest = written(context, run)
        if context.ledger.commit(run) is None:
            raise IntegrityError(
                f"run {run} of archive {context.archive.archive} is not committed: expected the task `commit` to have "
                "done it; clear that task to run it again"
            )
        superseded = context.ledger.manifest(plan.supersedes) if plan.supersedes else None
        hours = hours_to_prove(progress, plan, manifest, superseded)

        def recompute(hour: int | None, verdict: Verdict) -> HourProof:
            before = context.ledger.hour(hour)
            proof = prove(hour, before, plan, manifest, verdict)  # noqa: B023 - consumed before the next run
            if proof != before:
                context.ledger.put_hour(proof)
            return proof

        with ThreadPoolExecutor(THREADS) as pool:
            proofs = list(pool.map(recompute, hours.keys(), hours.values()))
        opened = [p.hour for p in proofs if p.status == "open" and p.hour is not None]
        # Before the run is settled, or nobody would come back for what a crash leaves.
        if superseded and not plan.keep_superseded:
            _remove(context, superseded)
        context.ledger.put_progress(progress.after(plan, manifest, opened))
        due |= {p.hour: p for p in proofs if p.status == "complete" and run in (p.closed_by, p.changed_by)}
        _report(run, proofs)
    return [due[hour] for hour in sorted(due, key=lambda h: -1 if h is None else h)]


def _remove(context: Context, superseded: Manifest) -> None:
    """What a rebuild has replaced. Its proofs name the new objects already."""
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(context.store.delete, [o.key for o in superseded.stored]))
    log.info("%d objects of run %s, which are superseded, removed", len(superseded.stored), superseded.run)


def _report(run: str, proofs: list[HourProof]) -> None:
    closed = [p for p in proofs if p.closed_by == run and p.hour is not None]
    for proof in closed[:48]:
        log.info(
            "hour %s is complete: %s records in %d objects",
            f"{hour_start(proof.hour or 0):%Y-%m-%d %H}:00Z",
            f"{proof.rows:,}",
            sum(len(c.objects) for c in proof.runs),
        )
    late = sum(c.rows for p in proofs for c in p.runs if c.run == run and c.late)
    still = sum(p.status == "open" for p in proofs)
    lacking = [p for p in proofs if p.status == "incomplete" and p.hour is not None]
    for proof in lacking[:48]:
        log.warning("hour %s is past and incomplete", f"{hour_start(proof.hour or 0):%Y-%m-%d %H}:00Z")
    log.info(
        "run %s settled: %d hours closed, %d still open, %d incomplete, %s records came late for a closed hour",
        run,
        len(closed),
        still,
        len(lacking),
        f"{late:,}",
    )
