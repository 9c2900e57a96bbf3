"""Where the list's figures lead: the run that last recorded a loss, and the last dead letters."""

from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.plan import Plan
from kafka_archiver.orchestration.page.access import ShownArchive, Visitor, may_act, shows_records
from kafka_archiver.orchestration.page.archives import open_for_page
from kafka_archiver.orchestration.page.render import base_path
from kafka_archiver.values.intervals import hour_start

router = APIRouter()


@router.get("/archives/{name}/lost")
def lost(request: Request, archive: ShownArchive, name: str) -> Response:
    """Lead to the account of the run that last recorded a loss; it has the lost ranges."""
    try:
        plan = _last_lossy_plan(open_for_page(archive).ledger)
    except ArchiverError as error:
        raise HTTPException(503, str(error)) from None
    return _lead(request, name, f"/runs/{quote(plan.run)}#lost" if plan else "#figures")


@router.get("/archives/{name}/dead-letters")
def dead_letters(request: Request, who: Visitor, archive: ShownArchive, name: str) -> Response:
    """Lead to the first of the last dead letters; for who may not look at records, to the reasons of their hour."""
    try:
        entry = _last_letters(open_for_page(archive).ledger)
    except ArchiverError as error:
        raise HTTPException(503, str(error)) from None
    hour = next((hour for hour in entry.hours if hour is not None), None) if entry else None
    if entry is None or hour is None:
        return _lead(request, name, "#figures")
    looks = shows_records(archive) and may_act(who, dag_id(name))
    more = f"/dead-letters?key={quote(entry.key, safe='')}" if looks else "#reasons"
    return _lead(request, name, f"/hours/{hour_start(hour):%Y-%m-%dT%H}{more}")


def _last_lossy_plan(ledger: Ledger) -> Plan | None:
    progress = ledger.progress()
    return ledger.planned(progress.lost_by) if progress and progress.lost_by else None


def _last_letters(ledger: Ledger) -> ObjectEntry | None:
    """Return the first object of dead letters of the run that added some last; None if a replay has replaced them."""
    progress = ledger.progress()
    plan = ledger.planned(progress.dead_lettered_by) if progress and progress.dead_lettered_by else None
    run = ledger.last_committed(plan.interval.id) if plan else None
    manifest = ledger.manifest(run) if run else None
    return next(iter(manifest.dead_letters), None) if manifest else None


def _lead(request: Request, name: str, path: str) -> Response:
    return RedirectResponse(f"{base_path(request)}/archives/{quote(name)}{path}", 303)
