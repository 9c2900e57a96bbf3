"""python -m bench: the table, JSON for machines, and what got slower since a saved run."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.compare import changes
from bench.figures import Result
from bench.job import JobSettings
from bench.runner import FEW, Bench
from bench.scenarios import SCENARIOS
from bench.services import services
from bench.table import table
from scripts.stack.errors import StackError


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not (text.lstrip("-").isdecimal() and int(text) >= least):
            raise argparse.ArgumentTypeError(f"expected a number, {least:,} or more, found {text!r}")
        return int(text)

    return number


def _pair(text: str) -> str:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, found {text!r}")
    return text


def _new_file(text: str) -> Path:
    directory = Path(text).resolve().parent
    if not directory.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {directory}")
    return Path(text)


def _saved(text: str) -> dict[str, Any]:
    try:
        scenarios: dict[str, Any] = json.loads(Path(text).read_text())["scenarios"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise argparse.ArgumentTypeError(f"{text}: expected a file from --json, found {error!r}") from error
    return scenarios


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure the archive job beside a bare program."
    )
    parser.add_argument(
        "--records", type=_at_least(FEW + 1), default=1_000_000, help="in each scenario (default 1,000,000)"
    )
    usual = [name for name, scenario in SCENARIOS.items() if scenario.usual]
    parser.add_argument(
        "--scenario",
        choices=list(SCENARIOS),
        nargs="+",
        default=usual,
        help=f"default: all but {', '.join(name for name in SCENARIOS if name not in usual)}",
    )
    parser.add_argument(
        "--repeat", type=_at_least(1), default=1, metavar="N", help="run each N times; the table has medians"
    )
    parser.add_argument("--no-bare", action="store_true", help="leave the bare program out")
    parser.add_argument("--cores", type=_at_least(1), default=2, help="Spark's cores, in the driver's JVM")
    parser.add_argument("--master", help="of a Spark cluster, whose CPU counts as that of the machine (default: local)")
    parser.add_argument("--reader", choices=["auto", "native", "spark"], default="auto", help="how records are read")
    parser.add_argument("--conf", type=_pair, nargs="+", default=[], metavar="KEY=VALUE", help="for spark-submit")
    parser.add_argument("--fresh", action="store_true", help="make the topics anew")
    parser.add_argument("--json", type=_new_file, metavar="FILE", help="write all figures there")
    parser.add_argument(
        "--compare",
        type=_saved,
        default={},
        metavar="FILE",
        help="a file from --json: print what takes more CPU now; the exit code is 1 then",
    )
    return parser.parse_args()


def main() -> int:
    """Run what was asked for. Returns the exit code: 1 if something is slower than in the saved run."""
    options = _arguments()
    # On SIGTERM, exit in order, so that the services stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    chosen = {name: SCENARIOS[name] for name in options.scenario}
    topics = {scenario.topic(0): scenario for scenario in chosen.values()}
    # Uncompressed topics, compressed objects of each run, and temporary files.
    topics_bytes = options.records * sum(s.size + 100 for s in topics.values())
    objects_bytes = options.records * options.repeat * sum(s.size + 100 for s in chosen.values())
    needed = 1 + (topics_bytes + objects_bytes) / (1 << 30)

    def say(what: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {what}", file=sys.stderr, flush=True)

    results: dict[str, list[Result]] = {name: [] for name in chosen}
    with services(options.fresh, needed) as running:
        settings = JobSettings(
            cores=options.cores, store={}, conf=options.conf, reader=options.reader, master=options.master
        )
        bench = Bench(running, settings, options.records, say)
        # Turn by turn, so that a slow spell of the machine meets all scenarios.
        for _ in range(options.repeat):
            for name, scenario in chosen.items():
                results[name].append(bench.run(name, scenario, not options.no_bare))
                # After each run, so that an interrupted bench keeps its figures.
                current = {name: [run.to_dict() for run in runs] for name, runs in results.items() if runs}
                if options.json:
                    options.json.write_text(json.dumps({"scenarios": current}, indent=2) + "\n")
    print(table(results))
    if not options.compare:
        return 0
    compared = changes(options.compare, current)
    print("\n".join(["", *map(str, compared)]))
    return int(any(change.slower for change in compared))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (StackError, RuntimeError, ValueError, OSError, KeyError) as error:
        sys.exit(f"bench: {error}")
