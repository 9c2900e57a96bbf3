"""Installs what this checkout needs: the environment .venv and the jars below .local. A second run does nothing.

Runs with the system's python3, before anything is installed: standard library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from scripts.stack.checks import PYTHONS, find_python, require_disk, running_version
from scripts.stack.class_data import make_class_data
from scripts.stack.errors import StackError
from scripts.stack.jars import fetch_jars
from scripts.stack.java import find_java
from scripts.stack.paths import BIN, LOCAL, ROOT, SPARK_HOME, TEMPORARY, VENV
from scripts.stack.registry_program import fetch_registry

REQUIREMENTS = ROOT / "requirements.txt"


def install() -> None:
    """:raises StackError: Java, Python or disk space is missing, or a download failed."""
    java = find_java()
    python = find_python()
    if running_version() not in PYTHONS:
        os.execv(python, [str(python), "-m", "scripts.stack.install"])
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    log = LOCAL / "install.log"
    # A second `make` in the same checkout waits for the first one.
    with (LOCAL / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, fingerprint = VENV / "kafka-archiver.stamp", _fingerprint()
        is_of_this_python = SPARK_HOME.exists()
        if not is_of_this_python or not stamp.exists() or stamp.read_text() != fingerprint:
            require_disk(ROOT)
            log.write_bytes(b"")
            if not is_of_this_python:
                shutil.rmtree(VENV, ignore_errors=True)
            _step("Python packages", lambda: _packages(python, log))
            stamp.write_text(fingerprint)
        _compile_batch_reader(log)
        _step("Jars of Kafka and Spark", lambda: fetch_jars(java, log))
        _step("The schema registry", lambda: fetch_registry(java, log))
        _step("Class data of Spark", lambda: make_class_data(java, log))


def _fingerprint() -> str:
    """A hash of everything that the environment depends on, with its path, which its scripts contain."""
    parts = [str(VENV).encode(), REQUIREMENTS.read_bytes(), (ROOT / "pyproject.toml").read_bytes()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _step(title: str, work: Callable[[], object]) -> None:
    begun = time.monotonic()
    work()
    seconds = time.monotonic() - begun
    if seconds > 0.5:
        print(f"{title:28} installed in {seconds:.0f} s", flush=True)


def _packages(python: Path, log: Path) -> None:
    print("Installing (some minutes the first time; details in .local/install.log) …", flush=True)
    uv = shutil.which("uv")
    if uv is None:
        uv = str(BIN / "uv")
        if not _run([python, "-m", "venv", VENV], log):
            raise StackError(f"{python} could not make .venv (Debian: apt-get install python3.11-venv); see {log}")
        pin = re.search(r"^uv==\S+", REQUIREMENTS.read_text(), re.M)
        _run([BIN / "pip", "install", pin[0] if pin else "uv"], log)
    elif not _run([uv, "venv", "--allow-existing", "--seed", "--python", python, VENV], log):
        raise StackError(f"uv could not make .venv with {python}; see {log}")
    # uv is several times faster. If it fails, pip may have settings for mirrors and certificates.
    if not _install([uv, "pip", "install", "--python", BIN / "python"], log) and not _install(
        [BIN / "python", "-m", "pip", "install"], log
    ):
        end = "\n  ".join(log.read_text(errors="replace").splitlines()[-20:])
        raise StackError(f"could not install the Python packages; the end of {log}:\n  {end}")


def _compile_batch_reader(log: Path) -> None:
    """Compile what reads and decodes records faster; without a C compiler, Python does."""
    module = ROOT / "include" / "kafka_archiver" / "records" / "native" / "compile.py"
    if not _run([BIN / "python", module], log):
        print(f"{'The batch reader':28} not compiled: no C compiler (Debian: apt-get install gcc); see {log}")


def _install(installer: list[str | Path], log: Path) -> bool:
    return _run([*installer, "-r", REQUIREMENTS], log) and _run(
        # setuptools is among the requirements, so nothing more is downloaded.
        [*installer, "--no-deps", "--no-build-isolation", "-e", ROOT],
        log,
    )


def _run(command: list[str | Path], log: Path) -> bool:
    with log.open("ab") as output:
        try:
            # The user's PYTHONPATH or active environment must not reach our process.
            own = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
            # uv leaves lock files in TMPDIR.
            env = {**own, "TMPDIR": str(TEMPORARY)}
            return subprocess.run(command, stdout=output, stderr=output, env=env, check=False).returncode == 0
        except OSError as error:
            output.write(f"{command[0]}: {error}\n".encode())
            return False


if __name__ == "__main__":
    try:
        install()
    except StackError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
