"""A running Airflow through its interfaces: the REST API, the command line, a folder of YAML files."""

import json
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from scripts.stack.airflow import FOREIGN
from scripts.stack.errors import StackError
from scripts.stack.paths import BIN
from scripts.stack.rest import RestApi, address
from tests.support.schedules import require_quiet
from tests.support.waiting import until

DONE = ("success", "failed")


class TaskRun(NamedTuple):
    """The last attempt of one task of a DAG run."""

    run_id: str
    task: str
    state: str | None
    attempt: int
    start: datetime | None
    end: datetime | None


class Airflow:
    """:param settings: the environment variables for its command line. :param others: the folder of DAGs of others."""

    def __init__(self, url: str, archives: Path, settings: dict[str, str], other_dags: Path) -> None:
        self.url, self.archives, self.others = url, archives, other_dags
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)} | settings
        self.request = RestApi(url).ask
        # Airflow's tokens of the files with all archives' DAGs, by the DAGs' prefix, once it has one.
        self._files: dict[str, str] = {}

    def add_archive(self, name: str, yaml: str) -> str:
        """Write its YAML and wait until Airflow has its DAG. Returns the DAG's id.

        Its audits are by hand, unless the YAML has a schedule for them: tests run at night, too.
        """
        by_hand = "" if "audit:" in yaml else "audit: {schedule: null}\n"
        (self.archives / f"{name}.yaml").write_text(f"archive: {name}\n{by_hand}{yaml}")
        return self.parsed(f"archive_{name}")

    def parsed(self, dag: str) -> str:
        """Wait until Airflow has a DAG, and parse its file now. Returns the DAG's id."""
        prefix, looks = dag.partition("_")[0], count()

        def errors_of_file() -> Any:
            # Airflow drops a request that comes while it calls callbacks of that file, so ask again.
            if prefix in self._files and next(looks) % 10 == 0:
                with suppress(StackError):  # a request is pending already
                    self.request("PUT", address("parseDagFile", self._files[prefix]))
            return self.request("GET", f"/dags/{dag}", missing_ok=True)

        model = until(errors_of_file, seconds=90, every=0.5)
        self._files[prefix] = model["file_token"]
        return dag

    def remove_archive(self, name: str) -> None:
        """Pause its DAG and delete its YAML, so that it takes no resources from later tests."""
        self.pause(f"archive_{name}")
        (self.archives / f"{name}.yaml").unlink()

    def pause(self, dag: str, paused: bool = True) -> None:
        if not paused:
            require_quiet(dag, self.request("GET", f"/dags/{dag}")["timetable_summary"])
        self.request("PATCH", f"/dags/{dag}", {"is_paused": paused})

    def add_connection(self, conn_id: str, conn_type: str, **fields: Any) -> None:
        extra = json.dumps(fields.pop("extra", {}))
        self.request(
            "POST", "/connections", {"connection_id": conn_id, "conn_type": conn_type, "extra": extra, **fields}
        )

    def trigger(self, dag: str, logical_date: datetime | None = None, **conf: Any) -> str:
        """Trigger a run. Returns its id."""
        date = logical_date.isoformat() if logical_date else None
        run = self.request("POST", f"/dags/{dag}/dagRuns", {"logical_date": date, "conf": conf})
        return str(run["dag_run_id"])

    def runs(self, dag: str) -> list[dict[str, Any]]:
        return list(self.request("GET", f"/dags/{dag}/dagRuns", limit=100)["dag_runs"])

    def wait_for_runs(self, dag: str, count: int, seconds: float = 240) -> dict[str, str]:
        """The states by run id, once `count` runs have ended."""

        def ended() -> dict[str, str] | None:
            states = {r["dag_run_id"]: r["state"] for r in self.runs(dag)}
            return states if len(states) >= count and all(s in DONE for s in states.values()) else None

        return until(ended, seconds=seconds, every=1) or {}

    def tasks(self, dag: str, run_id: str = "~") -> list[TaskRun]:
        task_instances = self.request("GET", address("dags", dag, "dagRuns", run_id, "taskInstances"), limit=500)[
            "task_instances"
        ]
        return [
            TaskRun(
                t["dag_run_id"], t["task_id"], t["state"], t["try_number"], _time(t["start_date"]), _time(t["end_date"])
            )
            for t in task_instances
        ]

    def log(self, dag: str, run_id: str, task: str, attempt: int = 1) -> str:
        """The task's whole log."""
        return "\n".join(json.dumps(line, ensure_ascii=False) for line in self._lines(dag, run_id, task, attempt))

    def last_line(self, dag: str, run_id: str, task: str, attempt: int = 1) -> str:
        """The last line of the task's log in the UI, which folds groups and shows the stack frames below an error."""
        groups, last = 0, ""
        for line in self._lines(dag, run_id, task, attempt):
            event = line["event"]
            if "::group::" in event:
                groups += 1
            elif "::endgroup::" in event:
                groups = max(0, groups - 1)
            elif not groups:
                frames = [frame["filename"] for error in line.get("error_detail") or () for frame in error["frames"]]
                last = [event, *frames][-1]
        return last

    def _lines(self, dag: str, run_id: str, task: str, attempt: int) -> list[dict[str, Any]]:
        path = address("dags", dag, "dagRuns", run_id, "taskInstances", task, "logs", str(attempt))
        return list(self.request("GET", path, full_content="true")["content"])

    def instance(self, dag: str, run_id: str, task: str) -> dict[str, Any]:
        """The task instance in the REST API."""
        return dict(self.request("GET", address("dags", dag, "dagRuns", run_id, "taskInstances", task)))

    def xcom(self, dag: str, run_id: str, task: str, key: str) -> Any:
        """A value that the task has left."""
        path = address("dags", dag, "dagRuns", run_id, "taskInstances", task, "xcomEntries", key)
        return self.request("GET", path, deserialize="true")["value"]

    def rendered(self, dag: str, run_id: str, task: str) -> dict[str, Any]:
        """The rendered template fields as the UI shows them."""
        return dict(self.instance(dag, run_id, task)["rendered_fields"])

    def asset_events(self, dag: str) -> list[dict[str, Any]]:
        return list(self.request("GET", "/assets/events", source_dag_id=dag, limit=100)["asset_events"])

    def import_errors(self) -> dict[str, str]:
        errors = self.request("GET", "/importErrors", limit=100)["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in errors}

    def command(self, *arguments: str) -> str:
        """The output of `airflow …`."""
        done = subprocess.run(
            [BIN / "airflow", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fails(self, *arguments: str) -> str:
        """All output of `airflow …`, which ends with 1."""
        process = self.start_command(*arguments)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 1, output
        return output

    def start_command(self, *arguments: str) -> "subprocess.Popen[str]":
        """`airflow …`, running."""
        return subprocess.Popen(
            [BIN / "airflow", *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def spans(tasks: Sequence[TaskRun]) -> dict[str, tuple[datetime, datetime]]:
    """From the end of each run's `plan` to the end of its last task."""
    moment = datetime.now(UTC)
    begins = {t.run_id: t.end or moment for t in tasks if t.task == "plan"}
    return {run: (begin, max(t.end or moment for t in tasks if t.run_id == run)) for run, begin in begins.items()}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
