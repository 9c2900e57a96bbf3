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


@pytest.mark.parametrize("shell", [shell for shell in ("sh", "dash", "bash", "zsh") if shutil.which(shell)])
def test_values_arrive_as_they_are_however_often_it_is_sourced_and_its_programs_come_first(
    shell: str, tmp_path: Path
) -> None:
    home = tmp_path / "a checkout, \"quoted\" 'twice' with $HOME and `ls` in it"
    home.mkdir()
    script = home / "env.sh"
    script.write_text(env_sh({"AIRFLOW_HOME": str(home), "EMPTY": ""}, home / "bin"))
    after = environment_after(shell, script)
    assert after["AIRFLOW_HOME"] == str(home)
    assert after["EMPTY"] == ""
    assert after["PATH"] == f"{home}/bin:/usr/bin:/bin"
    assert environment_after(shell, script, times=2) == after
    # Also where they were there already, behind another directory.
    assert environment_after(shell, script, PATH=f"/usr/bin:/bin:{home}/bin")["PATH"].startswith(f"{home}/bin:")


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
