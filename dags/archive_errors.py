"""Shows the errors of wrong YAML files as an import error of this file. Has no DAG.

An import error stops every DAG of its file. So the error is here, and the DAGs of the other archives, in archive.py,
go on.
"""

from pathlib import Path

from airflow.sdk import get_parsing_context

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.dags import archive_dags

# Not when Airflow parses for a task that is about to run.
if get_parsing_context().dag_id is None:
    _, _errors = archive_dags(text=__doc__ or "", job=Path(__file__))
    if _errors:
        raise ConfigError("\n".join(map(str, _errors)))
