"""The DAG that audits an archive."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, Param, chain, get_current_context, task

from kafka_archiver.audit.report import Report, in_words, same_findings
from kafka_archiver.config import Archive
from kafka_archiver.messages.actions import Action, to_dicts
from kafka_archiver.messages.advice import audit_again, audit_dag_id, repair
from kafka_archiver.messages.errors import IntegrityError, PolicyError
from kafka_archiver.model.findings import Finding
from kafka_archiver.orchestration.alerts.callbacks import AlertCallbacks
from kafka_archiver.orchestration.alerts.cause import cut_cause
from kafka_archiver.orchestration.connections import open_archive, open_ledger
from kafka_archiver.orchestration.dag_run.params import require_known
from kafka_archiver.orchestration.dag_run.xcoms import AUDITED
from kafka_archiver.orchestration.dags.archive import dags_beside, default_args, tags, with_params
from kafka_archiver.orchestration.dags.docs import doc_md

log = logging.getLogger(__name__)
# Earlier runs were checked on each day of this window; `airflow archive clean` checks all runs.
WINDOW = timedelta(days=8)
_NAMED = 10
# The documentation that these DAGs share.
_TEXT = """\
Tidies an archive and checks it against its own ledger, once a day.

| Task | What it does |
|---|---|
| `clean_up` | removes what killed attempts and given-up rebuilds have left, once it is a day old |
| `audit` | compares documents, objects, proofs and progress with each other, and the ledger with the brokers |

The task `audit` fails when the archive is damaged. Its error names the damage, and `alerts.on_failure` gets an alert.
The audit writes nothing but its report, `audit.json` in the ledger. Trigger it with `deep` to read every object.
"""


def audit_dags(folder: Path | None = None, only: str | None = None) -> dict[str, DAG]:
    """Make the DAGs that audit, by DAG id. Parameters as of `archive_dags`, which returns the errors."""
    return dags_beside(folder, only, audit_dag_id(""), audit_dag, "audits")


def audit_dag(archive: Archive) -> DAG:
    """Make the DAG that audits one archive. It is on from its beginning: who deletes objects asks nobody before."""
    alert = AlertCallbacks(archive, archives=False) if archive.alerts.all else None
    with DAG(
        dag_id=audit_dag_id(archive.archive),
        description=f"Audits the archive {archive.archive} in {archive.store.url}",
        doc_md=doc_md(archive, _TEXT),
        schedule=archive.audit_schedule and CronTriggerTimetable(archive.audit_schedule, timezone=archive.timezone),
        is_paused_upon_creation=False,
        catchup=False,
        max_active_runs=1,
        tags=[*tags(archive), "audit"],
        default_args=default_args(archive, alert),
        on_failure_callback=alert.run_failed if alert else None,
        auto_register=False,
    ) as dag:
        chain(*audit_tasks(archive, alert))
    return with_params(dag, _params())


def audit_tasks(archive: Archive, alert: AlertCallbacks | None = None) -> list[Any]:
    """Make the tasks in their order, not yet chained."""

    @task(
        task_id="audit",
        # Audit even if clean_up has failed.
        trigger_rule="all_done",
        doc_md="Fails with the findings if the archive is damaged, or if the next run would stop; the ledger has the "
        "whole report.",
        on_success_callback=[alert.audited] if alert else None,
    )
    def audit() -> None:
        from kafka_archiver.audit import inspection as step

        context = get_current_context()
        require_known(context["dag_run"].conf, _params())
        deep, live = context["params"]["deep"], context["params"]["live"]
        ledger = open_ledger(archive)
        store = ledger.store
        cluster = open_archive(archive).cluster if live else None
        report = step.audit(archive, store, datetime.now(UTC), deep, cluster, keyring=ledger.keyring)
        key = step.publish(store, report)
        for finding in report.findings[:1000]:
            log.log(logging.ERROR if finding.severity == "problem" else logging.WARNING, "%s", in_words(finding))
        log.info("%s; the report is %s/%s", report.summary, store.url, key)
        context["ti"].xcom_push(AUDITED, _figures(report, key, deep))
        if report.damage:
            errors = (*report.damage, *report.stops)
            raise IntegrityError(f"{report.summary}. {_named(errors, key)}", actions=_steps(errors))
        if report.stops:
            raise PolicyError(f"{report.summary}. {_named(report.stops, key)}", actions=_steps(report.stops))

    return [clean_up_task(archive), audit()]


def _figures(report: Report, key: str, deep: bool) -> dict[str, Any]:
    """Return the XCom. `damage`, `stops`: the facts of an alert on each; None if there is none to send."""
    archive = report.archive
    repairs = [repair(archive, deep=True) if deep and a.kind == "repair" else a for a in _steps(report.damage)]
    return {
        "verdict": report.verdict,
        "report": key,
        "deep": deep,
        "live": report.live,
        "damage": _alert_facts(report.damage, key, [*repairs, audit_again(archive, deep)]),
        "stops": _alert_facts(report.stops, key, _steps(report.stops)),
        **report.counts.model_dump(),
    }


def _alert_facts(findings: Sequence[Finding], key: str, actions: list[Action]) -> dict[str, Any] | None:
    """Return the cause and the next steps of an alert. `key`: the same in each report that finds the same."""
    if not findings:
        return None
    return {
        "key": same_findings((finding.kind, finding.subject) for finding in findings),
        "cause": cut_cause(_named(findings, key)),
        "actions": to_dicts(actions),
    }


def _steps(findings: Sequence[Finding]) -> list[Action]:
    """Return the actions of their advice, at most three."""
    return list(dict.fromkeys(action for finding in findings for action in finding.actions))[:3]


def _named(findings: Sequence[Finding], key: str) -> str:
    named = " ".join(f"({n}) {in_words(finding)}" for n, finding in enumerate(findings[:_NAMED], start=1))
    return named + (f" … and {len(findings) - _NAMED} more: see {key}" if len(findings) > _NAMED else "")


def _params() -> dict[str, Param]:
    return {
        "deep": Param(
            False,
            type="boolean",
            title="Deep",
            description="Also read every object in full. This takes long.",
        ),
        "live": Param(
            True,
            type="boolean",
            title="Live",
            description="Also compare with the brokers: topic ids, the group's offsets, retention.",
        ),
    }


def clean_up_task(archive: Archive) -> Any:
    """Make the task, not yet chained. It also sweeps the temporary directory of the machine on which it runs."""

    @task(
        task_id="clean_up",
        doc_md="Removes unfinished uploads and objects that are no longer needed, once they are a day old.",
    )
    def clean_up() -> None:
        from kafka_archiver.records.writer.disk import sweep
        from kafka_archiver.work.clean_up import clean_up as step

        moment = datetime.now(UTC)
        step(open_ledger(archive), moment, moment - WINDOW)
        sweep(None)

    return clean_up()
