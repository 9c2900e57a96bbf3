"""Environment variables for Airflow, Spark and the user's shell."""

from __future__ import annotations

from pathlib import Path

from scripts.stack.java import Java
from scripts.stack.paths import BIN, LOCAL, ROOT, SPARK_HOME
from scripts.stack.s3 import S3

SPARK_CONF = LOCAL / "spark-conf"


def spark_settings(java: Java) -> dict[str, str]:
    return {
        "JAVA_HOME": str(java.home),
        # Overrides the user's SPARK_HOME, which would take precedence over the environment's spark-submit.
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_CONF_DIR": str(SPARK_CONF),
        "SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData",
        "PYSPARK_PYTHON": str(BIN / "python"),
        "PYSPARK_DRIVER_PYTHON": str(BIN / "python"),
    }


def airflow_settings(home: Path, url: str, archives: Path) -> dict[str, str]:
    """Settings that the server and the command line must share."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW_URL": url,
        "ARCHIVER_CONFIG_DIR": str(archives),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # Only for a local stack: everybody who can reach the port is an administrator.
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    }


def client_settings(bootstrap_servers: str, s3: S3) -> dict[str, str]:
    """Variables for ordinary Kafka and S3 clients. Airflow does not get them: it has connections."""
    return {
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        "S3_ENDPOINT_URL": s3.endpoint_url,
        "AWS_ENDPOINT_URL_S3": s3.endpoint_url,
        "AWS_ACCESS_KEY_ID": s3.owner.access_key,
        "AWS_SECRET_ACCESS_KEY": s3.owner.secret_key,
        "AWS_DEFAULT_REGION": s3.region,
    }
