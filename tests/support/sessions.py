"""A session of tests has a directory and services below it. Several sessions may run at the same time."""

import fcntl
import os
import shutil
import uuid
from pathlib import Path

import psutil

from scripts.stack.process import end
from scripts.stack.s3 import remove_sockets


def directory_of_this(sessions: Path) -> Path:
    """A unique directory, with the process id in its name."""
    return sessions / f"{os.getpid()}-{uuid.uuid4().hex[:6]}"


def sweep(sessions: Path) -> None:
    """Remove the services and data of killed sessions, one session at a time."""
    sessions.mkdir(parents=True, exist_ok=True)
    with sessions.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in sessions.iterdir():
            if not psutil.pid_exists(int(left.name.partition("-")[0])):
                discard(left)


def discard(directory: Path) -> None:
    """End the services of a session, and remove its directory."""
    end(directory, grace=0)
    remove_sockets(directory / "s3")
    shutil.rmtree(directory)
