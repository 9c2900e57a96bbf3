"""All tests in several processes: what fails, crashes or is not there in one of them fails the whole."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.stack.paths import ROOT
from scripts.suite import SHARES
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


@pytest.mark.parametrize(
    ("second", "code", "last", "message"),
    [
        pytest.param(LOUD, 0, "PASSED: 0 failed, 4 passed in ", "", id="has more to say at its end"),
        pytest.param(SKIPS, 0, "PASSED: 0 failed, 3 passed, 1 skipped in ", "", id="skips"),
        pytest.param(FAILS, 1, "FAILED (share 1): 1 failed, 3 passed in ", "assert (6 * 9) == 42", id="fails"),
        pytest.param(BREAKS, 1, "FAILED (share 1): 0 failed, 1 error, 3 passed in ", "ZeroDivisionError", id="breaks"),
        pytest.param(DIES, 137, "FAILED (share 1): 0 failed, 2 passed in ", "closing line, killed by", id="dies"),
        pytest.param(LEAVES, 1, "FAILED (share 1): 0 failed, 2 passed in ", "closing line, exit code 0", id="leaves"),
        pytest.param(EMPTY, 5, "FAILED (share 1): 0 failed, 2 passed in ", "no tests ran", id="collects nothing"),
        pytest.param(None, 4, "FAILED (share 1): 0 failed, 2 passed in ", "not found: ", id="is not there"),
    ],
)
def test_the_last_line_is_the_sum_and_the_exit_code_the_worst(
    second: str | None, code: int, last: str, message: str, tmp_path: Path
) -> None:
    process = start(tmp_path, PASSES, second)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == code, output
    assert output.splitlines()[-1].startswith(last), output
    assert message in output
    assert "share 0    passed   2 passed" in output


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
