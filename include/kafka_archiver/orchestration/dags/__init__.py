"""The DAGs of the archives, for DAG files: those in dags/, and a user's own of two lines."""

import logging
from pathlib import Path

from airflow.sdk import DAG, get_parsing_context

from kafka_archiver.config.archives import WrongFileError
from kafka_archiver.messages.advice import WATCHDOG
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.dags.archive import archive_dags
from kafka_archiver.orchestration.dags.audit import audit_dags
from kafka_archiver.orchestration.dags.restore import restore_dags
from kafka_archiver.orchestration.dags.watchdog import watchdog_dag

__all__ = ["archive_dags", "audit_dags", "dags", "raise_errors", "restore_dags", "watchdog_dag"]

log = logging.getLogger(__name__)


def dags(folder: Path | None = None) -> dict[str, DAG]:
    """Make the DAGs that Airflow asks a DAG file for, by DAG id: three for each archive, and the watchdog.

    A wrong YAML file stops no other archive. Its error is in the DAG processor's log, and in `raise_errors`.

    :param folder: of the YAML files; None: as `config_folder` has it.
    :raises ConfigError: the folder cannot be read, and the environment describes no archive.
    """
    only = get_parsing_context().dag_id
    by_id, errors = archive_dags(folder, only)
    for error in errors:
        if not by_id and not isinstance(error, WrongFileError):
            raise error
        log.error("%s", error)
    by_id |= audit_dags(folder, only) | restore_dags(folder, only)
    if only in (None, WATCHDOG):
        by_id[WATCHDOG] = watchdog_dag(folder)
    return by_id


def raise_errors(folder: Path | None = None) -> None:
    """Raise the errors of wrong YAML files, for a DAG file without DAGs: Airflow shows them as its import error.

    An import error stops every DAG of its file, so the DAGs are in another file.

    :raises ConfigError: all errors, a line each.
    """
    # Not when Airflow parses for a task that is about to run.
    if get_parsing_context().dag_id is None and (errors := archive_dags(folder)[1]):
        raise ConfigError("\n".join(map(str, errors)))
