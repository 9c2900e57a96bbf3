"""A proxy between Kafka clients and a real broker: mitmproxy, which changes the broker's answers as a test demands.

mitmproxy and Airflow need different versions of packages, so mitmproxy has its own environment, .local/mitmproxy. The
first use installs it, with the pins in kafka_proxy.txt.
"""

import fcntl
import json
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.stack.kafka import KafkaPorts
from scripts.stack.paths import LOCAL, TEMPORARY
from scripts.stack.ports import HOST

PINS = Path(__file__).with_suffix(".txt")
ADDON = Path(__file__).with_name("kafka_proxy_addon.py")
# Kafka's API keys.
FETCH, LIST_OFFSETS, DESCRIBE_TOPICS, OFFSET_COMMIT, OFFSET_FETCH = 1, 2, 3, 8, 9


def mitmdump() -> Path:
    """mitmproxy's program; installs it on first use."""
    home = LOCAL / "mitmproxy"
    stamp, pins = home / "installed", PINS.read_text()
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    with (LOCAL / "mitmproxy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != pins:
            _run("venv", "--clear", "--without-pip", str(home))
            _run("pip", "--python", str(home / "bin" / "python"), "install", "--quiet", "-r", str(PINS))
            stamp.write_text(pins)
    return home / "bin" / "mitmdump"


def _run(*module: str) -> None:
    done = subprocess.run([sys.executable, "-m", *module], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"could not install mitmproxy: {done.stdout}{done.stderr}"


def listening(ports: KafkaPorts, listener: int, advertised: int) -> dict[str, str]:
    """Settings of a broker with a listener for the proxy, which advertises the proxy's address."""
    return {
        "listeners": f"PLAINTEXT://{HOST}:{ports.clients},CONTROLLER://{HOST}:{ports.controller},"
        f"PROXIED://{HOST}:{listener}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.clients},PROXIED://{HOST}:{advertised}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT",
    }


class KafkaProxy:
    """`brokers`: the address for clients. There is one fault at a time, for the broker's answers."""

    def __init__(self, listener: int, port: int, directory: Path) -> None:
        self.brokers = f"{HOST}:{port}"
        self._command = [
            *(mitmdump(), "--quiet", "--mode", f"reverse:tcp://{HOST}:{listener}@{self.brokers}", "-s", ADDON),
            *("--set", f"confdir={directory}", "--set", "connection_strategy=eager"),
        ]
        self._process: subprocess.Popen[str]

    @contextmanager
    def serving(self) -> Iterator["KafkaProxy"]:
        """Serve until the block ends."""
        pipe = subprocess.PIPE
        with subprocess.Popen(self._command, stdin=pipe, stderr=pipe, text=True) as self._process:
            try:
                assert self._process.stderr
                assert self._process.stderr.readline() == "ready\n"
                yield self
            finally:
                # Also, it exits when its standard input closes, so it does not outlive a killed test.
                self._process.kill()

    def happened(self) -> int:
        """The number of answers that match the fault so far (with those before its first and after its last)."""
        return self._tell("")

    def pass_on(self) -> int:
        """Remove the fault. Returns the number of answers that matched it."""
        return self._tell("{}")

    def slow(self, seconds: float, bytes_per_second: float, apis: Collection[int] = ()) -> None:
        """Delay each piece of an answer, and limit its rate."""
        self._fault("slow", apis, 1, sys.maxsize, seconds=seconds, bytes_per_second=bytes_per_second)

    def reset(self, apis: Collection[int], first: int = 1, last: int = sys.maxsize) -> None:
        """Break the connection in the middle of the `first` to the `last` answer of these kinds."""
        self._fault("reset", apis, first, last)

    def hold(self, apis: Collection[int], first: int = 1, last: int = sys.maxsize) -> None:
        """A black hole: hold these answers, and all later ones on their connections, until the fault changes."""
        self._fault("hold", apis, first, last)

    def corrupt(self, marker: bytes, times: int) -> None:
        """Change one bit inside the marker in answers that contain it."""
        self._fault("corrupt", (), 1, times, marker=marker.hex())

    def _fault(self, action: str, apis: Collection[int], first: int, last: int, **more: object) -> None:
        fault: dict[str, Any] = {"action": action, "apis": list(apis), "first": first, "last": last, **more}
        self._tell(json.dumps(fault))

    def _tell(self, line: str) -> int:
        process = self._process
        assert process.stdin
        assert process.stderr
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        return int(process.stderr.readline())
