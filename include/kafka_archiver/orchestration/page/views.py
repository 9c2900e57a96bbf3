"""The pages: all archives, one archive, one hour, a plan."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse

from kafka_archiver.config import Archive
from kafka_archiver.messages.advice import dag_id, fill, restore_dag_id
from kafka_archiver.model.chunk_accounts import FATES
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.reasons import split_reason
from kafka_archiver.orchestration.metadata.facts import dag_runs_of
from kafka_archiver.orchestration.page.access import (
    PageSnapshots,
    ShownArchive,
    Visitor,
    csrf_token,
    may_act,
    may_declare,
    may_edit,
    sees_errors,
    shows_records,
    visible,
)
from kafka_archiver.orchestration.page.actions import choices
from kafka_archiver.orchestration.page.archives import ArchiveSnapshots
from kafka_archiver.orchestration.page.buttons import buttons_of, steps_of
from kafka_archiver.orchestration.page.cache import Near
from kafka_archiver.orchestration.page.cards import cards, explains_failure
from kafka_archiver.orchestration.page.charts import charts_of
from kafka_archiver.orchestration.page.details import FIRST_DAY, YEAR_DAYS, Lookup, PageDetails, window
from kafka_archiver.orchestration.page.render import HERE, redirect, render
from kafka_archiver.orchestration.page.search import Target, archives_with, target_of
from kafka_archiver.state.coverage import HourDetail
from kafka_archiver.state.health import VERDICTS, Verdict, verdict_of
from kafka_archiver.state.overview import Snapshot
from kafka_archiver.state.status.facts import DagRun
from kafka_archiver.values.intervals import to_hour

# Archives on a page of the list, and seconds to wait for archives that nobody has looked at yet.
ROWS, PATIENCE = 100, 3.0
# Those that are shown are looked at before all others that are not.
ON_SCREEN = Near(age=60.0, wait=0.0)
WORDS: dict[Verdict, str] = {"failing": "unhealthy", "unknown": "unknown", "warning": "warning", "ok": "healthy"}
_STATIC = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "dashboard.js": "text/javascript",
    **dict.fromkeys(("icon.svg", "nav.svg", "nav-dark.svg"), "image/svg+xml"),
}
# DAG runs at work that are shown.
AT_WORK = 10
# Seconds between two looks of a browser that shows the page.
EVERY = 20


class ArchiveRow(NamedTuple):
    """One archive in the list."""

    name: str
    snapshot: Snapshot | None
    checks: list[Finding]

    @property
    def verdict(self) -> Verdict:
        """The worst of its checks."""
        return verdict_of(self.checks)

    @property
    def word(self) -> str:
        """Its state in one word."""
        return WORDS[self.verdict]

    @property
    def cause(self) -> str:
        """The first thing that is wrong."""
        return self._first.text if self._first else ""

    @property
    def short(self) -> str:
        """The same for one line."""
        return (self._first.brief or self._first.text) if self._first else ""

    @property
    def more(self) -> int:
        """The number of other checks and findings that are not ok."""
        findings = self.snapshot.troubles if self.snapshot else ()
        single_checks = [check for check in self.checks if check.severity != "ok" and not check.sums_up]
        return max(len({finding.kind for finding in findings} | {check.kind for check in single_checks}) - 1, 0)

    @property
    def command(self) -> str:
        """The first command that helps; empty if there is none."""
        return next((action.command for action in self._first.actions if action.command), "") if self._first else ""

    @property
    def _first(self) -> Finding | None:
        """The first check that is as bad as the archive; None if all are ok."""
        bad = (check for check in self.checks if check.severity != "ok" and VERDICTS[check.severity] == self.verdict)
        return next(bad, None)


router = APIRouter()


@router.get("/")
def archives(
    request: Request, who: Visitor, archive_snapshots: PageSnapshots, q: str = "", state: str = "", page: int = 1
) -> Response:
    """Show all archives that the user may see, those with problems first; or lead to what is looked for."""
    known = archive_snapshots.archives()
    archives = {name: known.valid[name] for name in visible(who, known.valid)}
    target = target_of(q, archives)
    matching = set(_having(archive_snapshots, target, archives) if target else _named(q, archives))
    if target and len(matching) == 1:
        return redirect(request, f"/archives/{quote(*matching)}{target.path}")
    rows = rows_of(archive_snapshots, archives)
    counted = Counter(row.word for row in rows)
    chosen = [row for row in rows if row.name in matching and state in ("", row.word)]
    pages = max(-(-len(chosen) // ROWS), 1)
    page = min(max(page, 1), pages)
    shown = chosen[(page - 1) * ROWS : page * ROWS]
    archive_snapshots.snapshots([row.name for row in shown], near=ON_SCREEN)
    return render(
        request,
        "list.html",
        every=EVERY,
        rows=shown,
        counts=[(word, counted[word]) for word in WORDS.values() if counted[word]],
        total=len(rows),
        target=target,
        errors=known.errors if sees_errors(who) else (),
        may_declare=may_declare(who),
        query=q,
        state=state,
        page=page,
        pages=pages,
    )


@router.get("/archives/{name}")
def archive(
    request: Request,
    who: Visitor,
    declared: ShownArchive,
    archive_snapshots: PageSnapshots,
    details: PageDetails,
    name: str,
    last: date | None = None,
    started: str = "",
    dag: str = "",
    unpaused: str = "",
    accepted: str = "",
) -> Response:
    """Show one archive: its state, its hours, its runs, and its actions."""
    today = datetime.now(UTC).date()
    shown, earlier, later = window(last or today, today)
    answer = details.of(name, shown)
    detail = answer.value
    # Figures, cards and hours are of one look; until there is one, the list's figures are shown without hours.
    snapshot = detail.snapshot if detail else archive_snapshots.known(name)
    row = ArchiveRow(name, snapshot, archive_snapshots.checks(declared, snapshot, datetime.now(UTC)))
    unread = detail.unread if detail else ""
    return render(
        request,
        "archive.html",
        every=EVERY,
        archive=declared,
        dag=dag_id(name),
        word=row.word,
        checks=row.checks,
        snapshot=row.snapshot,
        **freshness(answer),
        cards=cards(row.snapshot, row.checks),
        explained=_explained(detail.facts.runs, row.snapshot) if detail else set(),
        detail=detail,
        looks=shows_records(declared) and may_act(who, dag_id(name)),
        example=f"{(declared.source.topics or ('topic',))[0]}+0@12345",
        wrong_file=archive_snapshots.wrong_files(name),
        at_work=_at_work(detail.facts.runs) if detail else [],
        charts=charts_of(detail.coverage, detail.facts.runs) if detail else [],
        unread=unread,
        unread_is_shown=bool(unread and row.snapshot and row.snapshot.error and not row.snapshot.ledger_read),
        earlier=earlier,
        later=later,
        started=started,
        unpaused=unpaused if unpaused in (dag_id(name), f"audit_{name}") else "",
        accepted=accepted[:400],
        started_dag=dag if dag in (dag_id(name), f"audit_{name}") else dag_id(name),
        started_backfill=started.startswith("backfill "),
        damaged=row.snapshot.audit.damaged if row.snapshot and row.snapshot.audit else (),
        choices=choices(),
        **forms_of(who, name),
    )


@router.get("/archives/{name}/year")
def year(request: Request, archive: ShownArchive, details: PageDetails, last: date | None = None) -> Response:
    """Show the days of a year, each with the state of its worst hour."""
    today = datetime.now(UTC).date()
    shown = max(min(last or today, today), FIRST_DAY + timedelta(days=YEAR_DAYS))
    answer = details.year(archive.archive, shown)
    return render(
        request,
        "year.html",
        name=archive.archive,
        coverage=answer.value,
        **freshness(answer),
        earlier=shown - timedelta(days=YEAR_DAYS),
        later=min(shown + timedelta(days=YEAR_DAYS), today) if shown < today else None,
    )


@router.get("/archives/{name}/hours/{hour}")
def hour(
    request: Request, who: Visitor, declared: ShownArchive, details: PageDetails, name: str, hour: str
) -> Response:
    """Show one hour's proof."""
    start = require_hour(hour)
    answer = details.hour(name, to_hour(start))
    value = answer.value
    return render(
        request,
        "hour.html",
        dag=dag_id(name),
        start=start,
        neighbours=_neighbours(start, datetime.now(UTC)),
        detail=value,
        **freshness(answer),
        store=declared.store.url,
        looks=shows_records(declared) and may_act(who, dag_id(name)),
        **_reason_of(name, value),
        fates=FATES,
        has_schedule=declared.schedule is not None,
        dag_runs=dag_runs_of(dag_id(name), [run.run for run in value.runs] if value else ()),
        **forms_of(who, name),
    )


