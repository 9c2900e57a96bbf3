"""The five tasks of an archive. Each calls one step and may be cleared alone."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import PokeReturnValue, get_current_context, task

from kafka_archiver.config import Archive
from kafka_archiver.orchestration.assets import announce, hours_alias
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.gate import PLAN, runs_in_the_middle
from kafka_archiver.orchestration.operators import ArchiveOperator, with_params, work_of
from kafka_archiver.orchestration.params import Rebuild
from kafka_archiver.orchestration.schedule import interval_of, origin_of

log = logging.getLogger(__name__)


def archive_tasks(archive: Archive, job: Path) -> list[Any]:
    """The tasks in their order, not yet chained.

    :param job: spark_jobs/archive.py.
    """

    # What a task calls is imported when it runs: it loads Kafka's and S3's clients, and Airflow parses this all day.
    @task.sensor(
        task_id=PLAN,
        mode="reschedule",
        poke_interval=10,
        exponential_backoff=True,
        max_wait=30,
        timeout=timedelta(days=7).total_seconds(),
        doc_md="Waits for its turn, then freezes the offset ranges of the interval before the first byte is read.",
    )
    def plan() -> PokeReturnValue:
        from kafka_archiver.steps import choices
        from kafka_archiver.steps import plan as step

        now = get_current_context()
        archive_now = with_params(archive, now["params"])
        if others := runs_in_the_middle(now["ti"]):
            log.info("%d other run of this archive is at work: waiting until it has closed its hours", others)
            return PokeReturnValue(is_done=False)
        if wanted := now["params"]["rebuild"]:
            return PokeReturnValue(is_done=True, xcom_value=_rebuild(archive_now, wanted).to_dict())
        interval, origin = interval_of(archive, now["dag_run"]), origin_of(now["dag_run"])
        context = _open(archive_now)
        choices.refuse_idle_choices(context, interval, now["params"]["policies"])
        work = step.plan(context, interval, origin, datetime.now(UTC))
        return PokeReturnValue(is_done=True, xcom_value=work.to_dict())

    @task(
        task_id="verify",
        # Nothing to read is no reason to leave the run uncommitted; a failure is.
        trigger_rule="none_failed",
        doc_md="Checks that the account covers every planned offset, and that every object is there as promised.",
    )
    def verify() -> None:
        from kafka_archiver.steps import verify as step

        step.verify(_open(archive), work_of(get_current_context()).runs)

    @task(task_id="commit", doc_md="Records that the run is final, then moves the consumer group.")
    def commit() -> None:
        from kafka_archiver.steps import commit as step

        step.commit(_open(archive), work_of(get_current_context()).runs, datetime.now(UTC))

    @task(
        task_id="close_hours",
        outlets=[hours_alias(archive)],
        doc_md="Proves the hours that the run touched, and announces each that is complete as an asset event.",
    )
    def close_hours() -> None:
        from kafka_archiver.steps import close_hours as step

        now = get_current_context()
        announce(archive, step.close_hours(_open(archive), work_of(now).runs), now["outlet_events"])

    archived = ArchiveOperator(
        task_id="archive",
        archive=archive,
        job=job,
        doc_md="Reads the planned offsets with Spark and writes the objects; skipped when there are none.",
    )
    return [plan(), archived, verify(), commit(), close_hours()]


def _open(archive: Archive) -> Any:
    from kafka_archiver.steps.context import Context

    return Context.open(archive, endpoints(archive))


def _rebuild(archive: Archive, wanted: Mapping[str, Any]) -> Any:
    from kafka_archiver.steps import rebuild as step

    wish, now = Rebuild.of(wanted), datetime.now(UTC)
    if wish.hour:
        return step.rebuild_hour(_open(archive), wish.hour, now, wish.keep)
    return step.rebuild_run(_open(archive), wish.run, now, wish.keep)
