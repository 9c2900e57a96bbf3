"""`.local/env.sh` in real shells."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.stack.choices import Choices
from scripts.stack.env_sh import env_sh
from scripts.stack.stack import Stack

pytestmark = pytest.mark.unit

SHOW = f"{sys.executable} -c 'import json, os; print(json.dumps(dict(os.environ)))'"
shells = pytest.mark.parametrize("shell", [shell for shell in ("sh", "dash", "bash", "zsh") if shutil.which(shell)])


def environment_after(shell: str, script: Path, times: int = 1, **before: str) -> dict[str, str]:
    commands = "; ".join([". ./env.sh"] * times + [SHOW])
    shown = subprocess.run(
        [shell, "-euc", commands],
        cwd=script.parent,
        env={"PATH": "/usr/bin:/bin", **before},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stderr == ""
    return json.loads(shown.stdout)


@shells
def test_values_arrive_as_they_are_whatever_characters_a_path_has(shell: str, tmp_path: Path) -> None:
    home = tmp_path / "a checkout, \"quoted\" 'twice' with $HOME and `ls` in it"
    home.mkdir()
    script = home / "env.sh"
    script.write_text(env_sh({"AIRFLOW_HOME": str(home), "EMPTY": ""}, home / "bin"))
    after = environment_after(shell, script)
    assert after["AIRFLOW_HOME"] == str(home)
    assert after["EMPTY"] == ""
    assert after["PATH"] == f"{home}/bin:/usr/bin:/bin"


@shells
def test_sourced_twice_it_changes_nothing_more(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "env.sh"
    script.write_text(env_sh({"AIRFLOW_URL": "http://127.0.0.1:18080"}, tmp_path / "bin"))
    assert environment_after(shell, script, times=2) == environment_after(shell, script)


@shells
def test_the_environment_is_first_on_path_even_when_it_was_there_behind_another(shell: str, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    script = tmp_path / "env.sh"
    script.write_text(env_sh({}, programs))
    after = environment_after(shell, script, PATH=f"/usr/bin:/bin:{programs}")
    assert after["PATH"].startswith(f"{programs}:")


def test_credentials_of_another_account_do_not_stay_beside_ours(tmp_path: Path) -> None:
    script = tmp_path / "env.sh"
    script.write_text(env_sh({"AWS_ACCESS_KEY_ID": "ours"}, tmp_path))
    after = environment_after("sh", script, AWS_ACCESS_KEY_ID="theirs", AWS_SESSION_TOKEN="theirs", AWS_PROFILE="work")
    assert after["AWS_ACCESS_KEY_ID"] == "ours"
    assert "AWS_SESSION_TOKEN" not in after
    assert "AWS_PROFILE" not in after


def test_the_command_line_gets_the_same_airflow_as_the_server() -> None:
    airflow = Stack.of(Choices(1000, "/somewhere/archives")).airflow
    settings = airflow.settings()
    assert settings["AIRFLOW_URL"] == settings["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:19080"
    assert settings["AIRFLOW_HOME"] == str(airflow.directory)
    assert settings["ARCHIVER_CONFIG_DIR"] == "/somewhere/archives"
