"""Run a command under `bench.measure`."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.usage import Usage
from scripts.stack.paths import ROOT


def measured(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Usage:
    """Run it and wait for all it has started; its output goes to `log`.

    :raises RuntimeError: it failed.
    """
    settings = {**os.environ, **(environment or {})}
    # Without its cache of compiled modules every Python process would start at twice the cost.
    settings.pop("PYTHONDONTWRITEBYTECODE", None)
    settings["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, ROOT / "include")))
    done = subprocess.run(
        [sys.executable, "-m", "bench.measure", str(log), *command],
        env=settings,
        cwd=log.parent,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    usage = Usage.from_dict(json.loads(done.stdout))
    if usage.code != 0:
        end = "\n  ".join(log.read_text(errors="replace").splitlines()[-20:])
        raise RuntimeError(f"{command[0]} ended with code {usage.code}; the end of {log}:\n  {end}")
    return usage
