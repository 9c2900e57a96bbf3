"""The needs of the stack on a machine: each lack is one line that says what to do, and exit code 1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.stack.checks import find_python, require_disk
from scripts.stack.errors import StackError
from scripts.stack.java import find_java
from scripts.stack.paths import ROOT
from scripts.stack.spark_conf import spark_defaults

pytestmark = pytest.mark.unit


def fake_java(directory: Path, output: str, code: int = 0) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{output}\nEND\nexit {code}\n")
    java.chmod(0o755)
    return java


def properties(version: str, home: str = "/usr/lib/jvm/some") -> str:
    return f"Property settings:\n    java.home = {home}\n    java.specification.version = {version}\n"


@pytest.mark.parametrize("module", ["scripts.stack.install", "scripts.stack"])
def test_without_java_a_command_prints_one_line_and_exits_1(module: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    arguments = ["up"] if module == "scripts.stack" else []
    ran = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**environment, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("error: Java 17 or newer is needed for Kafka and Spark, but none is on PATH and ")
    assert "apt-get install openjdk-17-jre-headless" in ran.stderr


@pytest.mark.parametrize(
    ("output", "code", "message"),
    [
        (None, 0, "JAVA_HOME is {home}, which has no bin/java"),
        (properties("1.8"), 0, "but {home}/bin/java is Java 8: install a Java 17"),
        (properties("16"), 0, "but {home}/bin/java is Java 16: install a Java 17"),
        ("error while loading shared libraries", 127, "does not run"),
    ],
    ids=["none", "8", "16", "broken"],
)
def test_a_java_that_will_not_do_is_said(
    output: str | None, code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if output:
        fake_java(tmp_path, output, code)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(StackError, match=message.format(home=tmp_path)):
        find_java()


def test_too_little_disk_is_one_line_with_what_is_needed_and_what_is_free(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"1e\+06 GiB of free disk are needed below .*, but only [0-9.]+ GiB are free"):
        require_disk(tmp_path, needed_gib=1_000_000)
    require_disk(tmp_path, needed_gib=0)


def test_another_python_than_3_11_and_3_12_is_refused_when_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 13, 1, "final", 0))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match=r"Python 3\.11 or 3\.12 is needed, but python3 is 3\.13"):
        find_python()


def test_what_runs_before_the_installation_needs_the_standard_library_alone() -> None:
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import scripts.stack.install
print({{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names) - {{"__main__"}})
"""
    # -I -S: no site-packages.
    ran = subprocess.run([sys.executable, "-ISc", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("{'scripts'}\n", "")


def test_jars_below_a_path_with_spaces_reach_spark() -> None:
    assert "spark.jars file:///a%20b/one.jar,file:///a%20b/two.jar\n" in spark_defaults(
        [Path("/a b/one.jar"), Path("/a b/two.jar")]
    )
