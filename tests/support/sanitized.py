"""Tests of C sources in a process of its own, below the address and the undefined behaviour sanitizer."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafka_archiver.records.native.compile import compile_source

_FLAGS = (
    *("-std=c99", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)


def run_tests(
    sources: Sequence[Path], directory: Path, chosen: str, files: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Run the chosen tests of some files with sanitized binaries of the sources; skip where these cannot be compiled.

    The memory is that of the system's malloc, whose ends the address sanitizer guards.

    :param directory: an empty one, for the binaries.
    :param chosen: pytest's expression of names.
    """
    compiler = os.environ.get("CC") or "cc"
    preload = subprocess.check_output([compiler, "-print-file-name=libasan.so"], text=True).strip()
    for source in sources:
        (directory / source.name).write_bytes(source.read_bytes())
        try:
            compile_source(directory / source.name, list(_FLAGS))
        except OSError as error:
            pytest.skip(str(error))
    # What is slowed down most is drawn least; the properties themselves have all their examples.
    (directory / "sanitized.py").write_text(
        "from pathlib import Path\nfrom hypothesis import settings\nfrom kafka_archiver.records.native import load\n"
        f"load.files = lambda _: Path({str(directory)!r})\n"
        "def pytest_sessionstart():\n"
        "    settings.register_profile('sanitized', settings.default, max_examples=25)\n"
        "    settings.load_profile('sanitized')\n"
    )
    environment = os.environ | {
        "LD_PRELOAD": preload,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONPATH": f"{directory}:{os.environ.get('PYTHONPATH', '')}",
    }
    # -s: what the sanitizer says before the process ends.
    options = ["-q", "-s", "-p", "sanitized", "-p", "no:cacheprovider", "-k", chosen]
    command = [sys.executable, "-m", "pytest", *options, *files]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
