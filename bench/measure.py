"""Runs a command and measures all its processes, by kind. It is a separate process, see `measured`.

Neither wait4 nor sampling alone is enough: the JVM does not always wait for Python's daemon, and the daemon ignores
SIGCHLD, so the kernel does not add its workers' CPU to any parent. So this process becomes the subreaper of orphans. It
reads each process's CPU ten times a second, and once more between the end of a process and the wait for it, which gives
the exact sum for the JVM. Of a Python worker it misses the last tenth of a second, when the worker is idle.
"""

import argparse
import ctypes
import json
import os
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil

from bench.usage import Kind, Usage

_SECONDS = 0.1
# Reading a JVM's memory takes milliseconds of CPU.
_MEMORY_EVERY = 5
_SET_CHILD_SUBREAPER = 36


class Account:
    """Each process's latest figures."""

    def __init__(self) -> None:
        self._cpu: dict[int, float] = {}
        self._kinds: dict[int, Kind] = {}
        self._peaks: dict[Kind, int] = {}
        self._total = 0

    def see(self, process: psutil.Process) -> None:
        """Take a process's CPU seconds, with those of its ended threads."""
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            self._cpu[process.pid] = times.user + times.system
            # An ended process has no arguments.
            if (kind := _kind(process)) is not None:
                self._kinds[process.pid] = kind

    def weigh(self, processes: list[psutil.Process]) -> None:
        """Take memory figures: each process's peak resident size, and its current proportional set size (PSS)."""
        total = 0
        for process in processes:
            kind = self._kinds.get(process.pid, "jvm")
            with suppress(psutil.Error):
                total += process.memory_full_info().pss
                self._peaks[kind] = max(_peak(process.pid), self._peaks.get(kind, 0))
        self._total = max(self._total, total)

    def usage(self, code: int, wall: float, machine: float) -> Usage:
        """The sums of all processes."""
        cpu: dict[Kind, float] = {}
        for pid, seconds in self._cpu.items():
            kind = self._kinds.get(pid, "jvm")
            cpu[kind] = cpu.get(kind, 0) + seconds
        return Usage(
            code=code,
            wall=wall,
            cpu=cpu,
            peak_process=self._peaks,
            peak_total=self._total,
            machine=machine,
            machine_cores=os.cpu_count() or 1,
        )


def _kind(process: psutil.Process) -> Kind | None:
    """The kind of a process; None for a shell, which counts as the JVM that it starts."""
    if process.name() == "java":
        return "jvm"
    arguments = process.cmdline()
    if {"pyspark.daemon", "kafka_archiver.spark.daemon"} & {*arguments}:
        return "worker"
    return "driver" if arguments and "python" in arguments[0] else None


def _peak(pid: int) -> int:
    with suppress(OSError):
        if match := re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(errors="replace"), re.M):
            return int(match[1]) << 10
    return 0


def _busy() -> float:
    """Busy CPU seconds of all cores since the machine started."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def run(arguments: list[str], log: Path) -> Usage:
    """Run the command until all its processes have ended."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    started, idle = time.monotonic(), _busy()
    me, account, code, turn = psutil.Process(), Account(), -1, 0
    with log.open("wb") as output:
        root = subprocess.Popen(arguments, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    wall = machine = 0.0
    while True:
        children = me.children(recursive=True)
        for process in children:
            account.see(process)
        if turn % _MEMORY_EVERY == 0:
            account.weigh(children)
        turn += 1
        # An ended process keeps its figures until the wait.
        while (ended := _ended()) is not None:
            with suppress(psutil.NoSuchProcess):
                account.see(psutil.Process(ended))
            _, status = os.waitpid(ended, 0)
            if ended == root.pid:
                code, wall = os.waitstatus_to_exitcode(status), time.monotonic() - started
                root.returncode, machine = code, _busy() - idle
        if not me.children():
            return account.usage(code, wall, machine)
        time.sleep(_SECONDS)


def _ended() -> int | None:
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return ended.si_pid if ended else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    usage = run(options.command, options.log)
    options.result.write_text(json.dumps(usage.to_dict()))
