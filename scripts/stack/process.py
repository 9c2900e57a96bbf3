"""A service as a marked process tree: started detached, awaited, found again and stopped whole."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from scripts.stack.errors import StackError

# Every process of a service inherits this, grandchildren in sessions of their own too (Spark drivers are such):
# neither process groups nor parents would lead to those once the process between has died.
MARK = "KAFKA_ARCHIVER_SERVICE"
POLL_SECONDS = 0.1


class Service:
    """What runs for one service, recognised by its directory."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.log = directory / f"{name}.log"
        self.pid_file = directory / f"{name}.pid"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str | Path], env: Mapping[str, str]) -> None:
        """Runs the command in the background, in its directory, in a process group of its own."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(
                command,
                cwd=self.directory,
                # setproctitle overwrites the environment that /proc shows, and with it our mark, unless told not to.
                env={**env, MARK: str(self.directory), "SPT_NOENV": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid_file.write_text(f"{self._child.pid}\n")

    def running(self) -> bool:
        """Whether the process that start() started, here or in another process, is alive."""
        try:
            process = psutil.Process(int(self.pid_file.read_text()))
            return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == str(self.directory)
        except (FileNotFoundError, ValueError, psutil.Error):
            return False

    def wait_until(self, why_not_ready: Callable[[], str | None], seconds: float) -> None:
        """Asks again and again until the answer is None.

        :raises StackError: the process ended, or the time ran out; with the end of the log.
        """
        deadline = time.monotonic() + seconds
        while (reason := why_not_ready()) is not None:
            if not self.running():
                raise StackError(f"{self.name} ended while starting; {self._log_end()}")
            if time.monotonic() > deadline:
                raise StackError(f"{self.name} was not ready after {seconds:.0f} s ({reason}); {self._log_end()}")
            time.sleep(POLL_SECONDS)

    def stop(self, grace: float = 20) -> None:
        end(self.directory, grace)
        self.pid_file.unlink(missing_ok=True)
        if self._child is not None:
            self._child.wait()
            self._child = None

    def _log_end(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-20:]
        return "\n  ".join([f"the end of {self.log}:", *lines])


def marked(directory: Path) -> Iterator[psutil.Process]:
    """Every live process of the services in this directory or below it."""
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(MARK)
            # A zombie has no environment left to read.
            if mark is not None and process.pid != os.getpid() and Path(mark).is_relative_to(directory):
                yield process
        except psutil.Error:
            continue


def end(directory: Path, grace: float) -> None:
    """Ends all of marked(directory): asks first, kills what is left after `grace` seconds."""
    processes = list(marked(directory))
    for process in processes if grace > 0 else []:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    psutil.wait_procs(processes, timeout=grace)
    # Again until none is found: what was being killed may have started another.
    while remaining := list(marked(directory)):
        for process in remaining:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(remaining, timeout=5)
