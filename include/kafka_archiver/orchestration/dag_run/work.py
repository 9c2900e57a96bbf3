"""The result of the task `plan`, for the tasks after it."""

from collections.abc import Mapping
from typing import Any

from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import start_again
from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.orchestration.dag_run.gate import PLAN
from kafka_archiver.work.planned_work import PlannedWork


def work_of(context: Mapping[str, Any]) -> PlannedWork:
    """Return the result of `plan` in this DAG run.

    :raises PermanentError: `plan` has no result.
    """
    result = context["ti"].xcom_pull(task_ids=PLAN)
    if result is None:
        raise PermanentError(
            f"the task `{PLAN}` of this DAG run has no result, so there is nothing to work on.",
            *advise(start_again(context["ti"].dag_id), " starts a run that plans again"),
        )
    return PlannedWork.from_dict(result)
