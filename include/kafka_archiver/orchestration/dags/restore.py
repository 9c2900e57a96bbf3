"""One archive, one DAG that restores: plan → restore → verify → translate_groups."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, chain, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from kafka_archiver.config import Archive
from kafka_archiver.messages.advice import restore_dag_id
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.orchestration.alerts.callbacks import AlertCallbacks
from kafka_archiver.orchestration.connections import open_ledger, target_endpoints, target_registry
from kafka_archiver.orchestration.dag_run.params import require_known
from kafka_archiver.orchestration.dag_run.restore_form import KEYS, restore_params, restore_request
from kafka_archiver.orchestration.dag_run.xcoms import PLAN
from kafka_archiver.orchestration.dags.archive import dags_beside, default_args, tags, with_params
from kafka_archiver.orchestration.dags.docs import doc_md
from kafka_archiver.orchestration.submit.operator import RestoreOperator, restore_of

if TYPE_CHECKING:
    from kafka_archiver.ledger.ledger import Ledger
    from kafka_archiver.model.restore_request import RestoreRequest
    from kafka_archiver.model.restored_schemas import ReframedColumn

log = logging.getLogger(__name__)
# The documentation that these DAGs share.
_TEXT = """\
Restores an archive to Kafka topics, each record exactly once, and proves it. It runs only when somebody triggers it.

| Task | What it does |
|---|---|
| `plan` | looks at the target, and freezes which records go where |
| `restore` | writes them with Spark: one transactional writer for each partition |
| `verify` | reads the target back, and compares every record with the archive |
| `translate_groups` | puts named consumer groups behind the last restored record that each had read |

Every task may be cleared alone, at any time: what is written is never written twice.
"""


def restore_dags(folder: Path | None = None, only: str | None = None) -> dict[str, DAG]:
    """Make the DAGs that restore, by DAG id. Parameters as of `archive_dags`, which returns the errors."""
    return dags_beside(folder, only, restore_dag_id(""), restore_dag, "restores")


def restore_dag(archive: Archive) -> DAG:
    """Make the DAG that restores one archive. It has no schedule, and is on from its beginning."""
    alert = AlertCallbacks(archive, archives=False) if archive.alerts.all else None
    with DAG(
        dag_id=restore_dag_id(archive.archive),
        description=f"Restores the archive {archive.archive} in {archive.store.url} to Kafka",
        doc_md=doc_md(archive, _TEXT),
        schedule=None,
        is_paused_upon_creation=False,
        catchup=False,
        max_active_runs=16,
        tags=[*tags(archive), "restore"],
        # Restores of other topics may run beside each other; of one topic, the later writer stops the earlier.
        default_args={**default_args(archive, alert), "max_active_tis_per_dag": None},
        on_failure_callback=alert.run_failed if alert else None,
        auto_register=False,
    ) as dag:
        chain(*restore_tasks(archive))
    return with_params(dag, restore_params())


def register_schemas(
    ledger: "Ledger", request: "RestoreRequest", params: Mapping[str, Any]
) -> "tuple[ReframedColumn, ...]":
    """Register the schemas of what is restored. Return the columns whose records get other ids."""
    from kafka_archiver.reader.runs import Plans
    from kafka_archiver.records.decode.schema_registry_writer import RegistryWriter
    from kafka_archiver.work.restore.schemas import SchemaRegistration

    writer = RegistryWriter.of(target_registry(params["registry"]), "registry")
    registration = SchemaRegistration(ledger, request.restore, writer)
    document = registration.run(Plans(ledger).all(), request.selection.topics, params["schema_ids"])
    log.info("%d schemas are registered at %s", len(document.schemas), writer.url)
    return document.reframed


def restore_tasks(archive: Archive) -> list[Any]:
    """Make the tasks in their order, not yet chained."""

    @task(
        task_id=PLAN,
        doc_md="Freezes what goes where, once the target is ready for it. A plan of the same name is used again.",
    )
    def plan() -> str:
        from kafka_archiver.kafka.cluster import Cluster
        from kafka_archiver.work.restore.plan import plan_restore
        from kafka_archiver.work.restore.prepare import known_topics, prepare

        context = get_current_context()
        params = context["params"]
        require_known(context["dag_run"].conf, KEYS)
        ledger = open_ledger(archive)
        request = restore_request(params, known_topics(ledger), f"{context['dag_run'].run_after:%Y%m%dT%H%M%SZ}")
        cluster = Cluster(target_endpoints(archive, params["to"]).kafka)
        if params["registry"] and not ledger.restore_plan(request.restore):
            request = replace(request, schema_ids=register_schemas(ledger, request, params))

        def ready(sources: Any, through: int) -> None:
            for finding in prepare(ledger, cluster, request, sources, through, params["create"]):
                log.warning("%s", finding.text)

        frozen = plan_restore(ledger, cluster, request, ready)
        exactly = "" if frozen.exact else "at most "
        log.info("restore %s: %s%s records", frozen.restore, exactly, f"{frozen.records:,}")
        return frozen.restore

    restore = RestoreOperator(
        task_id="restore",
        archive=archive,
        step="write",
        doc_md="Writes what is not written yet, with one transactional writer for each partition.",
    )
    verify = RestoreOperator(
        task_id="verify",
        archive=archive,
        step="verify",
        doc_md="Reads the target back, compares every record with the archive, and writes report and offset map.",
    )

    @task(
        task_id="translate_groups",
        doc_md="Puts the named consumer groups behind the last restored record that each had read; else it is skipped.",
    )
    def translate_groups() -> None:
        from kafka_archiver.work.restore.groups import move_groups
        from kafka_archiver.work.restore.step import frozen_plan

        context = get_current_context()
        params = context["params"]
        if not params["groups"]:
            raise AirflowSkipException("no consumer group is named")
        ledger = open_ledger(archive)
        frozen = frozen_plan(ledger, restore_of(context))
        source = params["groups_from"] and target_endpoints(archive, params["groups_from"]).kafka
        report = move_groups(
            ledger,
            frozen,
            target_endpoints(archive, params["to"]).kafka,
            params["groups"],
            source=source,
            replace=params["replace_groups"],
        )
        for group in report.groups:
            log.info("group %s: %s %s", group.group, group.outcome, group.reason)
        if left := [f"{group.group}: {group.reason}" for group in report.groups if group.outcome in ("live", "other")]:
            raise IntegrityError(f"{len(left)} groups were not moved: {'; '.join(left[:5])}")

    return [plan(), restore, verify, translate_groups()]
