"""Run a command under `bench.measure`."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.usage import Usage
from scripts.stack.paths import ROOT


def measured(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> Usage:
    """Run a command and wait for all its processes; `log` gets its output. :raises RuntimeError: it failed."""
    settings = {**os.environ, **environment}
    # Without compiled modules every Python process would take twice as long to start.
    settings.pop("PYTHONDONTWRITEBYTECODE", None)
    settings["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, ROOT / "include")))
    result = log.with_suffix(".json")
    result.unlink(missing_ok=True)
    whole = [sys.executable, "-m", "bench.measure", str(result), str(log), *command]
    done = subprocess.run(whole, env=settings, cwd=log.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if not result.exists():
        raise RuntimeError(f"{whole[0]} ended with code {done.returncode}: {done.stdout.decode(errors='replace')}")
    usage = Usage.from_dict(json.loads(result.read_text()))
    if usage.code != 0:
        end = "\n  ".join(log.read_text(errors="replace").splitlines()[-20:])
        raise RuntimeError(f"{command[0]} ended with code {usage.code}; the end of {log}:\n  {end}")
    return usage
