"""Airflow's callbacks of an archive's DAGs: they send its alerts."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kafka_archiver.config import Archive
from kafka_archiver.messages.actions import from_dicts
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.orchestration.alerts import state_texts
from kafka_archiver.orchestration.alerts.failed_run import failed
from kafka_archiver.orchestration.alerts.message import Kind, Message, State
from kafka_archiver.orchestration.alerts.reporting import IN_DAG_PROCESSOR, Incident, IncidentReporter, Incidents
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.dag_run.figures import Figures
from kafka_archiver.orchestration.dag_run.note import succeeded
from kafka_archiver.orchestration.dag_run.params import takes_new
from kafka_archiver.orchestration.dag_run.schedule import origin_of
from kafka_archiver.orchestration.dag_run.xcoms import AUDITED, DAMAGE_LEFT, FIGURES

log = logging.getLogger(__name__)
# The XCom with the attempt whose alert was sent.
ALERTED = "alerted"


class AlertCallbacks:
    """The alerts of one archive. The public methods are callbacks, or parts of them.

    Airflow calls a task's callback in the task's own process, which knows the error. If that process was killed, the
    callback is not called. So the DAG run's callback, in the DAG processor, sends the alerts that were not sent.

    :param archives: whether the DAG archives (True) or audits (False).
    """

    def __init__(self, archive: Archive, archives: bool = True) -> None:
        self._archive, self._name, self._archives = archive, archive.archive, archives
        self._reporter = IncidentReporter(archive.archive, archive.alerts, Incidents())

    def task_failed(self, context: Mapping[str, Any]) -> None:
        """Send the alert of a task that failed for good: Airflow's callback."""
        if "exception" not in context:
            # In the DAG processor, because the task's machine stopped reporting: `run_failed` follows.
            return
        self._failed(context)
        ti = context["ti"]
        ti.xcom_push(ALERTED, ti.try_number)

    def run_failed(self, context: Mapping[str, Any]) -> None:
        """Send the alert that no task has sent: Airflow's callback of the DAG, with the task that failed last."""
        ti, self._reporter.seconds = context.get("ti"), IN_DAG_PROCESSOR
        if ti is not None and ti.xcom_pull(task_ids=ti.task_id, key=ALERTED, map_indexes=-1) != ti.try_number:
            self._failed(context)

    def task_retried(self, context: Mapping[str, Any]) -> None:
        """Send one alert, for the first attempt: Airflow's callback of each task that is tried again."""
        if self._archive.alerts.on_retry and "exception" in context and context["ti"].try_number == 1:
            self._reporter.send(failed(self._archive, context, self._archives).message("retry", "event"))

    def closed(self, context: Mapping[str, Any]) -> None:
        """End incidents, and look at lag, age and losses: the callback of `close_hours`."""
        ti, moment = context["ti"], datetime.now(UTC)
        xcom = ti.xcom_pull(task_ids=ti.task_id, key=FIGURES, map_indexes=-1)
        if xcom is None:
            return
        figures, kind = Figures.model_validate(xcom), self._kind(context)
        if kind != "asked":
            self._works_again(kind, succeeded(figures), ti)
        self._reporter.resend("loss")
        self._lost(figures, ti)
        if ti.xcom_pull(task_ids=ti.task_id, key=DAMAGE_LEFT, map_indexes=-1) == 0:
            text = state_texts.whole_again(self._name, figures, ti.log_url)
            self._reporter.report("audit", None, "", lambda *_: text)
        if kind == "failure":
            self.late(figures.closed_until, moment, ti.log_url)
            self._lagging(ti)

    def audited(self, context: Mapping[str, Any]) -> None:
        """End incidents: the callback of `audit` when it found neither damage nor a state that stops the next run."""
        ti = context["ti"]
        audit = ti.xcom_pull(task_ids=ti.task_id, key=AUDITED, map_indexes=-1) or {}
        self._works_again("check", "", ti)
        self._report_audit(audit, ti)

    def late(self, until: datetime | None, moment: datetime, link: str, begun: datetime | None = None) -> None:
        """Send an alert if the last closed hour ended too long ago, or no longer does.

        :param until: the end of the last closed hour; None if there is none.
        :param begun: the start of the first interval, if there is none.
        """
        limit, since = self._archive.alerts.max_age, until or begun
        if limit is None or since is None:
            return

        def tell(state: State, _: Incident | None) -> Message:
            return state_texts.late_hour(self._name, state, until, moment, limit, link)

        self._reporter.report("late_hour", "late" if moment - since > limit else None, "", tell)

    def _failed(self, context: Mapping[str, Any]) -> None:
        failure, kind = failed(self._archive, context, self._archives), self._kind(context)
        audit = self._audit_of(context) if kind == "check" else None
        if audit:
            self._works_again("check", "", context["ti"])
            self._report_audit(audit, context["ti"])
        elif kind == "asked":
            self._reporter.send(failure.message(kind, "event"))
        else:
            self._reporter.report(kind, failure.key, failure.reason, lambda state, _: failure.message(kind, state))

    def _kind(self, context: Mapping[str, Any]) -> Kind:
        if not self._archives:
            return "check"
        if origin_of(context["dag_run"]) == "backfill":
            return "backfill"
        return "failure" if takes_new(context["dag_run"].conf) else "asked"

    def _audit_of(self, context: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the figures of the audit, if it found damage or a state that stops the next run."""
        ti = context["ti"]
        audit = ti.xcom_pull(task_ids=ti.task_id, key=AUDITED, map_indexes=-1) if ti.task_id == "audit" else None
        return audit if audit and (audit["damage"] or audit["stops"]) and "exception" in context else None

    def _report_audit(self, audit: Mapping[str, Any], ti: Any) -> None:
        """Alert on damage, and on a state that stops the next run: two incidents, because they end apart."""
        self._of_audit("audit", audit, audit.get("damage") or {}, ti)
        if audit.get("live"):
            self._of_audit("stop", audit, audit.get("stops") or {}, ti)

    def _of_audit(self, kind: Kind, audit: Mapping[str, Any], finding: Mapping[str, Any], ti: Any) -> None:
        cause, steps = str(finding.get("cause", "")), from_dicts(finding.get("actions"))
        report = str(audit.get("report", ""))

        def tell(state: State, _: Incident | None) -> Message:
            return state_texts.of_audit(kind, self._name, state, cause, report, steps, ti.log_url)

        self._reporter.report(kind, finding.get("key"), cause, tell)

    def _works_again(self, kind: Kind, done: str, ti: Any) -> None:
        def tell(_: State, before: Incident | None) -> Message:
            assert before is not None
            return state_texts.works_again(self._name, kind, before, done, ti.log_url, ti.run_id)

        self._reporter.report(kind, None, "", tell)

    def _lost(self, figures: Figures, ti: Any) -> None:
        """Alert on a loss. It has no end: it stays an open incident, so that a cleared task sends no second alert."""
        if figures.lost:
            key, text = f"{figures.runs[-1]}: {figures.lost}", state_texts.loss(self._name, figures, ti.log_url)
            self._reporter.report("loss", key, "", lambda *_: text)

    def _lagging(self, ti: Any) -> None:
        most = self._archive.alerts.max_lag_records
        if most is None:
            return
        from kafka_archiver.state.status.condition import lag_of, observe

        try:
            context = open_archive(self._archive)
            waiting = lag_of(context, observe(context))
        except ArchiverError as error:
            log.warning("the lag is unknown, so no alert depends on it: %s", error)
            return

        def tell(state: State, _: Incident | None) -> Message:
            return state_texts.lag(self._name, state, waiting, most, ti.log_url)

        self._reporter.report("lag", "lag" if waiting > most else None, "", tell)
