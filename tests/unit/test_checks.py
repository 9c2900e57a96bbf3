"""The checks of the code are the same for `make lint`, before a commit, and for the machine that runs the tests."""

import re
import tomllib

import yaml

from kafka_archiver import __version__
from scripts.stack.paths import ROOT

HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]


def lint() -> list[str]:
    """Return the commands of `make lint`, without the paths."""
    [recipe] = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    return [line.strip().removeprefix("@$(VENV)/").removesuffix(" .") for line in recipe.splitlines()]


def test_each_check_of_make_lint_is_a_hook_before_a_commit() -> None:
    [local] = HOOKS
    entries = [hook["entry"].removeprefix(".venv/bin/").removesuffix(" --force-exclude") for hook in local["hooks"]]
    assert entries == lint()


def test_hooks_run_from_the_environment_and_download_nothing() -> None:
    [local] = HOOKS
    assert local["repo"] == "local"
    assert {hook["language"] for hook in local["hooks"]} == {"system"}
    assert all(hook["entry"].startswith(".venv/bin/") for hook in local["hooks"])


def test_the_entrance_for_machines_checks_the_code_before_it_runs_the_tests() -> None:
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-2:] == ["make lint", "make test"]


def test_the_lock_file_names_no_host() -> None:
    lock = (ROOT / "requirements.txt").read_text()
    assert "://" not in lock
    assert not re.search(r"^-", lock, re.M)


def test_package_image_and_changelog_have_one_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    unreleased, *releases = re.findall(r"^## (\S+)", changes, re.M)
    assert unreleased == "Unreleased"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    files = (ROOT / "docker-compose.yaml", *(ROOT / "include" / "images").iterdir())
    images = [
        tag for file in files for tag in re.findall(r" kafka-archiver-(?:airflow|executor):(\S+)", file.read_text())
    ]
    assert len(images) == 5
    assert {releases[0], project, *images} == {__version__}
    assert releases == sorted(releases, reverse=True)
