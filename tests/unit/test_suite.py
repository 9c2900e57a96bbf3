"""All tests in several processes: what fails, crashes or is not there in one of them fails the whole."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.stack.paths import ROOT
from scripts.suite import SHARES, arguments
from tests.support.waiting import until

pytestmark = pytest.mark.unit

PASSES = "def test_it(): pass\n\ndef test_that(): pass\n"
FAILS = "def test_it(): pass\n\ndef test_that(): assert 6 * 9 == 42\n"
BREAKS = "import pytest\n\n@pytest.fixture\ndef broken(): yield; 1 / 0\n\ndef test_it(broken): pass\n"
LOUD = PASSES + "import atexit, os\natexit.register(os.write, 2, b'%3|FAIL|rdkafka: and more\\n' * 9)\n"
SKIPS = "import pytest\n\ndef test_it(): pytest.skip('not today')\n\ndef test_that(): pass\n"
DIES = "import os, signal\n\ndef test_it(): os.kill(os.getpid(), signal.SIGKILL)\n"
LEAVES = "import os\n\ndef test_it(): os._exit(0)\n"
EMPTY = "x = 1\n"
WAITS = """
import pathlib, threading, pytest

@pytest.fixture
def service():
    pathlib.Path("up").touch()
    yield
    pathlib.Path("up").unlink()

def test_it(service): threading.Event().wait(100)
"""


def start(folder: Path, *sources: str | None) -> "subprocess.Popen[str]":
    """All of it, a share a source."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for number, source in enumerate(sources):
        if source is not None:
            (folder / f"test_{number}.py").write_text(source)
    shares = {f"share {number}": [f"test_{number}.py"] for number in range(len(sources))}
    (folder / "run.py").write_text(
        "import sys\nfrom pathlib import Path\nfrom scripts import suite\nsuite._SAY_EVERY = 0.5\n"
        f"sys.exit(suite.run({shares!r}, Path('output'), Path()))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.Popen(
        [sys.executable, "run.py"], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def test_what_passes_is_summed_whatever_else_is_said(tmp_path: Path) -> None:
    process = start(tmp_path, PASSES, LOUD, SKIPS)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert output.splitlines()[-1].startswith("PASSED: 0 failed, 5 passed, 1 skipped in "), output


def test_the_last_line_is_the_sum_and_the_exit_code_the_worst(tmp_path: Path) -> None:
    process = start(tmp_path, PASSES, FAILS, BREAKS, DIES, LEAVES, EMPTY, None)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGKILL, output
    failed = ", ".join(f"share {number}" for number in range(1, 7))
    assert output.splitlines()[-1].startswith(f"FAILED ({failed}): 1 failed, 1 error, 4 passed in "), output
    assert "assert (6 * 9) == 42" in output
    assert "ZeroDivisionError" in output
    for line in (
        "share 0    passed   2 passed",
        "share 3    failed   ended without a closing line, killed by signal 9",
        "share 4    failed   ended without a closing line, exit code 0",
        "share 5    failed   ended without a closing line, exit code 5",
        "share 6    failed   ended without a closing line, exit code 4",
    ):
        assert line in output
    assert "no tests ran" in output
    assert "not found: " in output


def test_it_says_how_far_it_is_and_when_told_to_end_lets_pytest_end_its_services(tmp_path: Path) -> None:
    process = start(tmp_path, WAITS)
    until((tmp_path / "up").exists)
    assert process.stdout is not None
    until(lambda: "min   share 0 begins" in process.stdout.readline())  # type: ignore[union-attr]
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2, output
    assert output.splitlines()[-1].startswith("FAILED (share 0): 0 failed, 0 passed in ")
    assert not (tmp_path / "up").exists()


def test_what_the_shares_name_is_there() -> None:
    named = [path for paths in SHARES.values() for path in paths]
    assert len(named) == len(set(named))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_each_path_is_of_the_share_that_names_it_most_exactly() -> None:
    shares = {"all": ["t"], "a": ["t/a", "t/b/x.py"], "b": ["t/b"]}
    assert arguments(shares) == {
        "all": ["t", "--ignore=t/a", "--ignore=t/b/x.py", "--ignore=t/b"],
        "a": ["t/a", "t/b/x.py"],
        "b": ["t/b", "--ignore=t/b/x.py"],
    }
