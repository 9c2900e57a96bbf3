"""A real Spark standalone cluster: a master and two workers, each with its own time zone and directory.

Its Python has our dependencies but not our package, which comes with each job, as on machines without a checkout.
"""

import json
import os
import subprocess
import urllib.request
import venv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import psutil

from kafka_archiver.jobs.endpoints import ENDPOINTS
from kafka_archiver.orchestration.submit.package import build_package
from scripts.stack.airflow import FOREIGN
from scripts.stack.java import find_java
from scripts.stack.paths import SPARK_HOME
from scripts.stack.ports import HOST, free_ports
from scripts.stack.process import Service, end, marked
from tests.support import quick
from tests.support.archiver import Archiver

# In November, neither is a whole number of hours from UTC or from the other.
ZONES = ("Pacific/Chatham", "America/St_Johns")
DRIVER_ZONE = "Asia/Kathmandu"


@dataclass(frozen=True)
class DaemonPorts:
    BASE: ClassVar[int] = 18_120
    rpc: int
    web: int


class _Daemon(Service):
    """:param zone: its TZ, which its child processes inherit."""

    name: ClassVar[str]

    def __init__(self, directory: Path, zone: str = "UTC") -> None:
        self.ports = free_ports(DaemonPorts)
        self.zone = zone
        super().__init__(directory, f"spark://{HOST}:{self.ports.rpc}")

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
                "SPARK_DAEMON_JAVA_OPTS": " ".join((*quick.JAVA, f"-Djava.io.tmpdir={temporary}")),
                "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            },
        )


class Master(_Daemon):
    title = "Spark's master"
    name = "org.apache.spark.deploy.master.Master"

    def workers(self) -> dict[int, str]:
        """The state of each worker by its port; the last one, if a worker has registered twice."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{HOST}:{self.ports.web}/json/", timeout=10) as answer:
            workers = sorted(json.load(answer)["workers"], key=lambda w: str(w["id"]))
        return {w["port"]: w["state"] for w in workers}

    def wait(self) -> None:
        # ValueError: the web server starts before this page exists, and answers with another page.
        self._wait_for(self.workers, OSError, ValueError, seconds=60)


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
        self._wait_until(lambda: None if self.alive() else "the master does not have this worker", seconds=60)

    def alive(self) -> bool:
        """Return True if the master has it as ALIVE."""
        return self._master.workers().get(self.ports.rpc) == "ALIVE"

    def processes(self) -> list[psutil.Process]:
        """The worker, its executor and the executor's Python."""
        return list(marked(self.directory))

    def logs(self) -> str:
        """The output of the worker and its executors."""
        files = [self.log, *sorted((self.directory / "work").glob("*/*/std*"))]
        return "".join(file.read_text(errors="replace") for file in files)


def clean_environment(zone: str, conf: Path) -> dict[str, str]:
    """Return this process's environment without variables that name a checkout or Spark's settings."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {
        **own,
        "TZ": zone,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_CONF_DIR": str(conf),
        # Also for the web UIs, which by default listen on every address.
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LAUNCHER_OPTS": " ".join(quick.JAVA),
    }


class SparkCluster:
    """Start with `running`. `sockets`: a short path for the sockets between Spark's JVMs and Pythons."""

    def __init__(self, directory: Path, sockets: str) -> None:
        self.directory = directory
        self.sockets = sockets
        self.master = Master(directory / "master")
        self.workers = [Worker(directory / f"worker{n}", zone, self.master) for n, zone in enumerate(ZONES)]
        self.python = directory / "python" / "bin" / "python"

    @contextmanager
    def running(self) -> Iterator["SparkCluster"]:
        """Run the cluster, and remove everything at the end."""
        self.directory.mkdir(parents=True)
        self._make_python()
        try:
            self.master.start()
            for worker in self.workers:
                worker.launch()
            for worker in self.workers:
                worker.wait()
            yield self
        finally:
            end(self.directory, grace=0)
            for service in (self.master, *self.workers):
                service.stop(grace=0)

    def _make_python(self) -> None:
        """A Python with our dependencies from a .pth file. Nested .pth files do not count, so it lacks our package."""
        venv.create(self.directory / "python", symlinks=True, with_pip=False)
        [packages] = (self.directory / "python" / "lib").glob("python3*/site-packages")
        (packages / "dependencies.pth").write_text(f"{Path(psutil.__file__).parents[1]}\n")
        look = (
            "import pyspark, pyarrow, confluent_kafka, importlib.util as u; exit(bool(u.find_spec('kafka_archiver')))"
        )
        subprocess.run(
            [self.python, "-c", look], check=True, env=clean_environment("UTC", self.directory), cwd=self.directory
        )

    def heal(self) -> None:
        """Restart workers that are not alive."""
        for worker in self.workers:
            if not (worker.running() and worker.alive()):
                worker.stop(grace=0)
                worker.start()


@dataclass
class ClusterArchiver(Archiver):
    """An archive whose job runs on a cluster, submitted from a machine in a third time zone."""

    cluster: SparkCluster = field(kw_only=True)

    def command(self, runs: Iterable[str]) -> list[str]:
        java = " ".join((*quick.JAVA, f"-Djava.io.tmpdir={self.cluster.directory}"))
        conf = {
            "spark.executor.memory": "600m",
            "spark.executor.defaultJavaOptions": java,
            "spark.python.unix.domain.socket.dir": self.cluster.sockets,
            # The job waits for both executors.
            "spark.cores.max": "2",
            "spark.scheduler.minRegisteredResourcesRatio": "1",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            # An executor without a heartbeat for so long counts as dead.
            "spark.executor.heartbeatInterval": "1s",
            "spark.storage.blockManagerHeartbeatTimeoutMs": "20s",
            "spark.network.timeoutInterval": "1s",
            **self.spark_conf,
        }
        submit, *arguments = super().command(runs)
        arguments[arguments.index("--master") + 1] = self.cluster.master.address
        options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        return [submit, "--py-files", str(build_package(self.directory)), *options, *arguments]

    def environment(self, **extra: str) -> dict[str, str]:
        endpoints = super().environment()[ENDPOINTS]
        python: dict[str, Any] = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), str(self.cluster.python))
        clean = clean_environment(DRIVER_ZONE, self.cluster.directory)
        return {**clean, **python, ENDPOINTS: endpoints, **extra}
