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
import subprocess
import time
from pathlib import Path

from bench.processes import Stat, busy, command, descendants, memory, stat
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

    def see(self, found: list[Stat]) -> None:
        """Take CPU figures."""
        for process in found:
            self._cpu[process.pid] = process.cpu
            kind = _kind(process)
            # A process that has ended shows no arguments any more.
            if kind is not None and process.state != "Z":
                self._kinds[process.pid] = kind

    def weigh(self, found: list[Stat]) -> None:
        """Take memory figures."""
        now = 0
        for process in found:
            kind = self._kinds.get(process.pid, "jvm")
            peak, share = memory(process.pid)
            self._peaks[kind] = max(peak, self._peaks.get(kind, 0))
            now += share
        self._total = max(self._total, now)

    def usage(self, code: int, wall: float, machine: float) -> Usage:
        """All of it."""
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


def _kind(process: Stat) -> Kind | None:
    """The shells that lead to a JVM count as that JVM."""
    if process.name == "java":
        return "jvm"
    arguments = command(process.pid)
    if "pyspark.daemon" in arguments:
        return "worker"
    return "driver" if "python" in arguments.split(" ")[0] else None


def run(arguments: list[str], log: Path) -> Usage:
    """The command, to its end and to that of everything it has started."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    started, idle = time.monotonic(), busy()
    account, code, turn = Account(), -1, 0
    with log.open("wb") as output:
        root = subprocess.Popen(arguments, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    wall = machine = 0.0
    while True:
        found = descendants(os.getpid())
        account.see(found)
        if turn % _MEMORY_EVERY == 0:
            account.weigh(found)
        turn += 1
        # One that has ended keeps its figures until it is waited for.
        while (ended := _ended()) is not None:
            last = stat(ended)
            account.see([last] if last else [])
            _, status = os.waitpid(ended, 0)
            if ended == root.pid:
                code, wall = os.waitstatus_to_exitcode(status), time.monotonic() - started
                root.returncode, machine = code, busy() - idle
        if not descendants(os.getpid()):
            return account.usage(code, wall, machine)
        time.sleep(_SECONDS)


def _ended() -> int | None:
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    usage = run(options.command, options.log)
    options.result.write_text(json.dumps(usage.to_dict()))
