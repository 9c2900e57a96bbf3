"""Copies Kafka topics to an object store, filed by hour, so that the copy can be proved complete.

| Task | What it does |
|---|---|
| `plan` | freezes which offsets this run archives, before the first byte is read |
| `archive` | reads them with Spark and writes the objects and the manifest |
| `verify` | checks the account of every offset, and every object, against the store |
| `commit` | makes the run final, then moves the consumer group |
| `close_hours` | proves the hours that are complete now, and announces each as an asset event |

Every task may be cleared alone, at any time: the plan is never made anew, and the same plan gives the same bytes.
The next run finishes a failed interval. Two runs of one archive never work at the same time.
"""

from pathlib import Path

from airflow.sdk import get_parsing_context

from kafka_archiver.orchestration.dags import archive_dags

# A wrong YAML file has no DAG here; archive_errors.py beside this file shows its error.
_dags, _ = archive_dags(
    text=__doc__ or "",
    job=Path(__file__).parents[1] / "spark_jobs" / "archive.py",
    only=get_parsing_context().dag_id,
)
globals().update(_dags)
