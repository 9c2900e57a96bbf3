"""`make attack`: new seeds in each round, and the example of a failure."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from scripts.attack import PROPERTIES, failure
from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit

PROFILES = """
from hypothesis import settings
settings.register_profile("attack", derandomize=False, print_blob=True, database=None)
settings.load_profile("attack")
"""
FAILS = """
from hypothesis import given, strategies as st

@given(st.integers(0, 9), st.lists(st.integers()))
def test_it(number, numbers):
    assert number < 7 or len(numbers) < 2
"""


def output_of(folder: Path) -> str:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(PROFILES)
    (folder / "test_it.py").write_text(FAILS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--color=no",
        "-p",
        "no:randomly",
        "--hypothesis-seed=5",
        "test_it.py",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_of_a_failure_remains_the_shortest_example_and_how_to_draw_it_again(tmp_path: Path) -> None:
    shown = failure(output_of(tmp_path))
    assert "number=7" in shown
    assert "numbers=[0, 0]" in shown
    assert "@reproduce_failure" in shown
    assert "FAILED test_it.py::test_it" in shown


def test_the_suite_draws_the_same_in_every_run() -> None:
    assert settings.default is not None
    assert settings.default.derandomize


def test_what_an_attack_runs_is_there() -> None:
    assert [name for name in PROPERTIES if "@given" not in (ROOT / name).read_text()] == []
