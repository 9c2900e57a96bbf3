"""`/archiver/health`: 200 if Airflow itself works and every archive is healthy, else 503. `/archiver/trouble`.

A stranger gets one word. A user gets the checks of the archives that the user may see, a machine with the token all;
wrong files count for machines, strangers and users who may see import errors.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from kafka_archiver.config import Archive
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.wording import shortened
from kafka_archiver.model.findings import Finding
from kafka_archiver.orchestration.metadata.airflow_health import services
from kafka_archiver.orchestration.page.access import MaybeUser, PageSnapshots, User, has_token, sees_errors, visible
from kafka_archiver.orchestration.page.archives import ArchiveSnapshots
from kafka_archiver.orchestration.page.views import rows_of
from kafka_archiver.state.health import Verdict, as_check, verdict_of
from kafka_archiver.state.health.judge import TOO_OLD

# Archives that are named, and characters of the cause of each.
MOST, LONG = 10, 200
# Seconds to wait for archives that nobody has looked at since the start.
PATIENCE = 10.0
# Strangers hold a thread of Airflow's server for less.
STRANGERS_PATIENCE = 2.0
_WORDS: dict[Verdict, str] = {"ok": "healthy", "warning": "healthy", "unknown": "unknown", "failing": "unhealthy"}


# Some load balancers ask with HEAD.
router = APIRouter()


@router.api_route("/health", methods=["GET", "HEAD"])
def health(request: Request, user: MaybeUser, archive_snapshots: PageSnapshots) -> Response:
    """Return the health of the archives that the caller may know of; a stranger gets the word of all of them."""
    archives, token = archive_snapshots.archives(), has_token(request)
    named = _named(archives.valid, token, user)
    patience = STRANGERS_PATIENCE if named is None else PATIENCE
    checks_by_name = _checks(archive_snapshots, archives.valid if named is None else named, patience)
    sees_files = token or (user is not None and sees_errors(user))
    is_wrong = bool(archives.errors) and (sees_files or named is None)
    airflow = services().checks
    every = [*airflow, *(check for checks in checks_by_name.values() for check in checks)]
    overall = "failing" if is_wrong else verdict_of(every)
    if named is None:
        return PlainTextResponse(_WORDS[overall], _code(overall))
    documents = {name: _document(checks) for name, checks in checks_by_name.items()}
    more = {"wrong_files": list(map(str, archives.errors))} if sees_files else {}
    return JSONResponse(
        {"status": _WORDS[overall], "airflow": _document(airflow), "archives": documents, **more}, _code(overall)
    )


@router.api_route("/health/{name}", methods=["GET", "HEAD"])
def health_of(name: str, request: Request, user: MaybeUser, archive_snapshots: PageSnapshots) -> Response:
    """Return one archive's health. A stranger is refused, whether there is such an archive or not."""
    named = _named(archive_snapshots.archives().valid, has_token(request), user)
    if named is None:
        raise HTTPException(401, "Log in to Airflow first, or give the token")
    if name not in named:
        raise HTTPException(404, "There is no such archive")
    [checks] = _checks(archive_snapshots, {name: named[name]}, PATIENCE).values()
    return JSONResponse(_document(checks), _code(verdict_of(checks)))


def _named(archives: dict[str, Archive], token: bool, user: Any) -> dict[str, Archive] | None:
    """Return the archives that the caller may know of; None: a stranger."""
    if token:
        return archives
    if user is None:
        return None
    return {name: archives[name] for name in sorted(visible(user, archives))}


def _checks(
    archive_snapshots: ArchiveSnapshots, archives: dict[str, Archive], patience: float
) -> dict[str, list[Finding]]:
    snapshots, moment = archive_snapshots.current(archives, patience), datetime.now(UTC)
    # A look that is that old although a fresh one was awaited says nothing any more.
    snapshots |= {
        name: None for name, snapshot in snapshots.items() if snapshot and moment - snapshot.taken_at > TOO_OLD
    }
    return {name: archive_snapshots.checks(archive, snapshots[name], moment) for name, archive in archives.items()}


def _document(checks: Collection[Finding]) -> dict[str, Any]:
    return {"status": _WORDS[verdict_of(checks)], "checks": [as_check(check) for check in checks]}


def _code(verdict: Verdict) -> int:
    return 200 if verdict in ("ok", "warning") else 503


@router.get("/trouble")
def trouble(user: User, archive_snapshots: PageSnapshots) -> Response:
    """Return the archives with problems that the user may see, and the wrong files that declare no other archive.

    Waits for none; `awaited`: some are being read.
    """
    archives = archive_snapshots.archives()
    known = archives.valid
    rows = rows_of(archive_snapshots, {name: known[name] for name in visible(user, known)}, patience=0.0)
    wrong = [row for row in rows if row.verdict == "failing"]
    shown = [
        {"name": row.name, "dag": dag_id(row.name), "cause": shortened(row.short, LONG), "do": row.command}
        for row in wrong[:MOST]
    ]
    files = [error for error in archives.errors if getattr(error, "archive", None) not in known]
    texts = [shortened(str(error), LONG) for error in files[:MOST]] if sees_errors(user) else []
    awaited = any(row.snapshot is None for row in rows)
    return JSONResponse({"archives": shown, "more": len(wrong[MOST:]), "files": texts, "awaited": awaited})
