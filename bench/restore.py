"""python -m bench.restore: a restore's CPU and memory beside a bare producer, on a broker and an S3 server of its own.

The same records are in memory for the bare producer, and in Parquet objects for the restore. Each step runs in a
process of its own, as a Spark task does it; Spark's own start is that of every job (docs/PERFORMANCE.md). Memory: of an
archive, and of one of four times its size.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.job import JobSettings, archive
from bench.records import records
from bench.services import Services, services
from bench.topics import fill
from kafka_archiver.jobs.endpoints import ENDPOINTS, Endpoints
from scripts.stack.errors import StackError
from scripts.stack.paths import ROOT

SIZES = (140, 1200)
STEPS = ("plan", "write", "verify")
MODES = ("plain", "transactions")
# The larger archive has so many times the records.
TIMES = 4
Figures = Mapping[str, float]


class RestoreBench:
    """Measures restores of archives in one format, and bare producers."""

    def __init__(self, running: Services, store: Mapping[str, str]) -> None:
        self._kafka, self._s3, self._store = running.kafka.bootstrap_servers, running.s3, store
        self._running = running

    def restore(self, size: int, number: int) -> dict[str, Figures]:
        """Archive records of a size and restore them; return the figures of each step."""
        source = f"bench-restore-{size}b-{number}"
        fill(self._kafka, source, 1, records(number, size, 1, 1), number)
        run = archive(self._running, source, JobSettings(cores=1, store=self._store, conf=[]))
        target = self._topic(f"{run.archive}-restored")
        endpoints = Endpoints({"bootstrap.servers": self._kafka}, self._s3.options())
        url = f"s3://{self._s3.bucket}/{run.archive}"
        return {
            step: _python("bench.restore_step", step, run.archive, url, source, target, endpoints=endpoints.to_json())
            for step in STEPS
        }

    def bare(self, size: int, number: int, mode: str) -> Figures:
        """Return the figures of the bare producer."""
        topic = self._topic(f"bench-bare-{size}b-{mode}-{time.time_ns()}")
        return _python("bench.bare_producer", self._kafka, topic, str(number), str(size), mode)

    def _topic(self, name: str) -> str:
        admin = AdminClient({"bootstrap.servers": self._kafka})
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
        return name


def _python(module: str, *arguments: str, endpoints: str = "") -> Figures:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "include"))),
        ENDPOINTS: endpoints,
    }
    done = subprocess.run([sys.executable, "-m", module, *arguments], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(
            f"{module} {' '.join(arguments[:1])} ended with code {done.returncode}: {done.stderr[-2000:]}"
        )
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def lines(size: int, number: int, bare: Mapping[str, Figures], steps: Mapping[int, Mapping[str, Figures]]) -> list[str]:
    """Return the table of one size of records.

    Of a restore: what each further record costs, and the rest, which no record changes (imports, clients, the plan).
    """
    cpu = {mode: bare[mode]["cpu"] / (number * TIMES) * 1e6 for mode in MODES}
    shown = [f"{size} B: CPU s per million records"]
    shown += [f"  bare producer, {mode:13} {cpu[mode]:6.2f}" for mode in MODES]
    for step in STEPS:
        small, large = (steps[times][step]["cpu"] for times in (1, TIMES))
        own = (large - small) / (number * (TIMES - 1)) * 1e6
        start = small - own * number / 1e6
        beside = "".join(f"  {own / cpu[mode]:5.2f} x {mode}" for mode in MODES) if step == "write" else ""
        peaks = " and ".join(f"{steps[times][step]['peak'] / (1 << 20):,.0f}" for times in (1, TIMES))
        shown.append(f"  {step:28} {own:6.2f}  + {start:.2f} s  peak MiB of 1x and {TIMES}x {peaks}{beside}")
    return shown


def main() -> int:
    """Measure and print. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.restore", description=__doc__)
    parser.add_argument(
        "--records", type=int, default=250_000, help="of 140 B in the smaller archive (default 250,000)"
    )
    parser.add_argument("--format", default="parquet", help="the objects' format (default parquet)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    results = {}
    with services(False, 10) as running:
        bench = RestoreBench(running, {"format": options.format, "content": "record"})
        for size in SIZES:
            # About as many bytes of each size.
            number = options.records if size < 1000 else options.records // 4
            steps = {times: bench.restore(size, number * times) for times in (1, TIMES)}
            bare = {mode: bench.bare(size, number * TIMES, mode) for mode in MODES}
            results[size] = {"records": number, "bare": bare, "steps": steps}
            print("\n".join(lines(size, number, bare, steps)), flush=True)
            if options.json:
                options.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (StackError, RuntimeError, OSError) as error:
        sys.exit(f"bench: {error}")
