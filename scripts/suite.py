"""python -m scripts.suite: all tests, in pytest processes side by side, and one line with their sum.

The tests wait more than they work, so each share has its own process and its own services. Three at once keep two
cores busy; more of them take more CPU for the same tests. One share has all tests that the others do not name: none can
be forgotten.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.stack.paths import LOCAL, ROOT


def _integration(*names: str) -> list[str]:
    return [f"tests/integration/test_{name}.py" for name in names]


# In the order of execution: the longest shares begin first. In each, tests that start Airflow or a cluster come last,
# for these run to the end of the process. A path belongs to the share that names it most exactly.
SHARES: Mapping[str, Sequence[str]] = {
    "rest": ["tests"],
    "spark": [
        "tests/spark",
        # They read with Spark, too: it is started once.
        "tests/contract/test_csv.py",
        "tests/contract/test_formats_read_by_others.py",
        *_integration("on_a_worker", "temporary_files", "memory", "crashes"),
    ],
    "page": [
        "tests/dags",
        *_integration("decoded", "dead_letters", "restore", "restore_after_a_loss", "three_brokers"),
        *_integration("restore_dag", "page"),
    ],
    "airflow": [
        "tests/unit/test_model.py",
        *_integration("commands", "scheduler", "secrets", "killed_tasks"),
    ],
    "unit": ["tests/unit", *_integration("yarn", "timezones", "cluster")],
}
# pytest's last line: ===== 1 failed, 20 passed, 2 skipped in 75.20s (0:01:15) =====
_CLOSING = re.compile(r"^(?:=+ )?(?P<counts>\d+ \w+.*) in [\d.]+s(?: \([\d:]+\))?(?: =+)?$")
_COUNT = re.compile(r"(\d+) (failed|passed|skipped|errors?|xfailed|xpassed)\b")
_LAST_LINES = 60
_AT_ONCE = 3
_SAY_EVERY = 60.0


@dataclass(frozen=True)
class Ended:
    """The result of one share. `code`: 0 if all passed. `closing`: its closing line, or how it ended without one."""

    name: str
    output: Path
    code: int
    closing: str

    @classmethod
    def of(cls, name: str, output: Path, code: int) -> Ended:
        # librdkafka's threads may print lines after the closing line.
        lines = reversed(output.read_text(errors="replace").splitlines())
        closing = next((match["counts"] for line in lines if (match := _CLOSING.match(line))), None)
        if closing is None:
            how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            # Without a closing line the tests have not all run, even if the exit code is 0.
            code, closing = code or 1, f"ended without a closing line, {how}"
        return cls(name, output, 128 - code if code < 0 else code, closing)

    @property
    def counts(self) -> Counter[str]:
        """Tests by outcome."""
        return Counter({what.removesuffix("s"): int(number) for number, what in _COUNT.findall(self.closing)})

    def failures(self) -> str:
        """The output from the first failure on; without a failure, its last lines."""
        text = self.output.read_text(errors="replace")
        heading = re.search(r"^=+ (ERRORS|FAILURES) =+$", text, re.M)
        return text[heading.start() :] if heading else "\n".join(text.splitlines()[-_LAST_LINES:])


def run(shares: Mapping[str, Sequence[str]], output: Path, root: Path) -> int:
    """Run pytest with each share's arguments, print the failures and the sum.

    :param output: the directory for the output of each process, one file a share.
    :returns: the worst exit code.
    """
    output.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    running, stopped = dict[str, subprocess.Popen[bytes]](), threading.Event()
    # On SIGINT, pytest stops its services. Ctrl-C reaches all processes; SIGTERM reaches only this one. The handler
    # comes first: a process in a shell's background ignores SIGINT, and so would its children.
    signal.signal(signal.SIGINT, lambda *_: None)

    def stop(*_: object) -> None:
        stopped.set()
        for process in running.values():
            process.send_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, stop)
    print(f"{len(shares)} shares; their output is in {output}/*.txt", flush=True)
    waiting, last_said = [*shares], began
    while waiting or any(process.poll() is None for process in running.values()):
        at_work = sum(process.poll() is None for process in running.values())
        if stopped.is_set():
            waiting.clear()
        elif waiting and at_work < _AT_ONCE:
            name = waiting.pop(0)
            with _file(output, name).open("wb") as file:
                # No cache: the processes would overwrite each other's.
                command = [sys.executable, "-m", "pytest", "--color=no", "-p", "no:cacheprovider", *shares[name]]
                running[name] = subprocess.Popen(command, cwd=root, stdout=file, stderr=subprocess.STDOUT)
            continue
        time.sleep(0.2)
        if time.monotonic() - last_said > _SAY_EVERY:
            last_said = time.monotonic()
            how_far = (f"{name} {_how_far(_file(output, name), process)}" for name, process in running.items())
            print(f"{(last_said - began) / 60:4.0f} min   {'   '.join(how_far)}", flush=True)
    ended = [Ended.of(name, _file(output, name), process.wait()) for name, process in running.items()]
    for share in ended:
        if share.code:
            print(f"\n{f' {share.name} ':#^120}\n{share.failures()}")
    print()
    for share in ended:
        print(f"{share.name:10} {'failed' if share.code else 'passed':8} {share.closing}")
    print(closing_line(ended, time.monotonic() - began), flush=True)
    return max(share.code for share in ended)


def closing_line(ended: Sequence[Ended], seconds: float) -> str:
    """The verdict, and the sum of all processes."""
    counts = sum((share.counts for share in ended), Counter[str]())
    order = ("failed", "error", "passed", "skipped", "xfailed", "xpassed")
    counts_text = ", ".join(f"{counts[what]} {what}" for what in order if counts[what] or what in ("failed", "passed"))
    broken = [share.name for share in ended if share.code]
    verdict = f"FAILED ({', '.join(broken)})" if broken else "PASSED"
    return f"{verdict}: {counts_text} in {seconds // 60:.0f} min {seconds % 60:.0f} s"


def _how_far(output: Path, process: subprocess.Popen[bytes]) -> str:
    """The percentage that pytest prints at the end of a line of dots."""
    shown = re.findall(r"\[ *(\d+%)\]$", output.read_text(errors="replace"), re.M)
    return "has ended" if process.poll() is not None else shown[-1] if shown else "begins"


def _file(output: Path, name: str) -> Path:
    return output / f"{name}.txt"


def arguments(shares: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return pytest's arguments for each share: its paths, without those below them that other shares name."""
    named = [path for paths in shares.values() for path in paths]

    def without(paths: Sequence[str]) -> list[str]:
        return [each for each in named if any(each.startswith(f"{path}/") for path in paths) and each not in paths]

    return {name: [*paths, *(f"--ignore={each}" for each in without(paths))] for name, paths in shares.items()}


def main() -> int:
    return run(arguments(SHARES), LOCAL / "test-output", ROOT)


if __name__ == "__main__":
    sys.exit(main())
