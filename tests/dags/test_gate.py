"""Who waits for whom. The scheduler's own answers are in tests/integration/test_scheduler.py."""

from typing import Any

import pytest

from kafka_archiver.orchestration.dag_run.gate import runs_in_the_middle

pytestmark = pytest.mark.dags
Run = tuple[str, str | None]


class Database:
    """Runs as (state of the run, state of its `plan`), ours among them; answers as Airflow's API does.

    `meanwhile`: happens before the question of this number.
    """

    dag_id = "archive_orders"

    def __init__(self, *runs: tuple[str, str | None], meanwhile: dict[int, list[Run]] | None = None) -> None:
        self.runs, self.meanwhile, self.asked = list(runs), meanwhile or {}, 0

    def _look(self) -> list[Run]:
        self.runs = self.meanwhile.get(self.asked, self.runs)
        self.asked += 1
        return self.runs

    def get_ti_count(self, dag_id: str, task_ids: list[str], states: list[str]) -> int:
        assert (dag_id, task_ids) == (self.dag_id, ["plan"])
        return sum((plan or "null") in states for _, plan in self._look())

    def get_dr_count(self, dag_id: str, states: list[str]) -> int:
        assert dag_id == self.dag_id
        return sum(run in states for run, _ in self._look())


OURS = ("running", "running")


@pytest.mark.parametrize(
    ("other_runs", "waits"),
    [
        ([], 0),
        ([("running", "success")], 1),
        ([("running", "success"), ("running", "up_for_reschedule")], 1),
        # Others that wait for their turn, as we do.
        ([("running", "up_for_reschedule"), ("running", "up_for_retry"), ("running", "scheduled")], 0),
        # One with a date in the future is running until then, and begins nothing: it may be tomorrow.
        ([("running", None)], 0),
        ([("running", None), ("queued", None), ("queued", None)], 0),
        ([("running", None), ("running", "success")], 1),
        # Ended, whatever became of it.
        ([("failed", "success"), ("failed", "failed"), ("success", "success")], 0),
        # Cleared in the middle, and held back by max_active_runs until we have finished: waiting would last for ever.
        ([("queued", "success")], 0),
        ([("queued", None)], 0),
        ([("queued", None), ("running", "success")], 1),
    ],
)
def test_a_plan_waits_for_the_runs_that_are_at_work(other_runs: list[tuple[str, Any]], waits: int) -> None:
    assert runs_in_the_middle(Database(OURS, *other_runs)) == waits


@pytest.mark.parametrize("question", range(4))
def test_a_run_that_begins_while_we_ask_makes_us_wait_for_nothing_and_does_not_hide_one_at_work(question: int) -> None:
    """It can come no further than to its own `plan`, for ours is running."""
    at_work: Run = ("running", "success")
    begun: list[Run] = [OURS, at_work, ("running", "scheduled")]
    asked = Database(OURS, at_work, ("queued", None), meanwhile={question: begun})
    assert runs_in_the_middle(asked) >= 1
    assert runs_in_the_middle(Database(*begun)) == 1
