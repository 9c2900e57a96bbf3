"""The buttons of the task `archive` that lead to its run's plan and manifest, on the archiver's page."""

from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

from kafka_archiver.orchestration.dag_run.addresses import page_of


def address(archive: str, run: str | None, document: str) -> str:
    """Return the address of a run's document; empty without a run."""
    return f"{page_of(archive)}/runs/{quote(run, safe='')}/{document}" if run else ""


class PlanLink(BaseOperatorLink):
    """The button to the plan. Airflow stores the address as an XCom when the task ends."""

    name = "Plan"
    xcom_key = "_link_plan"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the address of the plan of the last run that the task read."""
        return address(operator.archive_name, operator.run, "plan")


class ManifestLink(BaseOperatorLink):
    """The button to the manifest, once there is one."""

    name = "Manifest"
    xcom_key = "_link_manifest"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the address of the manifest of the last run that the task read."""
        return address(operator.archive_name, operator.run, "manifest")
