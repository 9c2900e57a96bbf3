"""The task that removes leftovers of killed attempts and of given-up rebuilds."""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import task

from kafka_archiver.config import Archive
from kafka_archiver.orchestration.connections import open_ledger

# Earlier runs were checked on each day of this window; `airflow archive clean` checks all runs.
WINDOW = timedelta(days=8)


def clean_up_task(archive: Archive) -> Any:
    """Make the task, not yet chained. It also sweeps the temporary directory of the machine on which it runs."""

    @task(
        task_id="clean_up",
        doc_md="Removes unfinished uploads and objects that are no longer needed, once they are a day old.",
    )
    def clean_up() -> None:
        from kafka_archiver.records.writer.disk import sweep
        from kafka_archiver.work.clean_up import clean_up as step

        moment = datetime.now(UTC)
        step(open_ledger(archive), moment, moment - WINDOW)
        sweep(None)

    return clean_up()
