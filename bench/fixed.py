"""python -m bench.fixed: the fixed cost of an active run in a real Airflow, for each of its processes.

One archive of few records, so that nearly all is the cost of starting: the five task processes, spark-submit's JVM, the
driver and the Python workers. Airflow's own services are listed apart, less what they use while nothing runs. CPU is
that of /proc, read twenty times a second: the last fraction of each process is missing.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
from confluent_kafka import Producer

from bench.idle import airflow_with
from bench.records import records
from bench.services import services
from scripts.stack.airflow import Airflow
from scripts.stack.rest import RestApi

NAME = "fixed"
PARTITIONS = 4
TASKS = ("plan", "archive", "verify", "commit", "close_hours")
KINDS = (*(f"task {name}" for name in TASKS), "JVM", "driver", "workers", "supervisors")
SECONDS = 300
INTERVAL = 0.05


class Sampler:
    """The CPU seconds of Airflow's processes by kind, from the moment that it is made."""

    def __init__(self, airflow: Airflow) -> None:
        self._root = psutil.Process(int(airflow.pid_file.read_text()))
        self._base: dict[int, float] = {}
        for process in self._all():
            with suppress(psutil.Error):
                self._base[process.pid] = _cpu(process)
        self._latest: dict[int, float] = {}
        self._kinds: dict[int, str] = {}
        self._orphans: dict[int, psutil.Process] = {}
        self._tasks: dict[str, list[float]] = {}

    def look(self) -> None:
        """Read each process once."""
        moment = time.monotonic()
        for process in (*self._all(), *self._orphans.values()):
            with suppress(psutil.Error):
                # Raises an exception if the process has ended, so that its last figure stays.
                self._latest[process.pid] = _cpu(process) - self._base.get(process.pid, 0.0)
                if kind := self._kind_of(process):
                    self._kinds[process.pid] = kind
                    span = self._tasks.setdefault(kind, [moment, moment])
                    span[1] = moment
                # Spark's daemon outlives its JVM for a moment, as a child of nobody.
                if process.pid not in self._base:
                    self._orphans[process.pid] = process

    def usage(self, names: Mapping[str, str]) -> dict[str, float]:
        """Return the CPU seconds of each kind. `names`: the task of each id of a task instance."""
        sums: dict[str, float] = defaultdict(float)
        for pid, seconds in self._latest.items():
            kind = self._kinds.get(pid, "services")
            sums[names.get(kind, kind)] += seconds
        return sums

    def spans(self, names: Mapping[str, str]) -> Mapping[str, float]:
        """Return the wall seconds between the first and the last sight of each kind."""
        return {names.get(kind, kind): end - start for kind, (start, end) in self._tasks.items()}

    def _all(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return [self._root, *self._root.children(recursive=True)]
        return []

    def _kind_of(self, process: psutil.Process) -> str:
        if process.name() == "java":
            return "JVM"
        line = process.cmdline()
        if {"pyspark.daemon", "kafka_archiver.spark.daemon"} & {*line}:
            return "workers"
        if any("spark_jobs/archive.py" in part for part in line):
            # spark-submit is a shell that becomes Java.
            return "driver" if "python" in line[0] else "JVM"
        title = " ".join(line)
        if process.pid in self._base:
            return "supervisors" if "LocalExecutor" in title else ""
        # A task's process has the title of its parent first, then the id of the task instance.
        return title.split()[-1] if title.startswith("airflow worker") else ""


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.fixed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="measured runs (default: 5)")
    parser.add_argument("--records", type=int, default=10_000, help="records of each run (default: 10000)")
    parser.add_argument("--size", type=int, default=140, help="bytes of a value (default: 140)")
    parser.add_argument("--json", type=Path, help="write the figures of each run to this file")
    options = parser.parse_args()
    with services(fresh=True, needed_gib=2) as started, airflow_with(started, [NAME], PARTITIONS) as airflow:
        api = RestApi(airflow.url)
        _wait(lambda: api.ask("GET", f"/dags/archive_{NAME}", missing_ok=True))
        api.ask("PATCH", f"/dags/archive_{NAME}", {"is_paused": False})
        runs = []
        for number in range(options.rounds + 1):
            _produce(started.kafka.bootstrap_servers, options.records, options.size)
            run = _round(api, airflow)
            if number:
                runs.append(run)
                print(_line(run), flush=True)
    if options.json:
        options.json.write_text(json.dumps(runs, indent=1) + "\n")
    print("\nmedian\n" + _line({name: statistics.median(run[name] for run in runs) for name in runs[0]}))
    print("least\n" + _line({name: min(run[name] for run in runs) for name in runs[0]}))


def _line(run: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {seconds:.2f}" for name, seconds in run.items())


def _round(api: RestApi, airflow: Airflow) -> dict[str, float]:
    """Trigger a run, and wait until it has succeeded. Returns its CPU and wall seconds."""
    sampler = Sampler(airflow)
    moment = datetime.now(UTC).replace(microsecond=0)
    api.ask("POST", f"/dags/archive_{NAME}/dagRuns", {"logical_date": moment.isoformat(), "conf": {}})
    asked = begun = time.monotonic()
    run: dict[str, Any] = {}
    while time.monotonic() < begun + SECONDS:
        sampler.look()
        time.sleep(INTERVAL)
        if time.monotonic() > asked + 2:
            asked = time.monotonic()
            run = api.ask("GET", f"/dags/archive_{NAME}/dagRuns", order_by="-run_after", limit=1)["dag_runs"][0]
            if run["state"] in ("success", "failed"):
                break
    assert run["state"] == "success", run
    listed = api.ask("GET", f"/dags/archive_{NAME}/dagRuns/{quote(run['dag_run_id'])}/taskInstances")
    names = {instance["id"]: f"task {instance['task_id']}" for instance in listed["task_instances"]}
    usage, spans = sampler.usage(names), sampler.spans(names)
    took = {kind: usage.get(kind, 0.0) for kind in KINDS}
    tasks = sum(usage.get(f"task {name}", 0.0) for name in TASKS)
    job = sum(usage.get(kind, 0.0) for kind in ("JVM", "driver", "workers"))
    lasted = datetime.fromisoformat(run["end_date"]) - datetime.fromisoformat(run["start_date"])
    return {
        **took,
        "tasks": tasks,
        "job": job,
        "all": tasks + job + took["supervisors"],
        "services": usage.get("services", 0.0),
        "wall": lasted.total_seconds(),
        "wall of archive": spans.get("task archive", 0.0),
    }


def _produce(brokers: str, number: int, size: int) -> None:
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 20})
    for record in records(number, size, 1, PARTITIONS, False):
        producer.produce(NAME, record.value, record.key, record.partition)
        producer.poll(0)
    assert not producer.flush(60)


def _wait(condition: Callable[[], object]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(1)


if __name__ == "__main__":
    main()
