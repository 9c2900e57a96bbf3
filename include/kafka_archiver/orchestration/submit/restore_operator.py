"""The tasks `restore` and `verify`: one spark-submit for a step of a restore."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from airflow.sdk import Context

from kafka_archiver.config import Archive
from kafka_archiver.jobs.registry import document_type
from kafka_archiver.jobs.restore import RestoreStep
from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.orchestration.connections import target_endpoints
from kafka_archiver.orchestration.dag_run.restore_form import allowed
from kafka_archiver.orchestration.dag_run.xcoms import PLAN
from kafka_archiver.orchestration.submit.links import SparkLink
from kafka_archiver.orchestration.submit.operator import ArchiveOperator


class RestoreOperator(ArchiveOperator):
    """The task that submits a step of a restore; its plan is frozen."""

    template_fields: Sequence[str] = ()
    operator_extra_links: Sequence[Any] = (SparkLink(),)

    def __init__(self, *, archive: Archive, step: RestoreStep, **kwargs: Any) -> None:
        super().__init__(archive=archive, document=document_type("restore"), **kwargs)
        self._step = step

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:  # noqa: ARG002 - Airflow's signature
        """Return nothing: lineage is of archives."""
        return None

    def execute(self, context: Context) -> None:
        """Submit the job."""
        self.require_connection()
        params = context["params"]
        clients = target_endpoints(self._archive, params.get("to"))
        arguments = [restore_of(context), self._step, *allowed(params)]
        self.submit(context, partial(self._submission, self._archive, clients, arguments), arguments[0])


def restore_of(context: Any) -> str:
    """Return the name of the restore that the task `plan` of this DAG run has planned.

    :raises PermanentError: `plan` has no result.
    """
    name = context["ti"].xcom_pull(task_ids=PLAN)
    if not name:
        raise PermanentError(
            f"the task `{PLAN}` of this DAG run has no result: clear it, and the tasks behind it; the plan of a "
            "restore is frozen, so this repeats nothing"
        )
    return str(name)
