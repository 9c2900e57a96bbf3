"""The restores of an archive: what became of each, and the form that starts another."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fastapi import APIRouter, HTTPException, Request, Response

from kafka_archiver.messages.advice import dag_id, restore_dag_id
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.metadata.restore_runs import RestoreRun
from kafka_archiver.orchestration.page.access import ShownArchive, Visitor, may_act
from kafka_archiver.orchestration.page.buttons import buttons_of
from kafka_archiver.orchestration.page.details import PageDetails
from kafka_archiver.orchestration.page.render import base_path, render
from kafka_archiver.orchestration.page.restore_fields import FIRST, conf_of_fields, sections
from kafka_archiver.orchestration.page.submitted import SubmittedForm, own_fields
from kafka_archiver.orchestration.page.views import EVERY, forms_of, freshness
from kafka_archiver.state.restores import RestoreSummary

_AT_WORK = ("queued", "running")


class RestoreRow(NamedTuple):
    """One restore. `summary`: None before its plan. `run`: its last DAG run; None if Airflow has forgotten it."""

    name: str
    summary: RestoreSummary | None
    run: RestoreRun | None

    @property
    def state(self) -> str:
        """Its state in one or two words."""
        if self.run and self.run.state in _AT_WORK:
            return "running"
        if self.summary and self.summary.verified is not None:
            return "verified" if self.summary.verified else "not verified"
        return "failed" if self.run and self.run.state == "failed" else "planned" if self.summary else "not planned"

    @property
    def pill(self) -> str:
        """The class of its state."""
        classes = {"running": "running", "verified": "complete", "not verified": "failed", "failed": "failed"}
        return classes.get(self.state, "")


def rows_of_restores(summaries: Sequence[RestoreSummary], runs: Iterable[RestoreRun]) -> list[RestoreRow]:
    """Return the restores, those that Airflow works on before their plan first. Pure."""
    last: dict[str, RestoreRun] = {}
    for run in runs:
        last.setdefault(run.restore, run)
    planned = {summary.restore for summary in summaries}
    unplanned = [RestoreRow(name, None, run) for name, run in last.items() if name not in planned]
    return [*unplanned, *(RestoreRow(each.restore, each, last.get(each.restore)) for each in summaries)]


router = APIRouter()


@router.get("/archives/{name}/restores")
def restores(
    request: Request, who: Visitor, archive: ShownArchive, details: PageDetails, started: str = ""
) -> Response:
    """Show the last restores of an archive, and the form."""
    name, answer = archive.archive, details.restores(archive.archive)
    known = answer.value
    return render(
        request,
        "restores.html",
        every=EVERY,
        dag=restore_dag_id(name),
        started=started,
        rows=rows_of_restores(known.ledger.restores, known.runs) if known else None,
        more=known.ledger.more if known else 0,
        sections=sections(known.topics if known else ()),
        first=FIRST,
        **freshness(answer),
        **forms_of(who, name),
    )


@router.get("/archives/{name}/restores/question")
def question(request: Request, who: Visitor, archive: ShownArchive, details: PageDetails) -> Response:
    """Show what a restore with the fields of the address would write, and ask for consent."""
    name = archive.archive
    if not (may_act(who, dag_id(name)) and may_act(who, restore_dag_id(name))):
        raise HTTPException(403, f"You may not trigger {restore_dag_id(name)}")
    form = SubmittedForm(request.query_params.multi_items())
    try:
        answer = details.restore_question(name, conf_of_fields(form))
    except ConfigError as error:
        raise HTTPException(422, str(error)) from None
    at = f"{base_path(request)}/archives/{name}"
    return render(
        request,
        "confirm.html",
        action="restore",
        back=at,
        at=at,
        fields=own_fields(form),
        consent=answer.value,
        error=answer.error,
        steps=buttons_of(name, answer.actions),
        **forms_of(who, name),
    )
