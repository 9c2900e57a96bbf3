"""The alerts of the watchdog. Pure."""

import re
from collections.abc import Sequence

from kafka_archiver.messages.actions import Action, command, words
from kafka_archiver.messages.advice import audit_dag_id, dag_id
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.findings import Finding
from kafka_archiver.orchestration.alerts.incidents import Incident
from kafka_archiver.orchestration.alerts.message import Kind, Message, State, of_incident
from kafka_archiver.orchestration.alerts.reporting import MessageOf

# Characters of an error in the subject.
SUBJECT = 120
_FOLDERS = re.compile(r"\S*/(?=[^/\s]+\.ya?ml\b)")


def paused(archive: str, check: Finding | None, link: str) -> MessageOf:
    """Report that the DAG is paused while records wait, or no longer."""
    over = "its DAG is no longer paused, or nothing waits"
    return _of("paused", archive, f"DAG {dag_id(archive)} is paused, and records wait", over, check, link)


def unaudited(archive: str, check: Finding | None, link: str) -> MessageOf:
    """Report that audits do not run, or do again."""
    return _of("unaudited", archive, "it is not audited", "it is audited again", check, link)


def wrong_file(archive: str, error: str, link: str) -> MessageOf:
    """Report that the YAML file of the archive is wrong, or no longer.

    :param error: names file and key.
    """
    cause = " ".join(error.split())
    title = f"its YAML file is wrong, so nothing is archived: {foreign(_FOLDERS.sub('', cause), SUBJECT)}"
    do = (command("airflow archive validate"),)
    return _message_of("wrong_file", archive, title, "its YAML file is valid again", cause, do, link)


def gone(archive: str, file: str, link: str) -> MessageOf:
    """Report that no file declares the archive any more, or one does again."""
    ends = " && ".join(f"airflow dags delete --yes {dag}" for dag in (dag_id(archive), audit_dag_id(archive)))
    do = (
        words(f"put {file or 'its YAML file'} back"),
        command(ends, "if the archive has ended (what is stored stays)"),
    )
    cause = f"It was declared by {file}" if file else ""
    return _message_of(
        "gone", archive, "its YAML file is gone, so nothing is archived", "it is declared again", cause, do, link
    )


def _of(kind: Kind, archive: str, begins: str, over: str, check: Finding | None, link: str) -> MessageOf:
    return _message_of(kind, archive, begins, over, check.text if check else "", check.actions if check else (), link)


def _message_of(
    kind: Kind, archive: str, begins: str, over: str, cause: str, do: Sequence[Action], link: str
) -> MessageOf:
    def message(state: State, before: Incident | None) -> Message:
        since = [f"Since {before.since}"] if state == "over" and before else []
        return of_incident(kind, state, archive, (begins, over), since, do, link, cause)

    return message
