"""Attempts at a restore, each in processes of its own that a test can kill, freeze and wake.

A forked process runs the work of the job's tasks without Spark, which is fast; `SparkAttempt` is the job itself.
"""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import psutil

from kafka_archiver.jobs.restore import RestoreJob
from kafka_archiver.model.restore import RestorePlan
from kafka_archiver.spark.failures import PERMANENT_EXIT, TRANSIENT_EXIT, UNKNOWN_EXIT, exit_code
from kafka_archiver.work.restore.step import (
    Group,
    PartitionWork,
    Stop,
    frozen_plan,
    groups_of,
    publish,
    published,
    require_verified,
)
from tests.support.archiver import Archiver

Step = Literal["write", "verify"]
Result = TypeVar("Result")
# Exit codes; of several errors, the last one counts.
_WORSE = [0, TRANSIENT_EXIT, PERMANENT_EXIT, UNKNOWN_EXIT]
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload([__name__])


class Attempt(Protocol):
    """An attempt that was started."""

    log: Path

    def processes(self) -> list[psutil.Process]:
        """Return its live processes."""

    def code(self, seconds: float) -> int | None:
        """Return its exit code; None if it has not ended in time."""


def send_signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to processes, also if some have ended."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


class ForkedAttempt:
    """A step in one process, with a thread for each pass over the archive, of which there are so many at least."""

    def __init__(self, log: Path, work: PartitionWork, step: Step, passes: int = 2) -> None:
        self.log = log
        self._process: BaseProcess = _forks.Process(target=_carry_out, args=(log, work, step, passes), daemon=True)
        self._process.start()

    def processes(self) -> list[psutil.Process]:
        """Return the process."""
        pid = self._process.pid
        with suppress(psutil.NoSuchProcess):
            return [psutil.Process(pid)] if self._process.is_alive() else []
        return []

    def code(self, seconds: float) -> int | None:
        """Return the exit code; of a signal, a negative one."""
        wait([self._process.sentinel], seconds)
        return self._process.exitcode


class SparkAttempt:
    """A step as Airflow starts it: with spark-submit, its driver and its workers."""

    def __init__(self, log: Path, archiver: Archiver, restore: str, step: Step) -> None:
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*archiver.command(["x"])[:-1], RestoreJob.of(archiver.archive, [restore, step]).to_argument()],
                env=archiver.environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=archiver.directory,
                start_new_session=True,
            )

    def processes(self) -> list[psutil.Process]:
        """Return spark-submit, the driver, and the workers: all of the session."""
        return [process for process in psutil.process_iter() if _session(process) == self._process.pid]

    def code(self, seconds: float) -> int | None:
        """Return the exit code of spark-submit, once nothing of it runs any more."""
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(seconds)
            send_signal(self.processes(), signal.SIGKILL)
            return code
        return None


def _session(process: psutil.Process) -> int | None:
    try:
        is_alive = process.status() != psutil.STATUS_ZOMBIE
        return os.getsid(process.pid) if is_alive else None
    except (ProcessLookupError, psutil.NoSuchProcess):
        return None


def _carry_out(log: Path, work: PartitionWork, step: Step, passes: int) -> None:
    with log.open("ab") as file:
        for standard in (1, 2):
            os.dup2(file.fileno(), standard)
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    errors: list[Exception] = []
    try:
        plan = frozen_plan(work.ledger, work.restore)
        if step == "write":
            _, errors = _of_all(work.write, plan, passes, asked.is_set)
        else:
            before = published(work.ledger, plan)
            results, errors = _of_all(work.verify, plan, passes, asked.is_set)
            if not errors:
                require_verified(publish(work.ledger, plan, results, before))
    except Exception as error:  # noqa: BLE001 - the exit code says what it was
        errors.append(error)
    for error in errors:
        traceback.print_exception(error)
    sys.stdout.flush()
    # Without the ends of clients that may never end.
    os._exit(max(map(exit_code, errors), default=0, key=_WORSE.index))


def _of_all(
    work: Callable[[Group, Stop], list[Result]], plan: RestorePlan, passes: int, stop: Stop
) -> tuple[list[Result], list[Exception]]:
    """Work on all target partitions at the same time. Return the results and the errors."""
    groups = groups_of(plan, passes)
    with ThreadPoolExecutor(len(groups)) as pool:
        ends = [pool.submit(work, group, stop) for group in groups]
    errors = [error for end in ends if isinstance(error := end.exception(), Exception)]
    return [result for end in ends if not end.exception() for result in end.result()], errors
