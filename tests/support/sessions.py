"""What a session of tests has on this machine: a directory, and the services below it. Several may run side by side."""

import fcntl
import os
import shutil
import uuid
from pathlib import Path

import psutil

from scripts.stack.process import end
from scripts.stack.s3 import remove_sockets


def directory_of_this(sessions: Path) -> Path:
    """A name that no other session ever has, and that says whose it is."""
    return sessions / f"{os.getpid()}-{uuid.uuid4().hex[:6]}"


def sweep(sessions: Path) -> None:
    """A session that was killed could not clean up: its services and data go now. One session at a time does so."""
    sessions.mkdir(parents=True, exist_ok=True)
    with sessions.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in sessions.iterdir():
            if not psutil.pid_exists(int(left.name.partition("-")[0])):
                discard(left)


def discard(directory: Path) -> None:
    """End its services, and remove it."""
    end(directory, grace=0)
    remove_sockets(directory / "s3")
    shutil.rmtree(directory)
