"""The folder of the archives' YAML files."""

import os
from pathlib import Path

from airflow.configuration import conf

import kafka_archiver
from kafka_archiver.config.declarations import FOLDER


def config_folder() -> Path:
    """Return the folder that ARCHIVER_CONFIG_DIR names; else `archives` in a checkout, or in Airflow's DAGs folder.

    The DAG processor, the workers, the API server and the commands must all see the same archives.
    """
    if named := os.environ.get(FOLDER):
        return Path(named)
    beside_package = Path(kafka_archiver.__file__).parents[1] / "archives"
    if beside_package.is_dir():
        return beside_package
    return Path(conf.get_mandatory_value("core", "dags_folder"), "archives")
