"""Debian's Prometheus: scrapes a page, loads the alert rules of the documentation, answers queries."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from scripts.stack.paths import ROOT
from scripts.stack.ports import HOST, free_ports
from tests.support.waiting import until

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
RULES = ROOT / "docs" / "monitoring" / "alert-rules.yaml"


@dataclass(frozen=True)
class PrometheusPorts:
    BASE = 19_090
    web: int


class Prometheus:
    """:ivar url: its address."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API; an AssertionError with the reason if it refuses."""
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def firing(self) -> dict[str, dict[str, Any]]:
        """The alerts that fire, by name."""
        alerts = self.ask("alerts")["alerts"]
        return {alert["labels"]["alertname"]: alert for alert in alerts if alert["state"] == "firing"}


@contextmanager
def prometheus(directory: Path, scrape: str) -> Iterator[Prometheus]:
    """Start it, with a look every second.

    :param directory: one of its own.
    :param scrape: `scrape_configs` as a person writes them.
    """
    assert PROMETHEUS
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        **yaml.safe_load(scrape),
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    address = f"{HOST}:{free_ports(PrometheusPorts).web}"
    files = [f"--config.file={directory / 'prometheus.yml'}", f"--storage.tsdb.path={directory / 'data'}"]
    with (directory / "prometheus.log").open("wb") as log:
        server = subprocess.Popen([PROMETHEUS, *files, f"--web.listen-address={address}"], stdout=log, stderr=log)
    try:
        until(lambda: server.poll() is not None or _is_ready(f"http://{address}"), every=0.2)
        assert server.poll() is None, (directory / "prometheus.log").read_text()[-3000:]
        yield Prometheus(f"http://{address}")
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait(20)


def _is_ready(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/-/ready").status_code == 200
    return False
