"""One run of an archive at a time, backfills included.

Airflow's limits are not enough: `max_active_runs` does not bind backfills, and `max_active_tis_per_dag` limits tasks,
not runs. Parallel runs would do no harm (plans never overlap), but their logs are easier to read one after the other.
"""

from typing import Any

from kafka_archiver.orchestration.dag_run.xcoms import PLAN

# The states of a begun, unfinished task.
_UNFINISHED = [
    "scheduled", "queued", "running", "restarting", "up_for_retry", "up_for_reschedule", "deferred",
]  # fmt: skip


def runs_in_the_middle(ti: Any) -> int:
    """Return the number of other runs of this DAG that have finished their plan and are still at work.

    Not counted: failed runs, cleared runs that wait for max_active_runs, and runs with a date in the future.
    Only one `plan` is ever running (max_active_tis_per_dag), so no other run can overtake during the queries.
    """
    # The order matters: a run that begins between two queries makes us wait once more, not overtake.
    at_plan = ti.get_ti_count(dag_id=ti.dag_id, task_ids=[PLAN], states=_UNFINISHED)
    not_begun = ti.get_ti_count(dag_id=ti.dag_id, task_ids=[PLAN], states=["null"])
    queued = ti.get_dr_count(dag_id=ti.dag_id, states=["queued"])
    running = ti.get_dr_count(dag_id=ti.dag_id, states=["running"])
    # Airflow shows a run with a date in the future as running, and starts none of its tasks until then.
    future_runs = max(0, int(not_begun) - int(queued))
    return max(0, int(running) - int(at_plan) - future_runs)
