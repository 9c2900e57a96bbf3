"""The jobs by name: the document of each, and the main program that takes it.

Nothing else knows a job by its name. A job is a file with a document and a function `run(document, endpoints)`, and a
line here. Names of modules, not imports: a task makes documents without the libraries of main programs. Pure.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kafka_archiver.jobs.base import JobDocument
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.entry_points import imported
from kafka_archiver.messages.errors import ConfigError

Run = Callable[[Any, Endpoints], None]


class Job(NamedTuple):
    """A job. `document`: `module:class`, of a `JobDocument`. `run`: `module:function`, which does its work."""

    document: str
    run: str


JOBS = {
    "archive": Job("kafka_archiver.jobs.archive:ArchiveJob", "kafka_archiver.driver.archive:run"),
    "restore": Job("kafka_archiver.jobs.restore:RestoreJob", "kafka_archiver.driver.restore:run"),
}


def document_type(name: str) -> type[JobDocument]:
    """Return the class of a job's documents."""
    document: type[JobDocument] = imported(JOBS[name].document)
    return document


def run_of(document: JobDocument) -> Run:
    """Return the main program of a document."""
    run: Run = imported(JOBS[document.job].run)
    return run


def read_document(arguments: Sequence[str]) -> JobDocument:
    """Return the document in the arguments of a main program.

    :raises ConfigError: the arguments are something else.
    """
    name = _name_in(arguments)
    if name not in JOBS:
        content = (
            f"{len(arguments)} arguments" if len(arguments) != 1 else f"job {name!r}" if name else "no such document"
        )
        raise ConfigError(
            f"expected one argument, the document of a job ({' | '.join(JOBS)}) as a task of the DAG writes it; "
            f"found {content}"
        )
    return document_type(name).from_arguments(arguments)


def _name_in(arguments: Sequence[str]) -> str:
    try:
        [text] = arguments
        return str(json.loads(text)["job"])
    except (ValueError, KeyError, TypeError):
        return ""
