"""What /proc says of processes. Cheaper than asking for everything, several times a second, about each."""

import os
from pathlib import Path
from typing import NamedTuple

TICK = 1 / os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """A line of /proc/<pid>/stat: who it is, and the CPU seconds of all its threads, those that ended included."""

    pid: int
    name: str
    state: str
    parent: int
    cpu: float


class Memory(NamedTuple):
    """Bytes: the largest resident size so far, and now its share of what it has in memory (PSS)."""

    peak: int
    share: int


def parse_stat(line: str) -> Stat:
    """A line of /proc/<pid>/stat. The name may hold spaces and brackets."""
    pid, _, rest = line.partition(" (")
    name, _, fields = rest.rpartition(") ")
    state, parent, *others = fields.split()
    # utime and stime are the 14th and 15th field of the line.
    return Stat(int(pid), name, state, int(parent), (int(others[9]) + int(others[10])) * TICK)


def stat(pid: int) -> Stat | None:
    """None when it is gone. A process that has ended and was not waited for still counts."""
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text(errors="replace"))
    except OSError:
        return None


def busy() -> float:
    """CPU seconds of all cores since the machine started, but for those in which it waited."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq) * TICK


def memory(pid: int) -> Memory:
    """Its memory; zeros when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return Memory(0, 0)
    return Memory(_kilobytes(status, "VmHWM"), _kilobytes(rollup, "Pss"))


def _kilobytes(text: str, name: str) -> int:
    for line in text.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def command(pid: int) -> str:
    """Its arguments, with spaces between them."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def descendants(root: int) -> list[Stat]:
    """All processes below this one."""
    found = {s.pid: s for s in map(stat, [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]) if s}
    below: list[Stat] = []
    level = {root}
    while level:
        children = [s for s in found.values() if s.parent in level]
        below += children
        level = {s.pid for s in children}
    return below
