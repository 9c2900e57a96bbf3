"""Who waits for whom. The scheduler's own answers are in tests/integration/test_scheduler.py."""

from collections import Counter
from typing import Any

import pytest

from kafka_archiver.orchestration.gate import runs_in_the_middle

pytestmark = pytest.mark.dags


class Database:
    """Runs as (state of the run, state of its `plan`), ours among them; answers as Airflow's API does."""

    dag_id = "archive_orders"

    def __init__(self, *runs: tuple[str, str | None]) -> None:
        self.runs = list(runs)
        self.asked: Counter[str] = Counter()

    def get_ti_count(self, dag_id: str, task_ids: list[str], states: list[str]) -> int:
        assert (dag_id, task_ids) == (self.dag_id, ["plan"])
        self.asked["tasks"] += 1
        return sum(plan in states for _, plan in self.runs)

    def get_dr_count(self, dag_id: str, states: list[str]) -> int:
        assert (dag_id, states) == (self.dag_id, ["running"])
        assert self.asked["tasks"] == 1, "the runs are counted last: one that begins meanwhile must not be overtaken"
        return sum(run in states for run, _ in self.runs)


OURS = ("running", "running")


@pytest.mark.parametrize(
    ("others", "waits"),
    [
        ([], 0),
        ([("running", "success")], 1),
        ([("running", "success"), ("running", "up_for_reschedule")], 1),
        # Others that wait for their turn, as we do.
        ([("running", "up_for_reschedule"), ("running", "up_for_retry"), ("running", "scheduled")], 0),
        # A run that is being created: its tasks come to be a moment later.
        ([("running", None)], 1),
        # Ended, whatever became of it.
        ([("failed", "success"), ("failed", "failed"), ("success", "success")], 0),
        # Cleared in the middle, and held back by max_active_runs until we have finished: waiting would last for ever.
        ([("queued", "success")], 0),
        ([("queued", None)], 0),
    ],
)
def test_a_plan_waits_for_the_runs_that_are_at_work(others: list[tuple[str, Any]], waits: int) -> None:
    assert runs_in_the_middle(Database(OURS, *others)) == waits
