"""The arrows between the packages, as pyproject.toml has them under [tool.importlinter]."""

from __future__ import annotations

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit


def test_every_import_points_the_way_of_the_design() -> None:
    config = str(ROOT / "pyproject.toml")
    assert lint_imports(config_filename=config, no_cache=True) == EXIT_STATUS_SUCCESS, "see `make lint`"
