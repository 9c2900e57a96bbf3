"""Temporary directories: gone with their task, however it ended, and never under a task that lives."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from kafka_archiver.messages.errors import TransientError
from kafka_archiver.records.writer.disk import LateDirectory, abandoned, sweep, working_directory
from scripts.stack.paths import ROOT
from tests.support.waiting import until

pytestmark = pytest.mark.unit

TASK = """
import sys, threading
from pathlib import Path
from kafka_archiver.records.writer.disk import working_directory
with working_directory(Path(sys.argv[1])) as directory:
    (directory / "spilled").write_bytes(b"x" * 1000)
    print(directory, flush=True)
    threading.Event().wait()
"""


# It has started a program, which lives on when the task is killed, as spark-submit does.
PARENT = """
import subprocess, sys
from pathlib import Path
from kafka_archiver.records.writer.disk import locked_directory
with locked_directory(Path(sys.argv[1])) as (directory, lock):
    program = subprocess.Popen(["sleep", "1000"], pass_fds=[lock])
    print(directory, program.pid, sep="\\n", flush=True)
    program.wait()
"""


@pytest.fixture
def task(tmp_path: Path, request: pytest.FixtureRequest) -> "subprocess.Popen[str]":
    """A task in a process of its own, in the middle of its work."""
    process = subprocess.Popen(
        [sys.executable, "-c", getattr(request, "param", TASK), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT / "include")},
    )
    yield process  # type: ignore[misc]
    process.kill()
    process.communicate()


def test_it_goes_with_its_task(tmp_path: Path) -> None:
    def fail() -> None:
        with working_directory(tmp_path) as directory:
            (directory / "deep").mkdir()
            (directory / "deep" / "file").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_task_left_goes_with_the_next(tmp_path: Path, task: "subprocess.Popen[str]") -> None:
    assert task.stdout
    left = Path(task.stdout.readline().strip())
    with working_directory(tmp_path):
        assert (left / "spilled").exists(), "the task is alive"
    assert abandoned(tmp_path) == sweep(tmp_path) == []

    task.send_signal(signal.SIGKILL)
    task.wait()
    assert abandoned(tmp_path) == [left]
    with working_directory(tmp_path) as mine:
        assert list(tmp_path.iterdir()) == [mine]


@pytest.mark.parametrize("task", [PARENT], indirect=True, ids=["parent"])
def test_it_stays_while_a_process_lives_that_has_inherited_the_lock(
    tmp_path: Path, task: "subprocess.Popen[str]"
) -> None:
    assert task.stdout
    left, program = Path(task.stdout.readline().strip()), int(task.stdout.readline())
    try:
        task.send_signal(signal.SIGKILL)
        task.wait()
        assert abandoned(tmp_path) == sweep(tmp_path) == []
    finally:
        os.kill(program, signal.SIGKILL)
    until(lambda: sweep(tmp_path) == [left])
    assert list(tmp_path.iterdir()) == []


def test_only_directories_of_tasks_are_swept(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "precious").mkdir(parents=True)
    (tmp_path / "kafka-archiver-task-link").symlink_to(elsewhere)
    (tmp_path / "kafka-archiver-task-file").touch()
    (tmp_path / "kafka-archiver-else").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert abandoned(tmp_path) == sweep(tmp_path) == []
    assert sorted(tmp_path.rglob("*")) == before


def test_tasks_that_begin_together_leave_each_other_alone(tmp_path: Path) -> None:
    failures: list[str] = []

    def begin_often() -> None:
        for _ in range(200):
            with working_directory(tmp_path) as directory:
                (directory / "file").touch()
                if not (directory / "file").exists():
                    failures.append(str(directory))

    threads = [threading.Thread(target=begin_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(tmp_path.iterdir()) == []


def test_there_is_no_such_parent(tmp_path: Path) -> None:
    with pytest.raises(TransientError, match="Free space there"), working_directory(tmp_path / "none"):
        pass


def test_a_late_directory_is_made_when_its_path_is_asked_for(tmp_path: Path) -> None:
    with closing(LateDirectory(tmp_path)):
        assert not list(tmp_path.iterdir())
    with closing(LateDirectory(tmp_path)) as late:
        assert [late.path] == list(tmp_path.iterdir())
        (late.path / "file").touch()
    assert not list(tmp_path.iterdir())
