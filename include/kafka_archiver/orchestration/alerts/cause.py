"""Why a task has failed, in one line: for the end of its log, its alert, and the commands that wait for it."""

import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk.log import redact  # type: ignore[attr-defined] # where providers import it from

from kafka_archiver.errors import PermanentError, TransientError

log = logging.getLogger(__name__)
# The XCom with the cause of a failed attempt, and whether trying again changes nothing. Airflow keeps it with the run,
# and removes it when the task is tried again.
CAUSE = "cause"
# What an alert, an XCom or a terminal takes.
SHORT = 1000
# Airflow gives none when it only knows that the task's process stopped reporting.
NO_EXCEPTION = "the task's process ended without a word (killed, out of memory, or its machine is gone)"


def cause_of(error: object) -> str:
    """What went wrong, without secrets."""
    if not isinstance(error, BaseException):
        return " ".join(str(redact(str(error or NO_EXCEPTION))).split())
    # These two carry the name of what happened in the job; the others are named by their class.
    name = "" if type(error) in (PermanentError, TransientError) else f"{type(error).__name__}: "
    return " ".join(str(redact(f"{name}{error}")).split())


def shortened(cause: str) -> str:
    """As much of it as is wanted where there is more to read than this."""
    return cause if len(cause) <= SHORT else cause[:SHORT] + " …"


def leave_cause(context: Mapping[str, Any]) -> None:
    """A callback of each task that has failed, or is tried again: the cause is the last line of its log.

    Airflow itself logs it above a dozen frames of its own code, and folds away what callbacks say.
    """
    if "exception" not in context:
        # Called in the DAG processor, since the task's machine stopped reporting: this is another log.
        return
    cause = cause_of(context["exception"])
    permanent = isinstance(context["exception"], PermanentError)
    context["ti"].xcom_push(CAUSE, {"permanent": permanent, "cause": shortened(cause)})
    log.info("::endgroup::")
    log.error("%s", cause)
