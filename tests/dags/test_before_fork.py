"""The imports of Airflow's services before they fork a process for a task or a DAG file."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_archiver.orchestration.before_fork import MODULES
from tests.dags.conftest import MINIMAL

pytestmark = pytest.mark.dags
# First a task's process of another executor. Then `airflow scheduler`, whose job asks the listeners before it starts
# its executor, and a task of an archive, for which nothing is left to import.
PROGRAM = """
import os, sys
from airflow.jobs.job import Job
from airflow.sdk.execution_time.task_runner import TaskRunnerMarker
from kafka_archiver.orchestration.before_fork import on_starting
on_starting(TaskRunnerMarker())
modules = set(sys.modules)
print("task", *modules)
Job()
print("service", len(os.listdir("/proc/self/task")), *set(sys.modules) - modules)
modules = set(sys.modules)
from kafka_archiver import airflow_dags
assert "archive_orders" in airflow_dags()
print("later", *set(sys.modules) - modules)
"""


def test_a_service_imports_what_tasks_need_and_has_a_single_thread_to_fork(archives: Path) -> None:
    (archives / "orders.yaml").write_text(MINIMAL.format(name="orders"))
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    words = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    needed = {*MODULES, "boto3", "confluent_kafka"} - {"airflow.dag_processing.dagbag"}
    assert not needed & {*words["task"]}
    threads, *modules = words["service"]
    assert (threads, needed - {*modules}) == ("1", set())
    assert words["later"] == []
