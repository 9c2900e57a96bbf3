"""The documents of one run, where the buttons of the task `archive` lead, and the proof of an hour."""

import asyncio
from typing import Literal

from fastapi import APIRouter, HTTPException, Response
from starlette.concurrency import run_in_threadpool

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ArchiverError, ConfigError
from kafka_archiver.model.object_keys import run_document
from kafka_archiver.orchestration.connections import open_ledger, open_store
from kafka_archiver.orchestration.dag_run.params import checked_run
from kafka_archiver.orchestration.page.access import ShownArchive
from kafka_archiver.orchestration.page.views import require_hour
from kafka_archiver.values.documents import GZIP
from kafka_archiver.values.intervals import to_hour

# Bytes of a document that a browser gets, and seconds to wait for the store.
MOST, PATIENCE = 16 << 20, 20.0


router = APIRouter()


@router.get("/archives/{name}/runs/{run}/{document}")
async def document(archive: ShownArchive, name: str, run: str, document: Literal["plan", "manifest"]) -> Response:
    """Return a plan or a manifest, as JSON."""
    try:
        reading = run_in_threadpool(_read, archive, checked_run(run, "run"), document)
        data = await asyncio.wait_for(reading, PATIENCE)
    except ConfigError:
        raise HTTPException(404, "There is no such run; expected one like 20261121T050000Z") from None
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
