"""The documents of one run, the proof of an hour, and where the list's figures lead: the last loss and dead letters."""

import asyncio
from typing import Literal
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from kafka_archiver.config import Archive
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.object_keys import run_document
from kafka_archiver.model.plan import Plan
from kafka_archiver.orchestration.connections import open_ledger, open_store
from kafka_archiver.orchestration.page.access import RunName, ShownArchive, Visitor, may_act, shows_records
from kafka_archiver.orchestration.page.archives import open_for_page
from kafka_archiver.orchestration.page.render import redirect
from kafka_archiver.orchestration.page.views import require_hour
from kafka_archiver.values.documents import GZIP
from kafka_archiver.values.intervals import hour_start, to_hour

# Bytes of a document that a browser gets, and seconds to wait for the store.
MOST, PATIENCE = 16 << 20, 20.0


router = APIRouter()


@router.get("/archives/{name}/runs/{run}/{document}")
async def document(archive: ShownArchive, name: str, run: RunName, document: Literal["plan", "manifest"]) -> Response:
    """Return a plan or a manifest, as JSON."""
    try:
        data = await asyncio.wait_for(run_in_threadpool(_read, archive, run, document), PATIENCE)
    except (ArchiverError, TimeoutError) as error:
        raise HTTPException(503, f"The store does not answer: {error}") from None
    if data is None:
        raise HTTPException(404, f"Run {run} has no {document}")
    if len(data) > MOST:
        raise HTTPException(413, f"Too large for a browser; use: airflow archive show {name} {run}")
    # A large plan is stored as gzip.
    packed = {"Content-Encoding": "gzip"} if data.startswith(GZIP) else None
    return Response(data, media_type="application/json", headers=packed)


@router.get("/archives/{name}/hours/{hour}/proof")
def proof(archive: ShownArchive, hour: str) -> Response:
    """Return the proof of an hour, as JSON: as it is stored, or what the progress says of the hour."""
    number = to_hour(require_hour(hour))
    try:
        verdict = open_ledger(archive).hour(number)
    except ArchiverError as error:
        raise HTTPException(503, f"The store does not answer: {error}") from None
    if verdict is None:
        raise HTTPException(404, f"No run has looked at hour {hour} yet")
    return Response(verdict.to_json(), media_type="application/json")


def _read(archive: Archive, run: str, document: str) -> bytes | None:
    return open_store(archive).read(run_document(archive.archive, run, document), 0, MOST + 1)


@router.get("/archives/{name}/lost")
def lost(request: Request, archive: ShownArchive, name: str) -> Response:
    """Lead to the account of the run that last recorded a loss; it has the lost ranges."""
    try:
        plan = _last_lossy_plan(open_for_page(archive).ledger)
    except ArchiverError as error:
        raise HTTPException(503, str(error)) from None
    page = f"/archives/{quote(name)}"
    return redirect(request, f"{page}/runs/{quote(plan.run)}#lost" if plan else f"{page}#figures")


@router.get("/archives/{name}/dead-letters")
def dead_letters(request: Request, who: Visitor, archive: ShownArchive, name: str) -> Response:
    """Lead to the first of the last dead letters; for who may not look at records, to the reasons of their hour."""
    try:
        entry = _last_letters(open_for_page(archive).ledger)
    except ArchiverError as error:
        raise HTTPException(503, str(error)) from None
    hour = next((hour for hour in entry.hours if hour is not None), None) if entry else None
    if entry is None or hour is None:
        return redirect(request, f"/archives/{quote(name)}#figures")
    looks = shows_records(archive) and may_act(who, dag_id(name))
    more = f"/dead-letters?key={quote(entry.key, safe='')}" if looks else "#reasons"
    return redirect(request, f"/archives/{quote(name)}/hours/{hour_start(hour):%Y-%m-%dT%H}{more}")


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