@router.get("/archives/{name}/plan")
def plan(request: Request, who: Visitor, archive: ShownArchive, details: PageDetails) -> Response:
    """Show what a run would do that is triggered now."""
    name, answer = archive.archive, details.plan(archive.archive)
    value = answer.value.preview if answer.value else None
    actions = (*answer.actions, *(value.actions if value else ()))
    return render(
        request,
        "plan.html",
        preview=value,
        due=answer.value.due if answer.value else None,
        **freshness(answer),
        steps=buttons_of(name, dict.fromkeys(actions)),
        **forms_of(who, name),
    )


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Return styles and script; they say nothing of any archive."""
    if name not in _STATIC:
        raise HTTPException(404)
    file: Path = HERE / "static" / name
    return FileResponse(file, media_type=_STATIC[name], headers={"Cache-Control": "max-age=300"})


def _having(archive_snapshots: ArchiveSnapshots, target: Target, archives: dict[str, Archive]) -> Iterable[str]:
    """Return the archives that may have what somebody looks for."""
    if target.archive:
        return [target.archive]
    snapshots = {name: archive_snapshots.known(name) for name in archives} if target.topic else {}
    return archives_with(target.topic, archives, snapshots)


def _named(part: str, names: Iterable[str]) -> Iterable[str]:
    return (name for name in names if part.lower() in name.lower())


def rows_of(
    archive_snapshots: ArchiveSnapshots, archives: dict[str, Archive], patience: float | None = None
) -> list[ArchiveRow]:
    """Return the archives with their checks, those with problems first.

    :param patience: seconds to wait for archives that nobody has looked at yet.
    """
    snapshots = archive_snapshots.snapshots(archives, PATIENCE if patience is None else patience)
    moment = datetime.now(UTC)
    rows = [
        ArchiveRow(name, snapshots[name], archive_snapshots.checks(archives[name], snapshots[name], moment))
        for name in archives
    ]
    order = list(WORDS)
    return sorted(rows, key=lambda row: (order.index(row.verdict), row.name))


def require_hour(text: str) -> datetime:
    """Return the start of an hour.

    :raises HTTPException: 404: the text is no hour.
    """
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    except ValueError:
        raise HTTPException(404, "There is no such hour; expected one like 2026-11-21T05") from None


def _neighbours(start: datetime, moment: datetime) -> list[tuple[str, datetime]]:
    """Return the hours before and after this one, as far as there are any."""
    step, first = timedelta(hours=1), datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, tzinfo=UTC)
    before = [("Earlier hour", start - step)] if first < start else []
    return [*before, ("Later hour", start + step)] if start < moment - step else before


def _reason_of(name: str, hour: HourDetail | None) -> dict[str, Any]:
    """Return what an incomplete hour lacks, and the steps that bring it; none if nothing can."""
    reason = split_reason(name, (hour.proof.reason if hour and hour.proof else None) or "")
    can_fill = hour is not None and hour.is_left_out and hour.kafka_has_more
    action = reason.action or (fill(name) if can_fill else None)
    is_in_vain = action == fill(name) and not can_fill
    return {"reason": reason.lack, "steps": steps_of(name, [action] if action and not is_in_vain else [])}


def _at_work(runs: Iterable[DagRun]) -> list[DagRun]:
    return [run for run in runs if run.state in ("queued", "running")][:AT_WORK]


def _explained(runs: Iterable[DagRun], snapshot: Snapshot | None) -> set[str]:
    """Return the failed runs of which the cards say the cause."""
    return {run.run_id for run in runs if explains_failure(snapshot, run)}


def freshness(answer: Lookup[Any]) -> dict[str, Any]:
    """Return how old an answer is, whether a fresh one is on its way, and why there is none."""
    return {"as_of": answer.at, "awaited": answer.awaited, "error": answer.error}


def forms_of(user: Any, name: str) -> dict[str, Any]:
    """Return the values of a page's forms. `allowed`: the actions for which this user has the rights at their DAGs."""
    own, audit = dag_id(name), f"audit_{name}"
    may, may_audit = may_act(user, own), may_act(user, audit)
    allowed = [
        *(("run", "backfill", "fill", "rebuild", "repair", "dead-letters", "acknowledge") if may else ()),
        *["audit"] * may_audit,
        *["restore"] * (may and may_act(user, restore_dag_id(name))),
    ]
    allowed += ["unpause"] * may_edit(user, own) + ["unpause-audit"] * may_edit(user, audit)
    return {"name": name, "may_act": may, "may_audit": may_audit, "allowed": allowed, "csrf": csrf_token(user)}
