"""The DAG of an archive: tasks, order, limits, schedule, documentation."""

import re
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import CronDataIntervalTimetable, ExceptionRetryPolicy, RetryAction
from airflow.sdk.exceptions import AirflowException
from airflow.serialization.serialized_objects import DagSerialization

from kafka_archiver.config.decoding import Decoding
from kafka_archiver.messages.errors import ConfigError, IntegrityError, PermanentError, PolicyError, TransientError
from kafka_archiver.model.schemas import Schema
from kafka_archiver.orchestration.alerts.callbacks import AlertCallbacks
from kafka_archiver.orchestration.alerts.cause import leave_cause
from tests.dags.conftest import MakeArchive, dag_of

pytestmark = pytest.mark.dags
TASKS = ["plan", "archive", "verify", "commit", "close_hours"]


def test_the_five_tasks_follow_each_other(archive: MakeArchive) -> None:
    dag = dag_of(archive())
    assert dag.dag_id == "archive_orders"
    assert sorted(dag.task_ids) == sorted(TASKS)
    for task, following in zip(TASKS, [*TASKS[1:], None], strict=True):
        assert dag.get_task(task).downstream_task_ids == ({following} if following else set())


def test_a_skipped_archive_leads_on_and_a_failed_one_does_not(archive: MakeArchive) -> None:
    dag = dag_of(archive())
    rules = {task: dag.get_task(task).trigger_rule.value for task in TASKS}
    assert rules == dict.fromkeys(TASKS[:2], "all_success") | dict.fromkeys(TASKS[2:], "none_failed")


def test_runs_wait_for_each_other_at_their_plan_and_not_for_a_place(archive: MakeArchive) -> None:
    """One that was started with a date in the future has a place until then: the only one would be the others' end."""
    dag = dag_of(archive())
    assert dag.max_active_runs == 16
    assert {task.max_active_tis_per_dag for task in dag.tasks} == {1}
    # Waiting must not hold a worker.
    assert dag.get_task("plan").mode == "reschedule"


def test_it_runs_on_data_intervals_and_does_not_catch_up(archive: MakeArchive) -> None:
    dag = dag_of(archive("schedule: '@hourly'\ntimezone: Europe/Berlin\n"))
    assert isinstance(dag.timetable, CronDataIntervalTimetable)
    assert (dag.timetable.expression, str(dag.timetable.timezone)) == ("0 * * * *", "Europe/Berlin")
    assert dag.catchup is False
    assert type(dag_of(archive("schedule: null\n")).timetable).__name__ == "NullTimetable"


def test_tags_owner_and_description(archive: MakeArchive) -> None:
    dag = dag_of(archive("tags: [shop, orders]\nowner: data-team\ndescription: Every order\n"))
    assert dag.tags == {"archiver", "orders", "shop"}
    assert dag.owner == "data-team"
    assert dag.description == "Every order"
    assert dag_of(archive()).description == "Archives orders to s3://bucket/lake"


def test_a_topic_may_have_a_longer_name_than_a_tag(archive: MakeArchive) -> None:
    dag = dag_of(archive(name="t" * 190))
    assert dag.tags == {"archiver", "t" * 100}


def test_the_documentation_lists_every_setting(archive: MakeArchive) -> None:
    text = dag_of(archive("policies: {lost_offsets: record_loss}\nowner: x|y\n")).doc_md or ""
    assert text.startswith("Copies Kafka topics")
    assert "| `policies.lost_offsets` | `record_loss` | YAML |" in text
    # What the YAML leaves open, as it is in use.
    assert "| `source.group` | `archiver-orders` | default |" in text
    assert "| `store.codec` | `gzip` | default |" in text
    assert "| `source.reader` | `auto (native)` | default |" in text
    assert "| `health.max_age` | `3h` | default |" in text
    # As YAML has them, not Python.
    assert "| `health.max_audit_age` | `3d` | default |" in text
    assert not re.search(r"`(True|False|None|\d+:\d\d:\d\d|\d+ days?.*)`", text)
    blocks = archive().store.model_copy(update={"format": "block_gzip"})
    with_options = dag_of(archive().model_copy(update={"store": blocks})).doc_md or ""
    assert "| `store.options.block_bytes` | `67108864` | default |" in with_options
    assert "| `source.topics` | `orders` |" in text
    assert "| `store.content` | `value` |" in text
    assert "| `spark.conf` | — |" in text
    assert "| `owner` | `x∣y` |" in text
    assert "`s3://bucket/lake/_ledger/orders/`" in text
    assert "`archive_orders_hours`" in text
    text = '{"type": "object",\n"properties": {}}'
    value = Decoding.model_validate({"decode": "json", "schema": Schema(kind="JSON", text=text)})
    documented = archive()
    dag = dag_of(documented.model_copy(update={"source": documented.source.model_copy(update={"value": value})}))
    assert '| `source.value.schema` | `{"type": "object", "properties": {}}` |' in (dag.doc_md or "")


