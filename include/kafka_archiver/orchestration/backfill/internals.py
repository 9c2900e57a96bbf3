"""The functions of `airflow.models.backfill` that `airflow backfill create` itself calls.

They are private to Airflow. Every use goes through this module, which notices a version that has changed them before
anything is created.
"""

from inspect import signature
from types import ModuleType

from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.orchestration.backfill.request import Request

_PARAMETERS = {
    "_get_info_list": ("dag", "from_date", "to_date", "reverse"),
    "_do_dry_run": ("dag_id", "from_date", "to_date", "reverse", "reprocess_behavior", "dag_run_conf", "session"),
    "_create_backfill": (
        "dag_id", "from_date", "to_date", "max_active_runs", "reverse", "dag_run_conf", "triggering_user_name",
        "reprocess_behavior", "run_on_latest_version",
    ),
}  # fmt: skip
_CLASSES = ("AlreadyRunningBackfill", "Backfill", "BackfillDagRun", "NoBackfillRunsToCreate", "ReprocessBehavior")


def airflow_backfill(request: Request) -> ModuleType:
    """Return the module, after checking the names and parameters that we use.

    :raises PermanentError: this Airflow has changed them; the message has the supported command for the request.
    """
    try:
        from airflow.models import backfill

        for name in _CLASSES:
            getattr(backfill, name)
        for name, parameters in _PARAMETERS.items():
            signature(getattr(backfill, name)).bind(**dict.fromkeys(parameters))
    except (ImportError, AttributeError, TypeError) as error:
        from airflow import __version__

        raise PermanentError(
            f"`airflow dags backfill` does not support Airflow {__version__} ({error}). Use: {request.equivalent}"
        ) from error
    return backfill
