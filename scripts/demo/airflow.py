"""Airflow as its REST API shows it: one DAG, its runs and their tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scripts.demo.tell import Look, until
from scripts.stack.rest import RestApi, address

TASKS = ("plan", "archive", "verify", "commit", "close_hours")
BUSY = ("queued", "running")


@dataclass(frozen=True, slots=True)
class Task:
    state: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.state} (attempt {self.attempt})" if self.attempt > 1 else self.state


class Dag:
    def __init__(self, url: str, dag_id: str) -> None:
        self.url, self.id = url, dag_id
        self._api = RestApi(url)

    def wait_until_there(self) -> None:
        def look() -> Look[bool]:
            there = self._ask("GET") is not None
            return (True if there else None), f"DAG {self.id} is {'there' if there else 'being parsed'}"

        until(look, seconds=120)

    def pause(self, paused: bool) -> None:
        self._ask("PATCH", body={"is_paused": paused})

    def runs(self) -> list[dict[str, Any]]:
        answer = self._ask("GET", "dagRuns", limit=100, order_by="id")
        return list(answer["dag_runs"]) if answer else []

    def state(self, run: str) -> str:
        return str(self._ask("GET", "dagRuns", run)["state"])

    def tasks(self, run: str) -> dict[str, Task]:
        """Those that have begun, in the order of the DAG."""
        found = {t["task_id"]: t for t in self._ask("GET", "dagRuns", run, "taskInstances")["task_instances"]}
        return {
            name: Task(found[name]["state"], found[name]["try_number"])
            for name in TASKS
            if name in found and found[name]["state"] is not None
        }

    def log(self, run: str, task: str, attempt: int) -> list[str]:
        """What the task logged, a message each."""
        place = ("dagRuns", run, "taskInstances", task, "logs", str(attempt))
        content = self._ask("GET", *place, full_content="true")["content"]
        return [_text(line) for line in content if isinstance(line, dict)]

    def states(self, run: str) -> str:
        """How far a run is, in one line."""
        return " · ".join(f"{name} {task}" for name, task in self.tasks(run).items()) or "the run is queued"

    def forget_runs(self) -> int:
        """Pause, stop what runs, delete all runs. Returns how many there were."""
        self.pause(True)
        runs = [run["dag_run_id"] for run in self.runs()]
        for run in self.runs():
            if run["state"] in BUSY:
                self._ask("PATCH", "dagRuns", run["dag_run_id"], body={"state": "failed"})

        def look() -> Look[bool]:
            busy = [t for run in runs for t in self.tasks(run).values() if t.state in BUSY]
            return (None if busy else True), f"{len(runs)} runs of an earlier demo; {len(busy)} tasks are being stopped"

        if runs:
            until(look, seconds=120)
        for run in runs:
            self._ask("DELETE", "dagRuns", run)
        return len(runs)

    def wait_until_due(self) -> None:
        """Until Airflow has seen that it has no runs any more, and would begin with the last complete interval."""

        def look() -> Look[bool]:
            found = self._ask("GET")
            due = found["next_dagrun_run_after"]
            now = self._api.ask("GET", "/monitor/health")["scheduler"]["latest_scheduler_heartbeat"]
            return (True if due and due <= now else None), f"the next run is due at {due}"

        until(look, seconds=120)

    def asset_events(self, since: datetime) -> list[dict[str, Any]]:
        """What its runs have announced; the latest hundred."""
        latest = self._api.ask("GET", "/assets/events", source_dag_id=self.id, limit=100, order_by="-timestamp")
        events = latest["asset_events"]
        return [event for event in events if datetime.fromisoformat(event["timestamp"]) >= since]

    def _ask(self, method: str, *place: str, body: object = None, **query: Any) -> Any:
        """About the DAG, or what is below it; None when there is no such thing."""
        return self._api.ask(method, address("dags", self.id, *place), body, missing_ok=True, **query)


def _text(line: Mapping[str, Any]) -> str:
    """The message; of an exception what it says."""
    causes = [f"{detail['exc_type']}: {detail['exc_value']}" for detail in line.get("error_detail") or ()]
    return " ".join([str(line.get("event", "")), *causes[:1]])