def test_the_scheduler_reads_back_what_the_dag_says(archive: MakeArchive) -> None:
    read: Any = DagSerialization.from_dict(DagSerialization.to_dict(dag_of(archive())))
    assert read.max_active_runs == 16
    assert read.catchup is False
    for task in TASKS:
        assert read.get_task(task).max_active_tis_per_dag == 1
        assert read.get_task(task).retries == 3
        assert read.get_task(task).retry_exponential_backoff == 3
        assert read.get_task(task).has_retry_policy


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (PermanentError("x"), RetryAction.FAIL),
        (ConfigError("x"), RetryAction.FAIL),
        (PolicyError("x"), RetryAction.FAIL),
        (IntegrityError("x"), RetryAction.FAIL),
        (TransientError("x"), RetryAction.DEFAULT),
        (AirflowException("x"), RetryAction.DEFAULT),
        (OSError("x"), RetryAction.DEFAULT),
    ],
)
def test_only_what_a_person_has_to_mend_is_not_tried_again(
    archive: MakeArchive, error: Exception, action: RetryAction
) -> None:
    for task in dag_of(archive("retries: 5\n")).tasks:
        assert isinstance(task.retry_policy, ExceptionRetryPolicy)
        assert task.retry_policy.evaluate(error, 1, 5).action is action
        assert task.retries == 5
        assert task.retry_delay == timedelta(seconds=20)


def test_a_run_may_be_given_another_limit(archive: MakeArchive) -> None:
    param = dag_of(archive()).params.get_param("max_records")
    assert param.value == 50_000_000
    assert "outage" in (param.description or "")
    assert param.resolve(7) == 7
    with pytest.raises(Exception, match="less than the minimum"):
        param.resolve(0)


def test_only_archives_with_alerts_tell_of_failures_and_all_leave_the_cause_at_the_end_of_the_log(
    archive: MakeArchive,
) -> None:
    quiet, loud = dag_of(archive()), dag_of(archive("alerts: {on_failure: [ops]}\n"))
    assert all(task.on_failure_callback == [leave_cause] for task in quiet.tasks)
    assert not quiet.on_failure_callback
    for task in loud.tasks:
        failure_callback, cause_callback = task.on_failure_callback
        assert (failure_callback.__func__, cause_callback) == (AlertCallbacks.task_failed, leave_cause)
    assert loud.on_failure_callback
    assert all(task.on_retry_callback[-1] is leave_cause for task in [*quiet.tasks, *loud.tasks])
    # What is over, late or lost is known when hours are closed.
    assert {task.task_id for task in loud.tasks if task.on_success_callback} == {"close_hours"}
    assert not any(task.on_success_callback for task in quiet.tasks)


def test_an_archive_with_a_greatest_age_has_a_deadline(archive: MakeArchive) -> None:
    def deadlines(more: str) -> list[timedelta]:
        dag = dag_of(archive(f"alerts: {{on_failure: [ops], max_age: 2h}}\n{more}"))
        return [deadline.interval for deadline in dag.deadline or ()]

    # The last hour is complete an hour before a run of the hour after it is queued.
    assert deadlines("") == [timedelta(hours=1)]
    assert deadlines("schedule: '*/15 * * * *'\n") == [timedelta(hours=1)]
    assert deadlines("schedule: null\n") == []
    assert not dag_of(archive("alerts: {on_failure: [ops]}\n")).deadline
    with pytest.raises(
        ValueError, match=r"`alerts.max_age`: expected more than the schedule's longest interval, 3:00:00"
    ):
        deadlines("schedule: '0 */3 * * *'\n")
