"""The task that removes what killed attempts and given-up rebuilds have left."""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import task

from kafka_archiver.config import Archive
from kafka_archiver.orchestration.connections import open_ledger

# A run that has ended so long ago was looked at every day since; `airflow archive clean` looks at all.
WINDOW = timedelta(days=8)


def clean_up_task(archive: Archive) -> Any:
    """The task, not yet chained. Also sweeps the temporary directory of the machine it happens to run on."""

    @task(
        task_id="clean_up",
        doc_md="Removes unfinished uploads and objects that nothing needs any more, once they are a day old.",
    )
    def clean_up() -> None:
        from kafka_archiver.steps.clean_up import clean_up as step
        from kafka_archiver.writer.disk import sweep

        now = datetime.now(UTC)
        step(open_ledger(archive), now, now - WINDOW)
        sweep(None)

    return clean_up()
