"""A schema registry: Apicurio, with Confluent's API."""

from __future__ import annotations

import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from scripts.stack.java import find_java
from scripts.stack.paths import LOCAL, TEMPORARY
from scripts.stack.ports import HOST
from scripts.stack.process import Service
from scripts.stack.registry_program import fetch_registry


@dataclass(frozen=True)
class RegistryPorts:
    BASE: ClassVar[int] = 18_112
    clients: int


class RegistryServer(Service):
    """Keeps its schemas in its directory. `url`: the base URL of Confluent's API."""

    title = "the registry"
    grace = 10

    def __init__(self, directory: Path, ports: RegistryPorts) -> None:
        self.ports = ports
        self.host_url = f"http://{HOST}:{ports.clients}"
        self.url = f"{self.host_url}/apis/ccompat/v7"
        super().__init__(directory, self.host_url)

    def launch(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        java = find_java()
        jar = fetch_registry(java, LOCAL / "registry.log")
        options = [
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={TEMPORARY}",
            "-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
        ]
        settings = {
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(self.ports.clients),
            "APICURIO_STORAGE_SQL_KIND": "h2",
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{self.directory / 'schemas'}",
            # A deleted version or subject may be deleted for good, as in Confluent's registry.
            "APICURIO_REST_DELETION_ARTIFACT_VERSION_ENABLED": "true",
            "APICURIO_REST_DELETION_ARTIFACT_ENABLED": "true",
        }
        # Quarkus takes settings from any variable of these names.
        own = {name: value for name, value in os.environ.items() if not name.startswith(("QUARKUS_", "APICURIO_"))}
        self._run([java.executable, *options, "-jar", jar], {**own, **settings})

    def wait(self) -> None:
        ready = f"{self.host_url}/health/ready"
        self._wait_for(lambda: urllib.request.urlopen(ready, timeout=5).close(), OSError, seconds=120)
