"""Airflow: scheduler, dag-processor, triggerer and API server, with this checkout's DAGs and plugins."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from scripts.stack.errors import StackError
from scripts.stack.java import find_java
from scripts.stack.paths import BIN, ROOT, TEMPORARY
from scripts.stack.ports import HOST
from scripts.stack.process import NO_MORE, START_SECONDS, Service
from scripts.stack.rest import RestApi
from scripts.stack.settings import airflow_settings, spark_settings
from scripts.stack.spark_conf import write_spark_conf

# Variables of the user's own Airflow, Spark or Python, which must not reach ours.
FOREIGN = ("AIRFLOW", "AWS_", "KAFKA_", "PYTHON", "SPARK_", "PYSPARK_", "S3_")
MUST_BE_HEALTHY = ("metadatabase", "scheduler", "dag_processor", "triggerer")


@dataclass(frozen=True)
class AirflowPorts:
    BASE: ClassVar[int] = 18_080
    web: int
    task_logs: int
    triggerer_logs: int


@dataclass(frozen=True)
class Connection:
    """A connection as in Airflow's REST API, with `extra` as a mapping."""

    connection_id: str
    conn_type: str
    extra: Mapping[str, str]
    host: str | None = None
    login: str | None = None
    password: str | None = None

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "extra": json.dumps(self.extra)}


class Airflow(Service):
    title = "Airflow"
    grace = 10

    def __init__(
        self,
        directory: Path,
        ports: AirflowPorts,
        archives: Path,
        connections: list[Connection],
        more: Mapping[str, str] = NO_MORE,
    ) -> None:
        """:param directory: AIRFLOW_HOME. :param archives: the directory of the archives' YAML files.
        :param more: further environment variables of the server; they override ours.
        """
        self.ports = ports
        self._more = more
        self.url = f"http://{HOST}:{ports.web}"
        self._api = RestApi(self.url)
        self.archives = archives
        self.connections = connections
        # Ignore heartbeats from before this start.
        self._launched = datetime.min.replace(tzinfo=UTC)
        super().__init__(directory, self.url)

    def settings(self) -> dict[str, str]:
        """The environment variables for Airflow's command line."""
        return airflow_settings(self.directory, self.url, self.archives)

    def launch(self) -> None:
        for directory in (self.directory, ROOT / "dags", ROOT / "plugins", self.archives):
            directory.mkdir(parents=True, exist_ok=True)
        write_spark_conf()
        self._launched = datetime.now(UTC)
        self._run([BIN / "airflow", "standalone"], self._environment())

    def problem(self) -> str | None:
        """Return which part does not work: each is a child of the process that was started, and may end alone."""
        try:
            socket.create_connection((HOST, self.ports.web), timeout=5).close()
        except OSError:
            return "the API server does not answer"
        return self._why_not_healthy()

    def wait(self) -> None:
        self._wait_until(self._why_not_healthy, seconds=START_SECONDS)
        # Overwritten at each start: PORT_OFFSET may have changed.
        entities = [connection.document() for connection in self.connections]
        action = {"action": "create", "action_on_existence": "overwrite", "entities": entities}
        answer = self._api.ask("PATCH", "/connections", {"actions": [action]})
        if sorted(answer["create"]["success"]) != sorted(c.connection_id for c in self.connections):
            raise StackError(f"Airflow did not accept the connections; it answered {answer}")

    def _why_not_healthy(self) -> str | None:
        try:
            health = self._api.ask("GET", "/monitor/health", login=False)
        except StackError as error:
            return str(error)
        for part in MUST_BE_HEALTHY:
            if health[part]["status"] != "healthy":
                return f"the {part} is {health[part]['status']}"
            beat = health[part].get(f"latest_{part}_heartbeat")
            if beat is not None and datetime.fromisoformat(beat) < self._launched:
                return f"the {part} has not reported since the start"
        return None

    def _environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        local = f"{HOST},localhost"
        return {
            **own,
            **spark_settings(find_java()),
            **self.settings(),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "include"),
            "TMPDIR": str(TEMPORARY),
            "NO_PROXY": f"{own['NO_PROXY']},{local}" if own.get("NO_PROXY") else local,
            "AIRFLOW__API__HOST": HOST,
            "AIRFLOW__API__PORT": str(self.ports.web),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(self.ports.task_logs),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(self.ports.triggerer_logs),
            # Airflow sees a changed DAG or archive within seconds, not minutes.
            "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "2",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
            # Each running task may have a Spark driver: a limit for laptops.
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
            **self._more,
        }
