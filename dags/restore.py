"""Restores an archive to Kafka topics, each record exactly once, and proves it. It runs only when somebody triggers it.

| Task | What it does |
|---|---|
| `plan` | looks at the target, and freezes which records go where |
| `restore` | writes them with Spark: one transactional writer for each partition |
| `verify` | reads the target back, and compares every record with the archive |
| `translate_groups` | puts named consumer groups behind the last restored record that each had read |

Every task may be cleared alone, at any time: what is written is never written twice.
"""

from pathlib import Path

from airflow.sdk import get_parsing_context

from kafka_archiver.orchestration.dags import restore_dags

# archive_errors.py beside this file shows the errors of wrong YAML files.
globals().update(
    restore_dags(
        text=__doc__ or "",
        job=Path(__file__).parents[1] / "spark_jobs" / "archive.py",
        only=get_parsing_context().dag_id,
    )
)
