"""The facts that a service knows of its process."""

import json
import os
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from scripts.stack import process
from scripts.stack.airflow import MUST_BE_HEALTHY, Airflow, AirflowPorts
from scripts.stack.process import MARK, Service
from tests.support.waiting import until

pytestmark = pytest.mark.unit


class Unmarked(Service):
    """Its process has no environment, as any for a moment while it becomes another program."""

    title = "a test's service"

    def ports_needed(self) -> Mapping[str, int]:
        return {}

    def launch(self) -> None:
        self._run(["env", "-i", "sleep", "60"], os.environ)

    def wait(self) -> None:
        pass


def test_a_process_whose_environment_is_not_to_be_seen_is_running(tmp_path: Path) -> None:
    service = Unmarked(tmp_path, "nowhere")
    service.launch()
    process = psutil.Process(int(service.pid_file.read_text()))
    try:
        until(lambda: process.name() == "sleep" and MARK not in process.environ())
        assert service.running()
    finally:
        process.kill()
    until(lambda: not service.running())


def test_an_airflow_of_which_a_part_has_ended_is_dead_once_it_had_time_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = {part: {"status": "healthy"} for part in MUST_BE_HEALTHY}

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(health).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_port
        service = Airflow(tmp_path, AirflowPorts(port, port, port), tmp_path, [])
        monkeypatch.setattr(Airflow, "launch", lambda self: self._run(["sleep", "60"], os.environ))
        service.launch()
        monkeypatch.setattr(process, "START_SECONDS", 0)
        assert (service.running(), service.problem(), service.is_dead()) == (True, None, False)
        for part in ("scheduler", "dag_processor"):
            health[part]["status"] = "unhealthy"
            assert (service.problem(), service.is_dead()) == (f"the {part} is unhealthy", True)
            health[part]["status"] = "healthy"
        server.shutdown()
    try:
        assert (service.running(), service.problem()) == (True, "the API server does not answer")
        assert service.is_dead()
        # The process is young.
        monkeypatch.setattr(process, "START_SECONDS", 300)
        assert not service.is_dead()
    finally:
        service.stop(grace=0)
    assert not service.is_dead()
