"""Sessions of tests side by side: what a dead one left goes once, and nothing of one that lives."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.stack.paths import ROOT
from tests.support.sessions import directory_of_this, sweep

pytestmark = pytest.mark.unit

SWEEPS = "import sys; from pathlib import Path; from tests.support.sessions import sweep; sweep(Path(sys.argv[1]))"


def test_several_sessions_that_begin_at_once_remove_what_the_dead_left_and_no_more(tmp_path: Path) -> None:
    sessions = tmp_path / "test"
    mine = directory_of_this(sessions)
    # The number of no process, here and wherever pids are of 22 bits.
    for number in range(50):
        left = sessions / f"{1 << 23 | number}-abc"
        (left / "kafka" / "data").mkdir(parents=True)
    mine.mkdir()
    processes = [
        subprocess.Popen([sys.executable, "-c", SWEEPS, str(sessions)], cwd=ROOT, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    sweep(sessions)
    assert [(other.communicate(timeout=60)[1], other.returncode) for other in processes] == [(b"", 0)] * 2
    assert list(sessions.iterdir()) == [mine]
