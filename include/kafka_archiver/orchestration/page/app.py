"""The application below `/archiver`."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from kafka_archiver.orchestration.page import (
    accounts,
    action_routes,
    documents,
    health,
    look_inside,
    metrics,
    new_archive,
    restores,
    views,
)
from kafka_archiver.orchestration.page.archives import ArchiveSnapshots
from kafka_archiver.orchestration.page.details import Details
from kafka_archiver.orchestration.page.render import HEADERS, base_path, render

# In the order in which an address is looked up.
_ROOMS = (
    health, metrics, views, accounts, documents, new_archive, restores, look_inside, action_routes,
)  # fmt: skip


def make_app(archive_snapshots: ArchiveSnapshots | None = None) -> FastAPI:
    """Make the application. It has no documentation pages: strangers could read them."""
    known = archive_snapshots or ArchiveSnapshots()
    app = FastAPI(title="Kafka archiver", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.archive_snapshots, app.state.details = known, Details(known)
    for room in _ROOMS:
        app.include_router(room.router)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _wrong)
    app.middleware("http")(_guarded)
    return app


async def _guarded(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Add the headers of a page to an answer: no cache on the way to the user may keep what others may not see."""
    answer = await call_next(request)
    for name, value in HEADERS.items():
        answer.headers.setdefault(name, value)
    return answer


async def _wrong(request: Request, error: Exception) -> Response:
    """Refuse a wrong value in the address."""
    assert isinstance(error, RequestValidationError)
    reasons = "; ".join(f"`{failure['loc'][-1]}`: {failure['msg']}" for failure in error.errors())
    return await _refused(request, HTTPException(422, reasons))


async def _refused(request: Request, error: Exception) -> Response:
    """Return an error as a page for browsers, as JSON for others."""
    assert isinstance(error, HTTPException)
    if error.status_code < 400:
        return Response(status_code=error.status_code, headers=error.headers)
    if "text/html" in request.headers.get("accept", ""):
        # An address without a route has the framework's own words.
        is_no_page = error.detail == HTTPStatus.NOT_FOUND.phrase
        title = "There is no such page" if error.status_code == HTTPStatus.NOT_FOUND else "Not possible"
        text = "All archives that you may see are on the first page" if is_no_page else error.detail
        values = {"title": title, "text": text, "back": f"{base_path(request)}/", "back_to": "Archives", "dag": None}
        return render(request, "message.html", error.status_code, **values)
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)
