"""A real schema registry (Apicurio, with Confluent's API); the first use downloads it to .local/registry."""

import fcntl
import json
import os
import tarfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from scripts.stack.jars import retrieve
from scripts.stack.java import find_java
from scripts.stack.paths import LOCAL, TEMPORARY
from scripts.stack.ports import HOST
from scripts.stack.process import Service

MODULES = Path(__file__).with_name("registry_ivy.xml")
SETTINGS = Path(__file__).with_name("registry_ivysettings.xml")


def program() -> Path:
    """The registry's jar; downloads and unpacks it on first use."""
    home = LOCAL / "registry"
    stamp = home / "ivy.xml"
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    with (LOCAL / "registry.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_bytes() != MODULES.read_bytes():
            retrieve(find_java(), MODULES, SETTINGS, ["tar.gz"], home, LOCAL / "registry.log")
            [archive] = home.glob("registry/*.tar.gz")
            with tarfile.open(archive) as packed:
                packed.extractall(home, filter="data")
            archive.unlink()
            stamp.write_bytes(MODULES.read_bytes())
    [jar] = home.glob("*-runner.jar")
    return jar


@dataclass(frozen=True)
class RegistryPorts:
    BASE: ClassVar[int] = 18_140
    clients: int


class RegistryServer(Service):
    """Keeps its schemas in memory. `url`: the base URL of Confluent's API."""

    title = "the schema registry"

    def __init__(self, directory: Path, ports: RegistryPorts) -> None:
        self.ports = ports
        self.host_url = f"http://{HOST}:{ports.clients}"
        self.url = f"{self.host_url}/apis/ccompat/v7"
        super().__init__(directory, self.url)

    def launch(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        options = [
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={self.directory}",
            "-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
        ]
        where = {"QUARKUS_HTTP_HOST": HOST, "QUARKUS_HTTP_PORT": str(self.ports.clients)}
        self._run([find_java().executable, *options, "-jar", program()], {**os.environ, **where})

    def wait(self) -> None:
        ready = f"{self.host_url}/health/ready"
        self._wait_for(lambda: urllib.request.urlopen(ready, timeout=5).close(), OSError, seconds=120)

    def register(self, subject: str, schema: Mapping[str, Any]) -> int:
        """Register an Avro schema. Returns its id."""
        answer = self._ask("POST", f"subjects/{subject}/versions", {"schema": json.dumps(schema)})
        return int(answer["id"])

    def demand(self, compatibility: str) -> None:
        """Set the compatibility level of all subjects."""
        self._ask("PUT", "config", {"compatibility": compatibility})

    def _ask(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(f"{self.url}/{path}", json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
