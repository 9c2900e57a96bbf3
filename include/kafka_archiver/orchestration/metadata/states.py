"""Airflow's states of DAG runs and tasks."""

# UNFINISHED: of DAG runs. ENDED: of tasks.
UNFINISHED = ("queued", "running")
ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")
