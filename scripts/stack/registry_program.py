"""Fetches the schema registry, with the Ivy that pyspark ships. Standard library only."""

from __future__ import annotations

import fcntl
import tarfile
from pathlib import Path
from typing import Any

from scripts.stack.jars import retrieve
from scripts.stack.java import Java
from scripts.stack.paths import LOCAL, TEMPORARY

MODULES = Path(__file__).with_name("registry_ivy.xml")
SETTINGS = Path(__file__).with_name("registry_ivysettings.xml")
HOME = LOCAL / "registry"


def fetch_registry(java: Java, log: Path) -> Path:
    """The registry's jar; downloads and unpacks it, unless the one of registry_ivy.xml is there already.

    :raises StackError: the download failed; the message has the end of the log.
    """
    stamp = HOME / "ivy.xml"
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    with (LOCAL / "registry.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_bytes() != MODULES.read_bytes():
            retrieve(java, MODULES, SETTINGS, ["tar.gz"], HOME, log)
            [archive] = HOME.glob("registry/*.tar.gz")
            with tarfile.open(archive) as packed:
                # Python before 3.11.4 (Debian 12 has 3.11.2) has no filters.
                safe: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                packed.extractall(HOME, **safe)
            archive.unlink()
            stamp.write_bytes(MODULES.read_bytes())
    [jar] = HOME.glob("*-runner.jar")
    return jar
