"""`POST /archiver/archives/<name>/do/<action>`: who may trigger the DAG, and comes from our own page, may act.

Who may edit the DAG may unpause it.
"""

import logging
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from kafka_archiver.config import Archive
from kafka_archiver.messages.advice import dag_id, restore_dag_id
from kafka_archiver.messages.errors import ArchiverError, ConfigError
from kafka_archiver.model.acknowledged import checked_name
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.orchestration.metadata.triggering import note, start_backfill, start_run, unpause
from kafka_archiver.orchestration.page.access import (
    PageSnapshots,
    User,
    csrf_token,
    may_act,
    may_edit,
    require_own_page,
    require_visible,
)
from kafka_archiver.orchestration.page.actions import Trigger, dag_to_unpause, trigger_of
from kafka_archiver.orchestration.page.archives import ArchiveSnapshots, open_for_page
from kafka_archiver.orchestration.page.buttons import buttons_of
from kafka_archiver.orchestration.page.consent import Consent, question
from kafka_archiver.orchestration.page.details import PageDetails
from kafka_archiver.orchestration.page.render import base_path, render
from kafka_archiver.orchestration.page.submitted import SubmittedForm, own_fields
from kafka_archiver.orchestration.page.views import forms_of
from kafka_archiver.state.status.condition import open_findings
from kafka_archiver.work.acknowledge import accept

log = logging.getLogger(__name__)
# Bytes of a form.
MOST = 1 << 16
# Characters that every proxy takes.
MOST_OF_ADDRESS = 6000


router = APIRouter()


@router.post("/archives/{name}/do/{action}")
async def do(
    request: Request, user: User, archive_snapshots: PageSnapshots, details: PageDetails, name: str, action: str
) -> Response:
    """Start the DAG run of an action, then show the archive again."""
    form = await _form(request)
    answer = await run_in_threadpool(_do, archive_snapshots, request, user, name, action, form)
    # What was read before the action is old.
    archive_snapshots.again(name)
    details.again(name)
    return answer


def _do(
    archive_snapshots: ArchiveSnapshots, request: Request, user: Any, name: str, action: str, form: SubmittedForm
) -> Response:
    archive = require_visible(archive_snapshots, user, name)
    require_own_page(request, user, form.get("csrf"))
    back = f"{base_path(request)}/archives/{name}"
    if paused := dag_to_unpause(action, name):
        return _unpause(request, user, action, paused, back)
    _require_right(user, dag_id(name))
    if action == "acknowledge":
        return _acknowledge(archive_snapshots, request, user, archive, form, back)
    trigger = None
    try:
        if fault := archive_snapshots.fault(name):
            raise ConfigError(f"Archive {name} cannot run: {fault.fault}", actions=fault.do)
        trigger = trigger_of(action, archive, form)
        _require_right(user, trigger.dag)
        if action == "restore" and not form.get("agreed"):
            # Reading the ledger takes minutes for a long archive: a page that waits by itself shows what comes of it.
            return RedirectResponse(f"{back}/restores/question?{_in_address(form)}", 303)
        if not form.get("agreed") and (consent := question(archive, trigger)):
            return _ask(request, user, name, back, action, form, consent)
        started = _start(trigger, user.get_name())
    except ArchiverError as error:
        dag = trigger.dag if trigger else None
        return _refusal(request, user, name, back, dag, error)
    log.info("%s has started %s of %s from the page: %s", user.get_name(), started, trigger.dag, trigger.conf)
    note(f"archiver_{action}", trigger.dag, user.get_name(), started=started, conf=trigger.conf)
    where = f"{back}/restores" if trigger.dag == restore_dag_id(name) else back
    return RedirectResponse(f"{where}?{urlencode({'started': started, 'dag': trigger.dag})}", 303)


def _in_address(form: SubmittedForm) -> str:
    query = urlencode(own_fields(form))
    if len(query) > MOST_OF_ADDRESS:
        raise ConfigError(
            f"the fields of this restore have {len(query):,} characters in an address, expected at most "
            f"{MOST_OF_ADDRESS:,}. Restore in parts, or on a terminal with airflow archive restore"
        )
    return query


def _unpause(request: Request, user: Any, action: str, dag: str, back: str) -> Response:
    if not may_edit(user, dag):
        raise HTTPException(403, f"You may not unpause {dag}")
    try:
        unpause(dag)
    except ArchiverError as error:
        return render(request, "message.html", 409, title="Nothing was changed", text=str(error), back=back, dag=dag)
    log.info("%s has unpaused %s from the page", user.get_name(), dag)
    note(f"archiver_{action}", dag, user.get_name())
    return RedirectResponse(f"{back}?{urlencode({'unpaused': dag})}", 303)


def _acknowledge(
    archive_snapshots: ArchiveSnapshots, request: Request, user: Any, archive: Archive, form: SubmittedForm, back: str
) -> Response:
    """Accept a finding by name, once the user has answered the question."""
    name, who = archive.archive, user.get_name()
    try:
        finding = checked_name(form.get("finding"))
        if not form.get("agreed"):
            return _question(request, archive_snapshots, name, finding, back, user)
        context = open_for_page(archive)
        findings = open_findings(context, facts_of(archive, datetime.now(UTC)))
        accept(context, findings, finding, who, form.get("note"))
    except ArchiverError as error:
        return _refusal(request, user, name, back, None, error)
    log.info("%s has accepted %s of archive %s from the page", who, finding, name)
    note("archiver_acknowledge", dag_id(name), who, finding=finding, why=form.get("note"))
    return RedirectResponse(f"{back}?{urlencode({'accepted': finding})}", 303)


def _question(
    request: Request, archive_snapshots: ArchiveSnapshots, name: str, finding: str, back: str, user: Any
) -> Response:
    snapshot = archive_snapshots.snapshots([name])[name]
    shown = [f.text for f in snapshot.troubles if f.name == finding] if snapshot else []
    more = {"name": name, "finding": finding, "shown": shown, "back": back, "csrf": csrf_token(user)}
    return render(request, "accept.html", 200, **more)


def _ask(
    request: Request, user: Any, name: str, back: str, action: str, form: SubmittedForm, consent: Consent
) -> Response:
    """Render the page that asks for consent, with the same fields again."""
    more = {"name": name, "action": action, "back": back, "csrf": csrf_token(user)}
    return render(request, "confirm.html", 200, consent=consent, fields=own_fields(form), **more)


def _refusal(request: Request, user: Any, name: str, back: str, dag: str | None, error: ArchiverError) -> Response:
    """Render why nothing was started, with the buttons beside the commands of the message."""
    steps = buttons_of(name, error.actions)
    more = {"at": back, "steps": steps, **forms_of(user, name)} if steps else {}
    return render(
        request, "message.html", 409, title="Nothing was started", text=str(error), back=back, dag=dag, **more
    )


def _require_right(user: Any, dag: str) -> None:
    if not may_act(user, dag):
        raise HTTPException(403, f"You may not trigger {dag}")


def _start(trigger: Trigger, user: str) -> str:
    if trigger.backfill:
        return start_backfill(trigger.dag, *trigger.backfill, user)
    return start_run(trigger.dag, trigger.conf, user)


async def _form(request: Request) -> SubmittedForm:
    """Return the fields of a form that a page of ours has sent."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise HTTPException(415, "expected a form")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST:
            raise HTTPException(413, "the form is too large")
    try:
        return SubmittedForm(parse_qsl(body.decode(), keep_blank_values=True))
    except ValueError:
        raise HTTPException(400, "the form is not UTF-8") from None
