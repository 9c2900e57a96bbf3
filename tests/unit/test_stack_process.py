"""What a service knows of its process."""

import os
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

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
