"""What the task `plan` of a DAG run has told the tasks after it."""

from collections.abc import Mapping
from typing import Any

from kafka_archiver.errors import PermanentError
from kafka_archiver.orchestration.dag_run.gate import PLAN
from kafka_archiver.steps.work import Work


def work_of(context: Mapping[str, Any]) -> Work:
    """What `plan` of this DAG run found.

    :raises PermanentError: it has not run.
    """
    found = context["ti"].xcom_pull(task_ids=PLAN)
    if found is None:
        raise PermanentError(
            f"the task `{PLAN}` of this DAG run has no result, so nobody knows what is to be done; "
            f"`airflow dags trigger {context['ti'].dag_id}` plans it again"
        )
    return Work.from_dict(found)
