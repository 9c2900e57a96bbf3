"""Run a command under `bench.measure`, or under py-spy."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.usage import Usage
from scripts.stack.paths import ROOT


def measured(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, flame_graph: Path | None = None
) -> Usage:
    """Run it and wait for all it has started; its output goes to `log`.

    :param flame_graph: an SVG file for py-spy's picture of its Python processes, which slows it down.
    :raises RuntimeError: it failed.
    """
    settings = {**os.environ, **(environment or {})}
    # Without its cache of compiled modules every Python process would start at twice the cost.
    settings.pop("PYTHONDONTWRITEBYTECODE", None)
    settings["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, ROOT / "include")))
    result = log.with_suffix(".json")
    result.unlink(missing_ok=True)
    profiler = _profiler(flame_graph) if flame_graph else []
    whole = [*profiler, sys.executable, "-m", "bench.measure", str(result), str(log), *command]
    done = subprocess.run(whole, env=settings, cwd=log.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if not result.exists():
        raise RuntimeError(f"{whole[0]} ended with code {done.returncode}: {done.stdout.decode(errors='replace')}")
    usage = Usage.from_dict(json.loads(result.read_text()))
    if usage.code != 0:
        end = "\n  ".join(log.read_text(errors="replace").splitlines()[-20:])
        raise RuntimeError(f"{command[0]} ended with code {usage.code}; the end of {log}:\n  {end}")
    return usage


def _profiler(flame_graph: Path) -> list[str]:
    flame_graph.parent.mkdir(parents=True, exist_ok=True)
    options = [
        "record",
        "--subprocesses",
        "--native",
        "--nolineno",
        "--rate",
        "50",
        "--format",
        "flamegraph",
        "--output",
    ]
    return [str(Path(sysconfig.get_path("scripts")) / "py-spy"), *options, str(flame_graph), "--"]
