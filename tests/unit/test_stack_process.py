"""What a service knows of its process."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from scripts.stack import process
from scripts.stack.airflow import Airflow, AirflowPorts
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


def test_an_airflow_whose_api_server_has_ended_is_dead_once_it_had_time_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener:
        port = listener.getsockname()[1]
        service = Airflow(tmp_path, AirflowPorts(port, port, port), tmp_path, [])
        monkeypatch.setattr(Airflow, "launch", lambda self: self._run(["sleep", "60"], os.environ))
        service.launch()
        monkeypatch.setattr(process, "START_SECONDS", 0)
        assert (service.running(), service.answers(), service.is_dead()) == (True, True, False)
    try:
        assert (service.running(), service.answers(), service.is_dead()) == (True, False, True)
        # The process is young.
        monkeypatch.setattr(process, "START_SECONDS", 300)
        assert not service.is_dead()
    finally:
        service.stop(grace=0)
    assert not service.is_dead()
