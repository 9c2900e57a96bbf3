"""The commands against a real Airflow, broker and S3 server. Their intervals are empty: no test here needs Spark."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scripts.stack.kafka import Kafka
from tests.support.airflow import Airflow
from tests.support.topics import new_topic

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def name(airflow: Airflow) -> Iterator[str]:
    """An archive of a topic that does not exist yet; its DAG is paused."""
    name = f"x{uuid.uuid4().hex[:8]}"
    dag = airflow.add_archive(
        name, f"source: {{topics: [t-{name}]}}\nstore: {{url: 's3://archive/{name}'}}\nretries: 0\n"
    )
    airflow.pause(dag)
    yield name
    airflow.remove_archive(name)


def backfill(airflow: Airflow, name: str, *words: str) -> tuple[int, list[str]]:
    """The exit code, and the lines of output."""
    process = airflow.start_command("dags", "backfill", *words, f"archive_{name}")
    output, _ = process.communicate(timeout=300)
    return process.returncode, output.splitlines()


def ask(airflow: Airflow, *words: str) -> Any:
    return json.loads(airflow.command("archive", *words, "--output", "json"))


def test_backfill_waits_for_the_scheduler(airflow: Airflow, kafka: Kafka, name: str) -> None:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    first, second = (now - timedelta(hours=hours) for hours in (5, 4))
    one = ("-s", first.isoformat())
    both = ("-s", first.isoformat(), "-e", second.isoformat())

    code, output = backfill(airflow, name, *one)
    assert (code, len(output)) == (1, 1)
    assert f"airflow dags unpause archive_{name}" in output[0]
    assert airflow.runs(f"archive_{name}") == []

    airflow.pause(f"archive_{name}", False)
    code, output = backfill(airflow, name, *one)
    assert code == 1
    assert f"1/1  {first:%Y-%m-%dT%H:%M:%SZ}  failed" in output[1]
    assert output[2].endswith(" has ended: 1 failed.")

    new_topic(kafka.bootstrap_servers, name=f"t-{name}")
    # Right after the first: Airflow itself would still take that one for active.
    code, output = backfill(airflow, name, *both, "--rerun-failed-tasks", "--run-backwards")
    assert code == 0, output
    assert [line.split()[:3] for line in output[1:3]] == [
        ["1/2", f"{second:%Y-%m-%dT%H:%M:%SZ}", "success"],
        ["2/2", f"{first:%Y-%m-%dT%H:%M:%SZ}", "success"],
    ]
    assert output[0].endswith(": 2 runs, at most 1 at a time.")

    code, output = backfill(airflow, name, *both)
    assert (code, output) == (0, ["Nothing to run. Existing runs that stay as they are: 2 success."])

    # What it did, as the archiver's own commands tell it.
    runs = {run["interval_start"]: run for run in ask(airflow, "runs", name)}
    for start in first, second:
        run = runs[f"{start:%Y-%m-%dT%H:%M:%SZ}"]
        assert (run["origin"], run["state"], run["offsets"]) == ("backfill", "settled", 0)
    [status] = ask(airflow, "status", name)
    assert (status["lag"], status["unfinished"], len(status["partitions"])) == (0, [], 1)
    shown = ask(airflow, "show", name, f"{first:%Y%m%dT%H%M%SZ}")
    assert (shown["state"], shown["manifest"]["objects"]) == ("settled", [])
    assert ask(airflow, "plan", name, "--interval-start", second.isoformat())["exists"]
