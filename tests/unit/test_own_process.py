"""Calls in a process of their own, with processes that really end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_archiver.kafka import own_process
from kafka_archiver.messages.errors import PermanentError, TransientError
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[own_process._Process]]:
    """No idle processes before the test, and none after it."""
    idle: list[own_process._Process] = []
    monkeypatch.setattr(own_process, "_idle", idle)
    yield idle
    for process in idle:
        process.end()


def end_once(mark: Path) -> int:
    """End the process as a failed assertion does, the first time."""
    if not mark.exists():
        mark.touch()
        os.abort()
    return os.getpid()


def test_a_process_answers_one_call_after_the_other_and_raises_what_the_function_raises() -> None:
    first = own_process.call(os.getpid, 10)
    assert first != os.getpid()
    with pytest.raises(FileNotFoundError):
        own_process.call(os.stat, 10, "/nowhere")
    with pytest.raises(PermanentError, match="as it was said"):
        own_process.call(refuse, 10, "as it was said")
    assert own_process.call(os.getpid, 10) == first


def refuse(text: str) -> None:
    raise PermanentError(text)


def test_a_process_that_ends_is_followed_by_another(tmp_path: Path) -> None:
    first = own_process.call(os.getpid, 10)
    assert own_process.call(end_once, 10, tmp_path / "mark") not in (first, os.getpid())


def test_processes_that_always_end_are_a_transient_error_that_says_how(pool: list[own_process._Process]) -> None:
    with pytest.raises(
        TransientError, match=rf"\(signal {signal.SIGABRT.value}\) in 3 requests about a consumer group"
    ):
        own_process.call(os.abort, 10)
    assert pool == []


def test_a_silent_process_is_ended(pool: list[own_process._Process]) -> None:
    with pytest.raises(TransientError, match=f"signal {signal.SIGKILL.value}"):
        own_process.call(time.sleep, 0.05, 3600)
    assert pool == []


CALLERS = """
import os
from kafka_archiver.kafka.own_process import call
first = call(os.getpid, 10)
forked = os.fork()
if not forked:
    print(call(os.getpid, 10), flush=True)
    os.kill(os.getpid(), 9)
os.waitpid(forked, 0)
print(first, call(os.getpid, 10), flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_process_has_one_caller_not_its_forks_and_ends_with_it() -> None:
    process = subprocess.run([sys.executable, "-c", CALLERS], capture_output=True, text=True, check=False)
    of_fork, first, again = map(int, process.stdout.split())
    assert of_fork != first == again
    until(lambda: not runs(of_fork) and not runs(first), seconds=10)


def runs(process: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", str(process)], capture_output=True, text=True, check=False).stdout
    return bool(state) and not state.startswith("Z")
