"""A service as a marked process tree: started detached, awaited, found again and stopped whole."""

from __future__ import annotations

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import psutil

from scripts.stack.errors import StackError
from scripts.stack.ports import require_free

# Every process of a service inherits this, grandchildren in sessions of their own too (Spark drivers are such):
# neither process groups nor parents would lead to those once the process between has died.
MARK = "KAFKA_ARCHIVER_SERVICE"
POLL_SECONDS = 0.1


class Service(ABC):
    """One service of a stack, recognised by its directory: data, settings, log and pid."""

    title: ClassVar[str]
    grace: ClassVar[float] = 20
    """Seconds that it gets for an orderly end."""

    def __init__(self, directory: Path, address: str) -> None:
        """:param address: where its clients find it, as a person would write it."""
        self.directory = directory
        self.address = address
        self.log = directory / f"{directory.name}.log"
        self.pid_file = directory / f"{directory.name}.pid"
        self._child: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def ports_needed(self) -> Mapping[str, int]:
        """Every port it opens, by purpose."""

    @abstractmethod
    def launch(self) -> None:
        """Prepares and starts it, and returns without waiting."""

    @abstractmethod
    def wait(self) -> None:
        """Returns when clients are really served."""

    def start(self) -> None:
        """Launches it and waits; only waits when it runs already.

        :raises StackError: a port is taken, a file is missing, or it does not come up; then with its log's end.
        """
        if not self.running():
            self.clear()
            self.launch()
        self.wait()

    def stop(self, grace: float | None = None) -> None:
        """Ends all of it and keeps its data. :param grace: instead of the usual; 0 is a kill -9."""
        end(self.directory, self.grace if grace is None else grace)
        self.pid_file.unlink(missing_ok=True)
        if self._child is not None:
            self._child.wait()
            self._child = None

    def clear(self) -> None:
        """Ends what a crash left of it, and looks whether it could start.

        :raises StackError: a port that it needs is taken.
        """
        self.stop(grace=0)
        require_free(self.title, self.ports_needed())

    def running(self) -> bool:
        """Whether the process that launch() started, here or in another process, is alive."""
        if self._child is not None:
            # Its environment says nothing while it becomes another program, as a script that ends in `exec java` does.
            return self._child.poll() is None
        try:
            process = psutil.Process(int(self.pid_file.read_text()))
            return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == str(self.directory)
        except (FileNotFoundError, ValueError, psutil.Error):
            return False

    def _run(self, command: Sequence[str | Path], env: Mapping[str, str]) -> None:
        """Runs the command in the background, in the service's directory, in a session of its own."""
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

    def _wait_until(self, why_not_ready: Callable[[], str | None], seconds: float) -> None:
        """Asks again and again until the answer is None."""
        deadline = time.monotonic() + seconds
        while (reason := why_not_ready()) is not None:
            if not self.running():
                raise StackError(f"{self.title} ended while starting; {self._log_end()}")
            if time.monotonic() > deadline:
                raise StackError(f"{self.title} was not ready after {seconds:.0f} s ({reason}); {self._log_end()}")
            time.sleep(POLL_SECONDS)

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
