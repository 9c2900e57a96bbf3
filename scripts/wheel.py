"""python -m scripts.wheel: builds the wheel into dist/.

It is built from a copy: setuptools leaves a folder `build` beside pyproject.toml, and takes deleted files from it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kafka_archiver.records.native.compile import compile_all
from scripts.stack.paths import BIN, ROOT

SOURCES = ("pyproject.toml", "LICENSE", "README.md")


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout into `folder`, and return its path."""
    with tempfile.TemporaryDirectory() as copy:
        for name in SOURCES:
            shutil.copy(ROOT / name, copy)
        leftovers = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / "include" / "kafka_archiver", Path(copy, "include", "kafka_archiver"), ignore=leftovers)
        # One wheel for all platforms: on others than this one, records are read and decoded in Python.
        try:
            list(compile_all(Path(copy, "include", "kafka_archiver")))
        except OSError as error:
            sys.stderr.write(f"without its C: {error}\n")
        # setuptools is among the packages of .venv, so nothing is downloaded.
        tool: list[str | Path] = [BIN / "uv", "build", "--quiet", "--wheel", "--no-build-isolation"]
        subprocess.run([*tool, "--python", BIN / "python", "--out-dir", folder, copy], check=True)
    [wheel] = folder.glob("kafka_archiver-*.whl")
    return wheel


def main() -> None:
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    sys.stdout.write(f"{build_wheel(ROOT / 'dist').relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
