"""The arrows between the packages, as pyproject.toml has them under [tool.importlinter]."""

from __future__ import annotations

import subprocess

import pytest

from scripts.stack.paths import BIN, ROOT

pytestmark = pytest.mark.unit


def test_every_import_points_the_way_of_the_design() -> None:
    # In a process of its own: it sets up logging, which would turn off the loggers that other tests listen to.
    run = subprocess.run([BIN / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
