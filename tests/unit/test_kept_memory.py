"""A writing process keeps what it frees for the next row group, unless somebody has chosen otherwise."""

import os
import subprocess
import sys

import pytest

from kafka_archiver.records.writer.memory import CHOICES
from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit

_PROGRAM = """
import sys
from pathlib import Path
import pyarrow as pa
from kafka_archiver.records.writer.memory import keep_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

keep_freed_memory()
before = resident()
for size in map(int, sys.argv[1:]):
    pieces = [b"x" * size for _ in range((96 << 20) // size)]
    del pieces
    print(pa.default_memory_pool().backend_name, (resident() - before) >> 20)
"""


def _kept(*sizes: int, **variables: str) -> list[list[str]]:
    environment = {name: value for name, value in os.environ.items() if name not in CHOICES}
    command = [sys.executable, "-c", _PROGRAM, *map(str, sizes)]
    environment |= {"PYTHONPATH": str(ROOT / "include"), **variables}
    return [line.split() for line in subprocess.check_output(command, env=environment, text=True).splitlines()]


def test_memory_of_a_row_group_stays_and_that_of_large_values_goes_back() -> None:
    (pool, small), (_, large) = _kept(1 << 20, 48 << 20)
    assert pool == "system"
    assert int(small) >= 80
    assert int(large) <= int(small) + 8


def test_a_choice_of_the_environment_stays() -> None:
    [[pool, small]] = _kept(1 << 20, ARROW_DEFAULT_MEMORY_POOL="mimalloc")
    assert pool == "mimalloc"
    assert int(small) <= 40
