"""The cause of a task's failure in one line: for the end of its log, the alert, and commands that wait for the task."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow.sdk.log import redact  # type: ignore[attr-defined] # where providers import it from

from kafka_archiver.messages.actions import Action, to_dicts
from kafka_archiver.messages.errors import SILENCE, ArchiverError, PermanentError, error_in_words

log = logging.getLogger(__name__)
# The XCom with the cause of a failed attempt, and whether the failure is permanent. Airflow keeps it with the run, and
# removes it when the task is retried.
CAUSE = "cause"
# Characters for an alert, an XCom or a terminal.
SHORT = 1000
# Actions of an error.
MOST = 4
# Airflow gives no exception when the task's process stopped reporting.
NO_EXCEPTION = f"the task's {SILENCE}"


def cause_of(error: object) -> str:
    """Return the error in one line, without secrets."""
    if not isinstance(error, BaseException):
        return _line(str(error or NO_EXCEPTION))
    return _line(error_in_words(error))


def reason_of(error: object) -> str:
    """Return the error in one line without what to do, and without secrets."""
    return _line(error.message) if isinstance(error, ArchiverError) else cause_of(error)


def _line(text: str) -> str:
    return " ".join(str(redact(text)).split())


def cut_cause(cause: str) -> str:
    """Return the cause cut to SHORT characters."""
    return cause if len(cause) <= SHORT else cause[:SHORT] + " …"


def actions_of(error: object) -> tuple[Action, ...]:
    """Return the actions that an error names, the best one first, without secrets."""
    if not isinstance(error, ArchiverError):
        return ()
    return tuple(replace(action, command=str(redact(action.command))) for action in error.actions[:MOST])


def leave_cause(context: Mapping[str, Any]) -> None:
    """Make the cause the last line of the log: the callback of each failed or retried task.

    Airflow itself logs the cause above a dozen frames of its own code, and folds the output of callbacks.
    """
    if "exception" not in context:
        # In the DAG processor, because the task's machine stopped reporting: this is not the task's log.
        return
    cause = cause_of(context["exception"])
    error = context["exception"]
    stored = {"permanent": isinstance(error, PermanentError), "cause": cut_cause(cause)}
    if actions := actions_of(error):
        stored["actions"] = to_dicts(actions)
    if isinstance(error, ArchiverError) and error.kinds:
        stored["kinds"] = list(error.kinds)
    context["ti"].xcom_push(CAUSE, stored)
    log.info("::endgroup::")
    log.error("%s", cause)
