"""A Spark standalone cluster on this machine: a master, and workers of one core each."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import psutil

from scripts.stack.airflow import FOREIGN
from scripts.stack.java import find_java
from scripts.stack.paths import SPARK_HOME
from scripts.stack.ports import HOST, free_ports
from scripts.stack.process import Service, marked


@dataclass(frozen=True)
class DaemonPorts:
    BASE: ClassVar[int] = 18_120
    rpc: int
    web: int


class _Daemon(Service):
    """:param zone: its TZ, which all that it starts inherits."""

    name: ClassVar[str]

    def __init__(self, directory: Path, zone: str = "UTC") -> None:
        self.ports = free_ports(DaemonPorts)
        self.zone = zone
        super().__init__(directory, f"spark://{HOST}:{self.ports.rpc}")

    def ports_needed(self) -> Mapping[str, int]:
        return asdict(self.ports)

    def arguments(self) -> Sequence[str]:
        return ()

    def launch(self) -> None:
        temporary = self.directory / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        ports = ("--port", str(self.ports.rpc), "--webui-port", str(self.ports.web))
        self._run(
            [SPARK_HOME / "bin" / "spark-class", self.name, "--host", HOST, *ports, *self.arguments()],
            {
                **clean_environment(self.zone, self.directory),
                "TMPDIR": str(temporary),
                "SPARK_LOCAL_DIRS": str(self.directory / "local"),
                "SPARK_DAEMON_MEMORY": "192m",
                "SPARK_DAEMON_JAVA_OPTS": f"-XX:-UsePerfData -XX:+UseSerialGC -Djava.io.tmpdir={temporary}",
                "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            },
        )


class Master(_Daemon):
    title = "Spark's master"
    name = "org.apache.spark.deploy.master.Master"

    def workers(self) -> dict[int, str]:
        """The state of each worker by the port it listens on; of one that came twice, the last."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{HOST}:{self.ports.web}/json/", timeout=10) as answer:
            found = sorted(json.load(answer)["workers"], key=lambda w: str(w["id"]))
        return {w["port"]: w["state"] for w in found}

    def wait(self) -> None:
        def why_not() -> str | None:
            try:
                self.workers()
            # Its web server runs before the page is there, and answers with another one.
            except (OSError, ValueError) as error:
                return str(error)
            return None

        self._wait_until(why_not, seconds=60)


class Worker(_Daemon):
    """One core, for one executor at a time."""

    title = "Spark's worker"
    name = "org.apache.spark.deploy.worker.Worker"

    def __init__(self, directory: Path, zone: str, master: Master) -> None:
        self._master = master
        super().__init__(directory, zone)

    def arguments(self) -> Sequence[str]:
        work = ("--work-dir", str(self.directory / "work"))
        return ("--cores", "1", "--memory", "600m", *work, self._master.address)

    def wait(self) -> None:
        self._wait_until(lambda: None if self.alive() else "the master does not have it", seconds=60)

    def alive(self) -> bool:
        """Whether the master counts on it."""
        return self._master.workers().get(self.ports.rpc) == "ALIVE"

    def processes(self) -> list[psutil.Process]:
        """It, its executor and the executor's Python."""
        return list(marked(self.directory))

    def logs(self) -> str:
        """What it and its executors have said."""
        files = [self.log, *sorted((self.directory / "work").glob("*/*/std*"))]
        return "".join(file.read_text(errors="replace") for file in files)


def clean_environment(zone: str, conf: Path) -> dict[str, str]:
    """This process's environment without anything that leads to a checkout or to settings of Spark."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {
        **own,
        "TZ": zone,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_CONF_DIR": str(conf),
        # Also what the web UIs listen on: by default they would on every address.
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData",
    }
