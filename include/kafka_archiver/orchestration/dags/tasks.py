"""The five tasks of an archive. Each calls one step and may be cleared alone."""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import PokeReturnValue, get_current_context, task
from airflow.sdk.exceptions import DownstreamTasksSkipped

from kafka_archiver.config import Archive
from kafka_archiver.config.last_known import last_known
from kafka_archiver.jobs.registry import document_type
from kafka_archiver.orchestration.alerts.callbacks import AlertCallbacks
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.dag_run.form import KEYS, request_of
from kafka_archiver.orchestration.dag_run.gate import runs_in_the_middle
from kafka_archiver.orchestration.dag_run.params import (
    Rebuild,
    checked_run,
    fill_start,
    require_known,
    selected_letters,
    takes_new,
    with_params,
)
from kafka_archiver.orchestration.dag_run.schedule import (
    interval_of,
    is_triggered,
    origin_of,
    second_before,
    takes_all,
    triggered_if_cleared,
)
from kafka_archiver.orchestration.dag_run.xcoms import DAMAGE_LEFT, FIGURES, PLAN, work_of
from kafka_archiver.orchestration.dags.assets import (
    announce,
    announce_days,
    announce_partitions,
    days_alias,
    hours_alias,
    hours_asset,
)
from kafka_archiver.orchestration.submit.operator import ArchiveOperator

log = logging.getLogger(__name__)


def archive_tasks(archive: Archive, alert: AlertCallbacks | None = None) -> list[Any]:
    """Make the tasks in their order, not yet chained."""

    # Tasks import their step when they run: it loads Kafka's and S3's clients, and Airflow parses this module all day.
    @task.sensor(
        task_id=PLAN,
        mode="reschedule",
        poke_interval=10,
        exponential_backoff=True,
        max_wait=30,
        timeout=timedelta(days=7).total_seconds(),
        doc_md="Waits for its turn, then freezes the offset ranges of the interval before the first byte is read.",
        # Airflow keeps it while the YAML file is wrong or gone: `orchestration/metadata/undeclared` reads it.
        doc_json=json.dumps(last_known(archive), sort_keys=True),
    )
    def plan() -> PokeReturnValue:
        from kafka_archiver.work import plan as step
        from kafka_archiver.work.plan.idle_policies import refuse_idle_choices

        task_context = get_current_context()
        require_known(task_context["dag_run"].conf, KEYS)
        archive_now, request = with_params(archive, task_context["params"]), request_of(task_context["params"])
        if other_runs := runs_in_the_middle(task_context["ti"]):
            log.info("waiting until %d other run(s) of this archive have closed their hours", other_runs)
            return PokeReturnValue(is_done=False)
        if section := request["rebuild"]:
            since = triggered_if_cleared(task_context["dag_run"])
            return PokeReturnValue(is_done=True, xcom_value=_rebuild(archive_now, section, since).to_dict())
        for name, plan_again in (("dead_letters", _replay_letters), ("repair", _repair)):
            if section := request[name]:
                return PokeReturnValue(is_done=True, xcom_value=plan_again(archive_now, section).to_dict())
        context = open_archive(archive_now)
        if section := request["fill"]:
            # The second before the trigger: a retry finds the same plan.
            interval = second_before(task_context["dag_run"].run_after)
            work = step.plan(context, interval, "backfill", step.Fill(fill_start(section)))
        else:
            interval = _interval(context, archive, task_context["dag_run"])
            refuse_idle_choices(context, interval, request["policies"])
            origin = origin_of(task_context["dag_run"])
            work = step.plan(context, interval, origin, other=second_before(interval.end))
        if work.idle:
            # Saves the processes of three tasks in each hour without records: `close_hours` commits.
            task_context["ti"].xcom_push("return_value", work.to_dict())
            raise DownstreamTasksSkipped(tasks=["archive", "verify", "commit"])  # type: ignore[no-untyped-call]
        return PokeReturnValue(is_done=True, xcom_value=work.to_dict())

    @task(
        task_id="verify",
        # Also after a skipped `archive`: a repaired run has objects, but nothing to read.
        trigger_rule="none_failed",
        doc_md="Checks that the account covers every planned offset, and that every object is as the manifest says.",
    )
    def verify() -> None:
        from kafka_archiver.work import verify as step
        from kafka_archiver.work.backlog import unsettled_runs

        context = open_archive(archive)
        step.verify(context, unsettled_runs(context, work_of(get_current_context()).runs))

    @task(
        task_id="commit",
        # Also after a skipped `verify`.
        trigger_rule="none_failed",
        doc_md="Records that the run is final, then moves the consumer group.",
    )
    def commit() -> None:
        from kafka_archiver.work import commit as step
        from kafka_archiver.work.backlog import unsettled_runs

        context = open_archive(archive)
        step.commit(context, unsettled_runs(context, work_of(get_current_context()).runs))

    @task(
        task_id="close_hours",
        # Also after a skipped `commit`: hours without records close, too.
        trigger_rule="none_failed",
        outlets=[hours_alias(archive), days_alias(archive), hours_asset(archive)],
        # To see which events were emitted already.
        inlets=[hours_alias(archive), days_alias(archive)],
        doc_md="Proves the hours that the run touched, and announces each that is complete as an asset event.",
        on_success_callback=[alert.closed] if alert else None,
    )
    def close_hours() -> None:
        from kafka_archiver.orchestration.dag_run.figures import emit, figures
        from kafka_archiver.orchestration.dag_run.note import succeeded
        from kafka_archiver.work import close_hours as step
        from kafka_archiver.work import commit as committing
        from kafka_archiver.work.backlog import unsettled_runs

        task_context, context = get_current_context(), open_archive(archive)
        work = work_of(task_context)
        runs = work.runs
        if work.idle:
            committing.commit(context, unsettled_runs(context, runs))
        closed = step.close_hours(context, runs)
        mended = 0 if takes_new(task_context["dag_run"].conf) else _recheck(context, runs, task_context["ti"])
        events = announce(archive, closed, task_context)
        announce_partitions(archive, closed, events, task_context)
        log.info("%d events of hours emitted", len(events))
        if days := announce_days(archive, closed, context.ledger.hour, task_context):
            log.info("%d days announced", days)
        totals = figures(context, runs, closed, work.final, mended)
        # For programs, and for the run's note, which the scheduler writes.
        task_context["ti"].xcom_push(FIGURES, totals.model_dump(mode="json"))
        emit(archive.archive, totals)
        log.info("%s", succeeded(totals))

    archived = ArchiveOperator(
        task_id="archive",
        archive=archive,
        document=document_type("archive"),
        doc_md="Reads the planned offsets with Spark and writes the objects; skipped when there are none.",
    )
    return [plan(), archived, verify(), commit(), close_hours()]


