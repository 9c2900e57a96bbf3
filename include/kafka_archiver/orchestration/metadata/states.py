"""Airflow's words for how far a run or a task is."""

# The states of DAG runs that have not ended, and of tasks that have.
UNFINISHED = ("queued", "running")
ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")
