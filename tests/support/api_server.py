"""A second API server of a running Airflow, on which people have to log in."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from scripts.stack.airflow import FOREIGN
from scripts.stack.paths import BIN, ROOT
from scripts.stack.ports import HOST
from tests.support.waiting import until

# Names with their roles; each one's password is the name backwards.
PEOPLE = {"anna": "admin", "olga": "user", "viktor": "viewer"}


def password(name: str) -> str:
    """The password of a person."""
    return name[::-1]


@contextmanager
def api_server_with_login(directory: Path, port: int, settings: Mapping[str, str]) -> Iterator[str]:
    """Start it, and give its address.

    :param directory: one of its own, which does not exist yet.
    :param settings: the environment of the Airflow.
    """
    directory.mkdir()
    passwords, url = directory / "passwords.json", f"http://{HOST}:{port}"
    passwords.write_text(json.dumps({name: password(name) for name in PEOPLE}))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)},
        **settings,
        "PYTHONPATH": str(ROOT / "include"),
        "TMPDIR": str(directory),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in PEOPLE.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "ARCHIVER_METRICS_TOKEN": "a-token",
        # The tests look again and again.
        "ARCHIVER_PAGE_SECONDS": "1",
    }
    with (directory / "output.log").open("w") as output:
        server = subprocess.Popen(
            [BIN / "airflow", "api-server", "--host", HOST, "--port", str(port)],
            env=environment,
            cwd=directory,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            until(lambda: server.poll() is not None or _answers(url), seconds=120, every=0.5)
            assert server.poll() is None, (directory / "output.log").read_text()[-3000:]
            yield url
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait(20)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/v2/version").status_code == 200
    except httpx.TransportError:
        return False
