"""Calls in a process of their own, for requests that may end the process.

If the connection breaks while librdkafka (2.16) asks the coordinator of a group, a failed assertion or a segmentation
fault ends the whole process (github.com/confluentinc/librdkafka/issues/4605). In Airflow's API server that would take
Airflow down each time a broker restarts. Nothing else in librdkafka's client is known to do so.

A process answers one call after the other, and ends by itself when nobody calls or its caller has ended.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from kafka_archiver.messages.errors import TransientError

Given = ParamSpec("Given")
Result = TypeVar("Result")

# Seconds that a process waits for the next call.
_IDLE = 60.0
# A call tries its process and new ones.
_TRIES = 3
_idle: list["_Process"] = []
_lock = threading.Lock()


class _Process:
    """A process that answers calls, and the pipe to it."""

    def __init__(self) -> None:
        self._pipe, child_pipe = Pipe()
        with child_pipe:
            number = child_pipe.fileno()
            path = os.pathsep.join(place or str(Path.cwd()) for place in sys.path)
            self._process = subprocess.Popen(
                # -P: not this process's working directory.
                [sys.executable, "-P", "-m", __name__, str(number)],
                pass_fds=[number],
                # Whoever waits for the end of this process's output does not wait for that process.
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
        self._owner = os.getpid()

    @property
    def is_ready(self) -> bool:
        """Return True if it runs and is a child of this process: a forked process has copies of its parent's."""
        return self._owner == os.getpid() and self._process.poll() is None

    def call(self, asked: tuple[Any, ...], seconds: float) -> Any:
        """The answer, or the error as a value. :raises EOFError, OSError: the process has ended, or is silent."""
        self._pipe.send(asked)
        if not self._pipe.poll(seconds):
            raise TimeoutError
        return self._pipe.recv()

    def end(self) -> str:
        """End it; how it ended."""
        self._pipe.close()
        if self._owner != os.getpid():
            return ""
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def call(function: Callable[Given, Result], seconds: float, *args: Given.args, **kwargs: Given.kwargs) -> Result:
    """Return or raise what `function` does, in another process. It must be safe to call it again.

    :param function: of a module; it, its arguments and its result are pickled.
    :param seconds: for the answer; then the process is ended.
    :raises TransientError: the process ended again and again.
    """
    ended = ""
    for _ in range(_TRIES):
        process = _take()
        try:
            answer = process.call((function, args, kwargs), seconds)
        except (EOFError, OSError):
            ended = process.end()
            continue
        except BaseException:
            # Its answer would be taken for that of the next call.
            process.end()
            raise
        _give(process)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]
    raise TransientError(
        f"the process of Kafka's client ended by itself ({ended}) in {_TRIES} requests about a consumer group: the "
        "connections to the brokers broke; check that they run"
    )


def _take() -> _Process:
    with _lock:
        while _idle:
            process = _idle.pop()
            if process.is_ready:
                return process
            process.end()
    return _Process()


def _give(process: _Process) -> None:
    with _lock:
        _idle.append(process)


def _serve(pipe: Connection) -> None:
    while pipe.poll(_IDLE):
        try:
            function, args, kwargs = pipe.recv()
        except EOFError:
            return
        try:
            answer = function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  the caller raises it
            answer = error
        pipe.send(answer)


if __name__ == "__main__":
    # Ctrl-C is for the caller, whose end ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _serve(Connection(int(sys.argv[1])))
