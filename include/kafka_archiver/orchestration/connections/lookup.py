"""Find Airflow's connections, in tasks and in commands. Errors have the command that adds a missing connection."""

import json
import os
import shlex
import sys
import time
from typing import NamedTuple

from airflow.sdk import Connection
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.messages.secrets import masked

# Seconds until a connection that Airflow does not know is asked for again.
AGAIN_SECONDS = 5.0
_EXAMPLES = {
    "kafka": ("--conn-extra", '{"bootstrap.servers": "broker:9092"}'),
    "aws": ("--conn-login", "KEY_ID", "--conn-password", "SECRET", "--conn-extra", '{"region_name": "eu-west-1"}'),
    "spark": ("--conn-host", "spark://master", "--conn-port", "7077"),
    "generic": ("--conn-password", "SECRET"),
    "wasb": ("--conn-login", "ACCOUNT", "--conn-password", "KEY"),
    "http": ("--conn-host", "https://example.com/path"),
    "smtp": ("--conn-host", "smtp.example.com", "--conn-port", "465", "--conn-extra",
             '{"from_email": "airflow@example.com", "to_email": "on-call@example.com"}'),
}  # fmt: skip
# Of a type that another distribution's store needs.
_LOGIN = ("--conn-login", "NAME", "--conn-password", "SECRET")
_NOTES = {
    "aws": "\n(without login and password the credentials of the machine or pod are used)",
    "generic": "\n(SECRET: 32 random bytes in base64, as from `openssl rand -base64 32`)",
}


class NamedConnection(NamedTuple):
    """A connection that an archive names. `key`: where in the YAML; `kinds`: the connection types it may have."""

    conn_id: str
    key: str
    kinds: tuple[str, ...]

    def __str__(self) -> str:
        return f"Airflow connection {self.conn_id!r} ({self.key})"

    @property
    def command(self) -> str:
        """The command that adds the connection."""
        kind = self.kinds[0]
        return shlex.join(
            ["airflow", "connections", "add", self.conn_id, "--conn-type", kind, *_EXAMPLES.get(kind, _LOGIN)]
        )


def find_connection(reference: NamedConnection) -> Connection:
    """Return the connection.

    :raises ConfigError: it does not exist, or is of another type.
    :raises TransientError: it was not found, and a secrets backend may be down.
    """
    if not _in_task():
        # Outside a task Airflow reads the metadata database only with this variable, as its own `connections get` does.
        os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    try:
        connection = _get(reference.conn_id)
    except AirflowNotFoundException as error:
        message = f"there is no {reference}; add it with:\n  {reference.command}{_NOTES.get(reference.kinds[0], '')}"
        if conf.get("secrets", "backend", fallback=None) or conf.get("workers", "secrets_backend", fallback=None):
            # Airflow hides the errors of a secrets backend: a backend that is down looks like a missing secret.
            raise TransientError(f"{message}\nor check that Airflow's secrets backend answers") from error
        raise ConfigError(message) from error
    if connection.conn_type not in reference.kinds:
        kinds = " or ".join(repr(kind) for kind in reference.kinds)
        raise ConfigError(
            f"{reference} is of type {connection.conn_type!r}; expected {kinds}, as from:\n  {reference.command}"
        )
    return connection


def _get(conn_id: str) -> Connection:
    """Return the connection. In a task, "there is none" is asked again: Airflow's API may say so while it starts."""
    try:
        connection: Connection = Connection.get(conn_id)
    except AirflowNotFoundException:
        if not _in_task():
            raise
        time.sleep(AGAIN_SECONDS)
        connection = Connection.get(conn_id)
    return connection


def _in_task() -> bool:
    return hasattr(sys.modules.get("airflow.sdk.execution_time.task_runner"), "SUPERVISOR_COMMS")


def mask_secrets(properties: dict[str, str]) -> dict[str, str]:
    """Make logs mask the secrets of these properties, and return the properties."""
    for secret in masked(properties):
        mask_secret(secret)
        mask_secret(json.dumps(secret)[1:-1])
    return properties
