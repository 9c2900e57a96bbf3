"""Kafka topics copied to an object store, exactly once, filed by hour, with a proof of completeness.

`open_archive` reads an archive in a program: see docs/howto/read.md. `airflow_dags` is for Airflow's DAG files: see
docs/install/index.md.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from kafka_archiver.reader.archive import ArchiveReader

__all__ = ["__version__", "airflow_dag_errors", "airflow_dags", "open_archive"]
__version__ = "1.0.0"


def open_archive(
    url: str,
    archive: str,
    options: Mapping[str, str] | None = None,
    master_keys: Mapping[str, str] | None = None,
) -> "ArchiveReader":
    """Open an archive to read it; see `reader.archive.open_archive`."""
    # Imported late: every process of Airflow imports this package.
    from kafka_archiver.reader import archive as reader

    return reader.open_archive(url, archive, options, master_keys)


def airflow_dags(folder: str | Path | None = None) -> "dict[str, DAG]":
    """Make all DAGs of the archives, for a DAG file: `globals().update(airflow_dags())`.

    Airflow takes a file for a DAG file if it contains `airflow` and `dag`: with this name, it does.

    :param folder: of the YAML files. None: the folder in ARCHIVER_CONFIG_DIR, or `archives` in Airflow's DAGs folder.
    :raises ConfigError: the folder cannot be read. Wrong YAML files are in the log, and in `airflow_dag_errors`.
    """
    with _airflow_extra():
        from kafka_archiver.orchestration import dags
    return dags.dags(Path(folder) if folder else None)


def airflow_dag_errors(folder: str | Path | None = None) -> None:
    """Raise the errors of wrong YAML files, for a second DAG file, without DAGs: they become its import error.

    :param folder: as of `airflow_dags`.
    :raises ConfigError: all errors.
    """
    with _airflow_extra():
        from kafka_archiver.orchestration import dags
    dags.raise_errors(Path(folder) if folder else None)


@contextmanager
def _airflow_extra() -> Iterator[None]:
    """Say what to install if a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}: pip install 'kafka-archiver[airflow]'", name=error.name) from error
