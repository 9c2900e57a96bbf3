"""A real Spark standalone cluster: a master and two workers, each in a time zone and a directory of its own.

Its Python has our dependencies but not our package: that comes with each job, as it does where nothing is checked out.
"""

import subprocess
import venv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from kafka_archiver.job import ENDPOINTS
from kafka_archiver.orchestration.package import build_package
from scripts.stack.process import end
from scripts.stack.spark_cluster import Master, Worker, clean_environment
from tests.support.archiver import Archiver

# Neither is UTC, nor a whole number of hours from UTC or from the other, in November.
ZONES = ("Pacific/Chatham", "America/St_Johns")
DRIVER_ZONE = "Asia/Kathmandu"


class SparkCluster:
    """Start with `running`. `sockets`: a short path, for those between Spark's JVMs and its Pythons."""

    def __init__(self, directory: Path, sockets: str) -> None:
        self.directory = directory
        self.sockets = sockets
        self.master = Master(directory / "master")
        self.workers = [Worker(directory / f"worker{n}", zone, self.master) for n, zone in enumerate(ZONES)]
        self.python = directory / "python" / "bin" / "python"

    @contextmanager
    def running(self) -> Iterator["SparkCluster"]:
        """It runs, and nothing of it is left afterwards."""
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
        """Our dependencies come by a path file, in which Python does not look for further ones: so without our code."""
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
        """Both workers are there again, whatever was done to them."""
        for worker in self.workers:
            if not (worker.running() and worker.alive()):
                worker.stop(grace=0)
                worker.start()


@dataclass
class ClusterArchiver(Archiver):
    """An archive whose job runs on a cluster, as if submitted from a machine in yet another time zone."""

    cluster: SparkCluster = field(kw_only=True)

    def command(self, runs: Iterable[str]) -> list[str]:
        java = f"-XX:-UsePerfData -XX:+UseSerialGC -Djava.io.tmpdir={self.cluster.directory}"
        conf = {
            "spark.executor.memory": "600m",
            "spark.executor.defaultJavaOptions": java,
            "spark.python.unix.domain.socket.dir": self.cluster.sockets,
            # Nothing begins before both executors are there.
            "spark.cores.max": "2",
            "spark.scheduler.minRegisteredResourcesRatio": "1",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            # An executor that has been silent for so long is taken for dead.
            "spark.executor.heartbeatInterval": "1s",
            "spark.storage.blockManagerHeartbeatTimeoutMs": "20s",
            "spark.network.timeoutInterval": "1s",
            **self.spark_conf,
        }
        submit, *others = super().command(runs)
        others[others.index("--master") + 1] = self.cluster.master.address
        options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        return [submit, "--py-files", str(build_package(self.directory)), *options, *others]

    def environment(self, **extra: str) -> dict[str, str]:
        endpoints = super().environment()[ENDPOINTS]
        python: dict[str, Any] = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), str(self.cluster.python))
        clean = clean_environment(DRIVER_ZONE, self.cluster.directory)
        return {**clean, **python, ENDPOINTS: endpoints, **extra}
