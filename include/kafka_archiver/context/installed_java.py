"""The Java of this machine, as Spark finds it."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_RELEASE = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)
_SHOWN = re.compile(r'version "(\d+)')


def java_program(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the path of `java`: of JAVA_HOME, else on the PATH."""
    home = environment.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environment.get("PATH"))


def java_version(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return its version, as `17`; None: there is no Java. It starts only if it has no file `release`."""
    program = java_program(environment)
    if program is None:
        return None
    try:
        release = Path(program).resolve().parents[1] / "release"
        if match := _RELEASE.search(release.read_text("utf-8", errors="replace")):
            return match[1]
    except OSError:
        pass
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _SHOWN.search(done.stderr + done.stdout)
    return match[1] if match else None
