"""Look at an archive once: a bounded number of requests to the store, the brokers and Airflow."""

from typing import Any

from kafka_archiver.audit.report import OBJECT_DAMAGE
from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line, read_line
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model.manifest import Commit
from kafka_archiver.state.overview.incomplete import (
    IncompleteHour,
    incomplete_hours,
    of_accepted_hours,
    of_hours,
    with_acceptance,
)
from kafka_archiver.state.overview.snapshot import Adopted, LastAudit, LastRun, Snapshot
from kafka_archiver.state.status import last_commit, status
from kafka_archiver.state.status.condition import without_brokers
from kafka_archiver.state.status.damage import read_head
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.state.status.running import of_runs
from kafka_archiver.state.status.standing import Standing


def take_snapshot(context: Context, facts: Facts, before: Snapshot | None = None) -> Snapshot:
    """Return the archive as it is. If the brokers or the store do not answer, the snapshot has the error, too.

    :param before: an earlier snapshot: what cannot have changed since is not read again.
    """
    name, moment = context.archive.archive, context.clock()
    snapshot = Snapshot(
        archive=name,
        taken_at=moment,
        interval=facts.interval,
        at_work=bool(facts.at_work(moment)),
        audit_paused=facts.audit_paused,
    )
    try:
        line = read_line(context)
        audit = last_audit(context.ledger)
        incomplete = _incomplete(context.ledger, line, before)
        adopted = before.adopted if before and before.adopted else last_adopted(context.ledger)
    except ArchiverError as error:
        troubles = tuple(of_runs(name, facts, None, None, moment))
        return snapshot.model_copy(update={"troubles": troubles, "error": str(error)})
    known: dict[str, Any] = {
        "begun": line.settled.begun,
        "closed_until": line.settled.closed_until,
        "settled": line.settled.settled,
        "lost": line.settled.lost,
        "dead_letters": line.settled.dead_letters,
        "unfinished": tuple(plan.run for plan in line.unfinished),
        "unfinished_since": min((plan.planned_at for plan in line.unfinished), default=None),
        "audit": audit,
        "adopted": adopted,
    }
    try:
        known["state"] = state = status(context, facts)
        standing, commit = Standing(state.troubles, state.accepted), state.last_commit
    except ArchiverError as error:
        standing, commit = without_brokers(context, line, facts), last_commit(context.ledger, line)
        known["error"] = str(error)
    incomplete = with_acceptance(context.ledger, incomplete, line.settled, standing)
    last = _last_run(context.ledger, commit, before)
    known |= {
        "incomplete": incomplete,
        "troubles": (*standing.open, *of_hours(name, incomplete)),
        "accepted": (*standing.accepted, *of_accepted_hours(name, incomplete)),
        "last_run": last,
        **_effort_of(facts, last),
    }
    return snapshot.model_copy(update=known)


def _incomplete(ledger: Ledger, line: Line, before: Snapshot | None) -> tuple[IncompleteHour, ...]:
    """Return the incomplete hours. Only a settled run changes them."""
    if before and before.incomplete is not None and before.settled == line.settled.settled:
        return before.incomplete
    return incomplete_hours(ledger, line.settled)


def _effort_of(facts: Facts, last: LastRun | None) -> dict[str, Any]:
    """Return the effort of the DAG run that finished the last run; nothing if Airflow's last runs do not have it."""
    done = next((run for run in facts.ended if last and last.run in run.finished), None)
    if done is None:
        return {}
    duration = done.ended - done.begun if done.ended and done.begun else None
    return {"duration": duration, "effort": done.effort, "wrote": done.wrote}


def last_audit(ledger: Ledger) -> LastAudit | None:
    """Return the last audit; None if there was none, or its report cannot be read."""
    try:
        head = read_head(ledger)
    except ValueError:
        return None
    if head is None:
        return None
    return LastAudit(
        at=head.audited_at,
        deep=head.deep,
        verdict="damaged" if head.damaged else "clean",
        errors=len(head.errors),
        counts=head.counted,
        damaged=tuple(sorted({str(f["run"]) for f in head.errors if f.get("run") and f["kind"] in OBJECT_DAMAGE})),
        mended=head.mended,
    )


def last_adopted(ledger: Ledger) -> Adopted | None:
    """Return what the archive has adopted; None: nothing."""
    adoption = ledger.adoption()
    if adoption is None:
        return None
    return Adopted(**{name: getattr(adoption, name) for name in Adopted.model_fields})


def _last_run(ledger: Ledger, commit: Commit | None, before: Snapshot | None) -> LastRun | None:
    if commit is None:
        return None
    if before and before.last_run and before.last_run.run == commit.run:
        return before.last_run
    manifest = ledger.manifest(commit.run)
    if manifest is None:
        return None
    return LastRun(
        run=commit.run,
        committed_at=commit.committed_at,
        offsets=sum(manifest.account.values()),
        rows=manifest.rows,
        bytes=sum(o.bytes for o in manifest.stored),
        objects=len(manifest.stored),
        dead_letters=manifest.account["dead_lettered"],
        lost=manifest.account["lost"],
    )
