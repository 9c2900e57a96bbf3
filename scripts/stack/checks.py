"""Checks the machine before anything is installed or started."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from scripts.stack.errors import StackError

GIB = 1024**3
PYTHONS = ("3.11", "3.12")
NEEDED_DISK_GIB = 3


def require_disk(directory: Path, needed_gib: float = NEEDED_DISK_GIB) -> None:
    """:raises StackError: the disk of `directory` has fewer than `needed_gib` GiB free."""
    free = shutil.disk_usage(directory).free / GIB
    if free < needed_gib:
        raise StackError(
            f"{needed_gib:g} GiB of free disk are needed below {directory}, but only {free:.1f} GiB are free:"
            " free some space, or clone to another disk"
        )


def running_version() -> str:
    """Return the running Python's version as `PYTHONS` has it."""
    return ".".join(map(str, sys.version_info[:2]))


def find_python() -> Path:
    """Return a Python of `PYTHONS`: the running one, else one on PATH.

    :raises StackError: there is none.
    """
    version = running_version()
    if version in PYTHONS:
        # Inside a virtual environment, sys.executable is the environment's Python, not the system's.
        return Path(getattr(sys, "_base_executable", sys.executable))
    for python in filter(None, (shutil.which(f"python{other}") for other in PYTHONS)):
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return Path(python)
    raise StackError(
        f"Python {' or '.join(PYTHONS)} is needed, but python3 is {version} and there is no other on PATH:"
        " install it (Debian 12: apt-get install python3.11-venv), or `make PYTHON=/path/to/python3.11`"
    )
