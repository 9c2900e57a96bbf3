"""One run of an archive at a time, backfills included.

`max_active_runs` does not bind backfills, and a run is more than one task, so `max_active_tis_per_dag` is not enough.
Runs side by side would do no harm (plans never overlap); one after the other they can be followed.
"""

from typing import Any

PLAN = "plan"
# The states of a task in a run that has begun and has not finished it.
_UNFINISHED = [
    "scheduled", "queued", "running", "restarting", "up_for_retry", "up_for_reschedule", "deferred",
]  # fmt: skip


def runs_in_the_middle(ti: Any) -> int:
    """How many other runs of this DAG have finished their plan and are still at work.

    A run that failed is not at work, and neither is one that was cleared and waits for max_active_runs, or one with a
    date to come.
    Only one `plan` is ever running (max_active_tis_per_dag), so nobody can pass while we ask.
    """
    # In this order: a run that begins between the questions makes us wait once more, not overtake.
    at_plan = ti.get_ti_count(dag_id=ti.dag_id, task_ids=[PLAN], states=_UNFINISHED)
    not_begun = ti.get_ti_count(dag_id=ti.dag_id, task_ids=[PLAN], states=["null"])
    queued = ti.get_dr_count(dag_id=ti.dag_id, states=["queued"])
    running = ti.get_dr_count(dag_id=ti.dag_id, states=["running"])
    # A run with a date to come is running, says Airflow, and begins none of its tasks until then.
    to_come = max(0, int(not_begun) - int(queued))
    return max(0, int(running) - int(at_plan) - to_come)