def _recheck(context: Any, runs: Sequence[str], instance: Any) -> int:
    """Look again at objects that were written again. Returns how many are whole now."""
    # The audit's readers take longer to import than all the rest of `close_hours`.
    from kafka_archiver.work.repair import recheck_objects

    looked = recheck_objects(context, runs)
    if not looked:
        return 0
    report, mended = looked
    log.info("%s", report.summary)
    instance.xcom_push(DAMAGE_LEFT, len(report.damage))
    return mended


def _interval(context: Any, archive: Archive, dag_run: Any) -> Any:
    """Return a DAG run's interval. A triggered run gets one of its own if its interval is planned already."""
    from kafka_archiver.work.plan import is_planned_since

    interval, moment = interval_of(archive, dag_run), dag_run.logical_date or dag_run.run_after
    if not is_triggered(dag_run):
        return interval
    own = second_before(moment)
    if context.ledger.plan(own.id) or (takes_all(dag_run) and is_planned_since(context, interval, moment) is False):
        return own
    return interval


def _repair(archive: Archive, runs: Sequence[str]) -> Any:
    from kafka_archiver.work import repair as step

    return step.write_again(open_archive(archive), [checked_run(run) for run in runs])


def _replay_letters(archive: Archive, conf: Mapping[str, Any]) -> Any:
    from kafka_archiver.work import dead_letters as step

    selection = selected_letters(conf)
    return step.replay_letters(
        open_archive(archive), step.HourRange(*selection) if isinstance(selection, tuple) else selection
    )


def _rebuild(archive: Archive, conf: Mapping[str, Any], since: datetime | None) -> Any:
    from kafka_archiver.work import rebuild as step

    request = Rebuild.of(conf)
    if request.hour:
        return step.rebuild_hour(open_archive(archive), request.hour, request.keep, request.fewer, since)
    return step.rebuild_run(open_archive(archive), request.run, request.keep, request.fewer, since)
