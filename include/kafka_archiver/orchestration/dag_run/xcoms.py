"""The values that tasks leave for later tasks, the page, alerts and later runs (XComs), and what `plan` has left."""

from collections.abc import Mapping
from typing import Any

from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import start_again
from kafka_archiver.messages.errors import NOT_RUN, PermanentError
from kafka_archiver.work.planned_work import PlannedWork

# The first task of a DAG; the XCom of its result has no key of its own.
PLAN = "plan"
# The XCom of `close_hours` with the figures of the run (kafka_archiver.orchestration.dag_run.figures.Figures).
FIGURES = "figures"
# The XCom of the task `archive` with the CPU seconds of its last attempt.
ARCHIVE, CPU = "archive", "cpu_seconds"
# The XCom of a task at work: the last line about its job's progress (kafka_archiver.messages.progress), and its time.
PROGRESS = "progress"
# The XCom of `close_hours` with the number of errors in the last audit's report, if the run has taken some out of it.
DAMAGE_LEFT = "damage_left"
# The XCom of `audit` with its verdict and counts, also of a failed task.
AUDITED = "audit"


def work_of(context: Mapping[str, Any]) -> PlannedWork:
    """Return the result of `plan` in this DAG run.

    :raises PermanentError: `plan` has no result.
    """
    result = context["ti"].xcom_pull(task_ids=PLAN)
    if result is None:
        raise PermanentError(
            f"the task `{PLAN}` of this DAG run has no result, so there is nothing to work on.",
            *advise(
                "Clear it, and the tasks behind it; or ",
                start_again(context["ti"].dag_id),
                " starts a run that archives all up to now",
            ),
            kinds=(NOT_RUN,),
        )
    return PlannedWork.from_dict(result)
