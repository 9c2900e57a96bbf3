"""Makes the class-data archive with which Spark's JVMs start faster; see kafka_archiver/spark/class_data.py.

Runs with the system's python3, before anything is installed: standard library only.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from scripts.stack.java import Java
from scripts.stack.paths import BIN, LOCAL, SPARK_HOME

DIRECTORY = LOCAL / "class-data"


def class_data(java: Java) -> Path | None:
    """The archive for this Java and these jars; None if there is none."""
    file = _file(java)
    return file if file.exists() and file.stat().st_size else None


def make_class_data(java: Java, log: Path) -> None:
    """Makes the archive, unless it was tried before with this Java and these jars. A failure is only printed."""
    file = _file(java)
    if file.exists():
        return
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(parents=True)
    command: list[str | Path] = [BIN / "python", "-m", "kafka_archiver.spark.class_data", file]
    # The user's PYTHONPATH must not reach our process.
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    settings = {**own, "JAVA_HOME": str(java.home), "SPARK_HOME": str(SPARK_HOME)}
    with log.open("ab") as output:
        dump = subprocess.run(command, env=settings, stdout=output, stderr=output, check=False)
    if dump.returncode != 0:
        file.touch()
        print(f"Could not make a class-data archive, so Spark jobs start a little slower; see {log}", flush=True)


def _file(java: Java) -> Path:
    """The file; its name depends on Java, its path, and the jars."""
    machine = java.home / "lib" / "server" / "libjvm.so"
    files = [machine if machine.exists() else java.executable, *sorted((SPARK_HOME / "jars").glob("*.jar"))]
    parts = [f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}\n" for file in files]
    return DIRECTORY / f"{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}.jsa"
