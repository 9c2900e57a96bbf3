"""A service as a marked process tree: starts it in the background, waits for it, finds it again, stops all of it."""

from __future__ import annotations

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import psutil

from scripts.stack.errors import StackError
from scripts.stack.ports import require_free

# Every process of a service inherits this variable. Process groups and parents are not enough: Spark drivers are
# grandchildren in their own sessions, and the process between may have died.
MARK = "KAFKA_ARCHIVER_SERVICE"
POLL_SECONDS = 0.1
# A service that was started so long ago is no longer starting.
START_SECONDS = 300.0
NO_MORE: Mapping[str, str] = MappingProxyType({})


class Service(ABC):
    """One service of a stack. Its directory identifies it, and has its data, settings, log and pid."""

    title: ClassVar[str]
    grace: ClassVar[float] = 20
    """Seconds for an orderly end."""
    ports: Any
    """A dataclass of every port of the service, by purpose."""

    def __init__(self, directory: Path, address: str) -> None:
        """:param address: the address for clients, as shown to the user."""
        self.directory = directory
        self.address = address
        self.log = directory / f"{directory.name}.log"
        self.pid_file = directory / f"{directory.name}.pid"
        self._child: subprocess.Popen[bytes] | None = None

    def ports_needed(self) -> Mapping[str, int]:
        """Every port of the service, by purpose."""
        return asdict(self.ports)

    @abstractmethod
    def launch(self) -> None:
        """Start the service without waiting for it."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until clients can use the service."""

    def start(self) -> None:
        """Launch the service unless it runs, and wait for it.

        :raises StackError: a port is taken, a file is missing, or the service fails (with the end of its log).
        """
        if not self.running():
            self.clear()
            self.launch()
        self.wait()

    def stop(self, grace: float | None = None) -> None:
        """End all its processes; keep its data. :param grace: overrides the default; 0 is a kill -9."""
        end(self.directory, self.grace if grace is None else grace)
        self.pid_file.unlink(missing_ok=True)
        if self._child is not None:
            self._child.wait()
            self._child = None

    def clear(self) -> None:
        """End processes that a crash has left, and check the ports.

        :raises StackError: a port is taken.
        """
        self.stop(grace=0)
        require_free(self.title, self.ports_needed())

    def running(self) -> bool:
        """Return True if the process that launch() started, here or in another process, is alive."""
        if self._child is not None:
            # Not by its environment, which is unreadable during an exec (of a script that ends in `exec java`).
            return self._child.poll() is None
        try:
            process = psutil.Process(int(self.pid_file.read_text()))
            return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == str(self.directory)
        except (FileNotFoundError, ValueError, psutil.Error):
            return False

    def problem(self) -> str | None:
        """Return what does not work although the service runs; None: nothing that it checks."""
        return None

    def answers(self) -> bool:
        """Return True if all of it works that the service checks."""
        return self.problem() is None

    def is_dead(self) -> bool:
        """Return True if it runs and had time to start, but does not answer: a child of its process has ended."""
        return self.running() and not self.answers() and self._age() > START_SECONDS

    def _age(self) -> float:
        try:
            return time.time() - psutil.Process(int(self.pid_file.read_text())).create_time()
        except (FileNotFoundError, ValueError, psutil.Error):
            return 0.0

    def _run(self, command: Sequence[str | Path], env: Mapping[str, str]) -> None:
        """Run the command in the background, in the service's directory and in a new session."""
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(
                command,
                cwd=self.directory,
                # SPT_NOENV: setproctitle must not overwrite the environment in /proc, which has our mark.
                env={**env, MARK: str(self.directory), "SPT_NOENV": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid_file.write_text(f"{self._child.pid}\n")

    def _wait_for(self, ask: Callable[[], object], *errors: type[Exception], seconds: float) -> None:
        """Ask until there is an answer, and none of these errors."""

        def why_not_ready() -> str | None:
            try:
                ask()
            except errors as error:
                return str(error)
            return None

        self._wait_until(why_not_ready, seconds)

    def _wait_until(self, why_not_ready: Callable[[], str | None], seconds: float) -> None:
        """Call `why_not_ready` until it returns None."""
        deadline = time.monotonic() + seconds
        while (reason := why_not_ready()) is not None:
            if not self.running():
                raise StackError(f"{self.title} ended while starting; {self._log_end()}")
            if time.monotonic() > deadline:
                raise StackError(
                    f"{self.title} was not ready after {seconds:.0f} s ({reason}). To start all anew: "
                    f"make down, then make up; {self._log_end()}"
                )
            time.sleep(POLL_SECONDS)

    def _log_end(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-20:]
        return "\n  ".join([f"the end of {self.log}:", *lines])


def marked(directory: Path) -> Iterator[psutil.Process]:
    """All live processes of the services in this directory or below it."""
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(MARK)
            # A zombie has no environment.
            if mark is not None and process.pid != os.getpid() and Path(mark).is_relative_to(directory):
                yield process
        except psutil.Error:
            continue


def command_of(process: psutil.Process) -> list[str]:
    """Its command line; empty if it has ended, as any process may between being listed and being asked."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def end(directory: Path, grace: float) -> None:
    """End all of marked(directory): SIGTERM first, SIGKILL after `grace` seconds."""
    processes = list(marked(directory))
    for process in processes if grace > 0 else []:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    psutil.wait_procs(processes, timeout=grace)
    # Until none is left: a process may start another one before it is killed.
    while remaining := list(marked(directory)):
        for process in remaining:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(remaining, timeout=5)
