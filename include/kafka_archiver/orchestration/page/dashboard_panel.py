"""`/archiver/trouble`: the archives for which somebody has to act, for the panel on Airflow's dashboard."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from kafka_archiver.messages.advice import dag_id
from kafka_archiver.orchestration.page.access import User, visible
from kafka_archiver.orchestration.page.archives import Observatory
from kafka_archiver.orchestration.page.views import rows_of

# Archives that are named, and characters of the cause of each.
MOST, LONG = 10, 200


def trouble_router(observatory: Observatory) -> APIRouter:
    """Return the route of the panel."""
    router = APIRouter()

    @router.get("/trouble")
    def trouble(request: Request, user: User) -> Response:  # noqa: ARG001 - FastAPI's signature
        """Return the archives with problems that the user may see. Waits for none; `awaited`: some are being read."""
        known = observatory.archives().valid
        rows = rows_of(observatory, {name: known[name] for name in visible(user, known)}, patience=0.0)
        wrong = [row for row in rows if row.verdict == "failing"]
        shown = [{"name": row.name, "dag": dag_id(row.name), "cause": row.short[:LONG]} for row in wrong[:MOST]]
        awaited = any(row.snapshot is None for row in rows)
        return JSONResponse({"archives": shown, "more": len(wrong[MOST:]), "awaited": awaited})

    return router
