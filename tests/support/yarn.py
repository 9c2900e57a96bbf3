"""A real YARN on one machine: a ResourceManager and a NodeManager; the first use downloads them to .local/yarn."""

import fcntl
import json
import os
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from scripts.stack.jars import retrieve
from scripts.stack.java import find_java
from scripts.stack.paths import LOCAL, SPARK_HOME, TEMPORARY
from scripts.stack.ports import HOST, free_ports
from scripts.stack.process import MARK, Service
from tests.support import quick

MODULES = Path(__file__).with_name("yarn_ivy.xml")
SETTINGS = Path(retrieve.__code__.co_filename).with_name("ivysettings.xml")
_YARN = "org.apache.hadoop.yarn.server"


def jars() -> Path:
    """The folder of the daemons' jars; downloads them on first use."""
    home = LOCAL / "yarn"
    stamp = home / "ivy.xml"
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    with (LOCAL / "yarn.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_bytes() != MODULES.read_bytes():
            retrieve(find_java(), MODULES, SETTINGS, ["jar", "bundle"], home, LOCAL / "yarn.log")
            stamp.write_bytes(MODULES.read_bytes())
    return home / "yarn"


@dataclass(frozen=True)
class YarnPorts:
    BASE: ClassVar[int] = 18_150
    clients: int
    scheduler: int
    tracker: int
    administration: int
    web: int


class _Daemon(Service):
    name: ClassVar[str]

    def __init__(self, directory: Path, conf: Path, address: str) -> None:
        self._conf = conf
        super().__init__(directory, address)

    def launch(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        options = ["-Xmx256m", *quick.JAVA]
        path = os.pathsep.join(map(str, (self._conf, jars() / "*", SPARK_HOME / "jars" / "*")))
        temporary = f"-Djava.io.tmpdir={self.directory}"
        command = [find_java().executable, *options, temporary, "-cp", path, f"{_YARN}.{self.name}"]
        self._run(command, os.environ)


class ResourceManager(_Daemon):
    title = "YARN's resource manager"
    name = "resourcemanager.ResourceManager"

    def __init__(self, directory: Path, conf: Path, ports: YarnPorts) -> None:
        self.ports = ports
        super().__init__(directory, conf, f"{HOST}:{ports.clients}")

    def nodes(self) -> int:
        """The number of active nodes."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{HOST}:{self.ports.web}/ws/v1/cluster/metrics", timeout=10) as answer:
            return int(json.load(answer)["clusterMetrics"]["activeNodes"])

    def wait(self) -> None:
        self._wait_for(self.nodes, OSError, ValueError, seconds=120)


class NodeManager(_Daemon):
    title = "YARN's node manager"
    name = "nodemanager.NodeManager"

    def __init__(self, directory: Path, conf: Path, manager: ResourceManager) -> None:
        self._manager = manager
        super().__init__(directory, conf, manager.address)

    def ports_needed(self) -> Mapping[str, int]:
        return {}

    def wait(self) -> None:
        self._wait_until(lambda: None if self._manager.nodes() else "the manager has no node", seconds=120)


class Yarn:
    """:ivar conf: HADOOP_CONF_DIR for clients. :ivar local, logs: the node's directories on disk."""

    def __init__(self, directory: Path) -> None:
        self.conf, self.local, self.logs = (directory / name for name in ("conf", "local", "logs"))
        for folder in (self.conf, self.local, self.logs):
            folder.mkdir(parents=True)
        ports = free_ports(YarnPorts)
        manager = "yarn.resourcemanager"
        nodes = "yarn.nodemanager"
        settings = {
            f"{manager}.address": f"{HOST}:{ports.clients}",
            f"{manager}.scheduler.address": f"{HOST}:{ports.scheduler}",
            f"{manager}.resource-tracker.address": f"{HOST}:{ports.tracker}",
            f"{manager}.admin.address": f"{HOST}:{ports.administration}",
            f"{manager}.webapp.address": f"{HOST}:{ports.web}",
            f"{nodes}.address": f"{HOST}:0",
            f"{nodes}.localizer.address": f"{HOST}:0",
            f"{nodes}.webapp.address": f"{HOST}:0",
            f"{nodes}.local-dirs": self.local,
            f"{nodes}.log-dirs": self.logs,
            # Files on disk stay, so that tests can read them.
            f"{nodes}.delete.debug-delay-sec": 600,
            # With our mark, so that its child processes end with it.
            f"{nodes}.env-whitelist": f"JAVA_HOME,{MARK}",
            f"{nodes}.vmem-check-enabled": "false",
            f"{nodes}.pmem-check-enabled": "false",
            f"{nodes}.resource.memory-mb": 4096,
            f"{nodes}.disk-health-checker.enable": "false",
            # YARN takes no directory of a disk that is fuller, even when it checks no disk's health.
            f"{nodes}.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
            "yarn.scheduler.minimum-allocation-mb": 256,
        }
        queues = "yarn.scheduler.capacity"
        self._write("yarn-site", settings)
        self._write("core-site", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": directory / "tmp"})
        self._write(
            "capacity-scheduler",
            {
                f"{queues}.root.queues": "default",
                f"{queues}.root.default.capacity": 100,
                f"{queues}.maximum-am-resource-percent": 1,
            },
        )
        self.manager = ResourceManager(directory / "manager", self.conf, ports)
        self.node = NodeManager(directory / "node", self.conf, self.manager)

    def start(self) -> None:
        self.manager.start()
        self.node.start()

    def stop(self, grace: float | None = None) -> None:
        self.node.stop(grace)
        self.manager.stop(grace)

    def _write(self, name: str, settings: Mapping[str, Any]) -> None:
        text = "".join(f"<property><name>{k}</name><value>{v}</value></property>\n" for k, v in settings.items())
        (self.conf / f"{name}.xml").write_text(f"<configuration>\n{text}</configuration>\n")
