"""Archives that Airflow knows although no valid YAML file declares them: a file is wrong, or it was deleted."""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from airflow.models import DagModel, DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.utils.session import create_session
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from kafka_archiver.config import Archive
from kafka_archiver.config.archives import Archives, missing
from kafka_archiver.config.last_known import recalled
from kafka_archiver.messages.actions import Action, command
from kafka_archiver.messages.advice import audit_dag_id, dag_id, validate
from kafka_archiver.model.findings import Finding, problem
from kafka_archiver.orchestration.dag_run.xcoms import PLAN

_PREFIX = dag_id("")


class UndeclaredArchive(NamedTuple):
    """One such archive.

    `archive`: as it was last valid; `fault`: why it is not now; `do`: the actions. `is_gone`: no file declares it.
    """

    archive: Archive
    fault: str
    do: tuple[Action, ...]
    is_gone: bool


def undeclared_archives(archives: Archives) -> dict[str, UndeclaredArchive]:
    """Return these archives by name; none if Airflow's database does not answer."""
    wrong = missing(archives)
    try:
        with create_session() as session:
            known = {
                name: UndeclaredArchive(archive, *_why(archive, wrong.get(name)))
                for name in _names(session, archives.valid)
                if (archive := _last(dag_id(name), session)) and (name in wrong or _has_run(dag_id(name), session))
            }
    except SQLAlchemyError:
        return {}
    return known


def checks_of_file(fault: UndeclaredArchive | None) -> list[Finding]:
    """Return the check of an archive's file: none if it is valid."""
    return [problem("file", fault.fault, *fault.do)] if fault else []


def _why(archive: Archive, error: str | None) -> tuple[str, tuple[Action, ...], bool]:
    name = archive.archive
    if error is not None:
        return f"its YAML file is wrong, so nothing is archived: {error}", (validate(name),), False
    return (
        f"no file declares it any more, so nothing is archived; it was declared by {archive.file}. Put the file back. "
        "If the archive has ended, remove its DAGs from Airflow: what is stored stays",
        tuple(command(f"airflow dags delete --yes {dag}") for dag in (dag_id(name), audit_dag_id(name))),
        True,
    )


def _names(session: Session, declared: Collection[str]) -> list[str]:
    ids = session.scalars(select(DagModel.dag_id).where(DagModel.dag_id.startswith(_PREFIX, autoescape=True)))
    return sorted(name for dag in ids if (name := dag.removeprefix(_PREFIX)) not in declared)


def _has_run(dag: str, session: Session) -> bool:
    return session.scalars(select(DagRun.id).where(DagRun.dag_id == dag).limit(1)).first() is not None


def _last(dag: str, session: Session) -> Archive | None:
    """Return the archive as Airflow has kept it with its DAG; see `config.last_known`."""
    row = SerializedDagModel.get(dag, session=session)
    tasks: Any = row.data.get("dag", {}).get("tasks", ()) if row and isinstance(row.data, Mapping) else ()
    for task in (entry.get("__var", entry) for entry in tasks):
        if task.get("task_id") == PLAN and task.get("doc_json"):
            with suppress(ValueError):
                return recalled(json.loads(task["doc_json"]))
    return None
