"""python -m bench.idle: what an interval without a record costs in a real Airflow, for each archive.

Each archive has a topic of its own, which is empty, and one finished run: the next ones are what each hour costs. CPU
is that of all of Airflow's processes, less what they use in the same time while nothing runs; broker and store come
apart.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

import psutil
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.services import Services, services
from scripts.stack.airflow import Airflow, AirflowPorts
from scripts.stack.ports import free_ports
from scripts.stack.process import Service
from scripts.stack.rest import RestApi
from scripts.stack.stack import connections

YAML = """\
archive: {name}
schedule: null
source: {{topics: [{name}]}}
store: {{url: 's3://archive/idle'}}
"""
SECONDS = 900


class Cpu(NamedTuple):
    """CPU seconds so far."""

    airflow: float
    broker: float
    store: float

    def since(self, before: "Cpu") -> "Cpu":
        """The difference."""
        return Cpu(*(after - earlier for after, earlier in zip(self, before, strict=True)))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.idle", description=__doc__)
    parser.add_argument("--archives", type=int, default=20, help="default: 20")
    parser.add_argument("--rounds", type=int, default=3, help="measured runs of each archive (default: 3)")
    options = parser.parse_args()
    names = [f"idle{number:03d}" for number in range(options.archives)]
    with services(fresh=True, needed_gib=2) as started, airflow_with(started, names) as airflow:
        api = RestApi(airflow.url)
        _wait(lambda: all(api.ask("GET", f"/dags/archive_{name}", missing_ok=True) for name in names))
        for name in names:
            api.ask("PATCH", f"/dags/archive_{name}", {"is_paused": False})
        _round(api, names, 0)
        before, begun = _cpu(airflow, started), time.monotonic()
        time.sleep(30)
        quiet, waited = _cpu(airflow, started).since(before), time.monotonic() - begun
        before, begun = _cpu(airflow, started), time.monotonic()
        for number in range(1, options.rounds + 1):
            _round(api, names, number)
        used, took = _cpu(airflow, started).since(before), time.monotonic() - begun
    runs = options.archives * options.rounds
    own = [(u - q * took / waited) / runs for u, q in zip(used, quiet, strict=True)]
    print(
        f"{runs} runs of {options.archives} archives in {took:.0f} s; nothing runs: {quiet.airflow / waited:.2f} cores"
    )
    print(f"CPU seconds a run: Airflow {own[0]:.2f}, broker {own[1]:.3f}, store {own[2]:.3f}")
    print(f"500 archives an hour: {500 * own[0]:,.0f} CPU seconds of Airflow, {500 * own[0] / 3600:.2f} cores")


def _round(api: RestApi, names: list[str], number: int) -> None:
    """One run of each archive, until all have succeeded."""
    moment = datetime.now(UTC).replace(microsecond=0)
    for name in names:
        api.ask("POST", f"/dags/archive_{name}/dagRuns", {"logical_date": moment.isoformat(), "conf": {}})
    until = time.monotonic() + SECONDS

    def done() -> bool:
        assert time.monotonic() < until, f"round {number} takes more than {SECONDS} seconds"
        dag_runs = api.ask("GET", "/dags/~/dagRuns", limit=100, order_by="-run_after")["dag_runs"]
        states = [run["state"] for run in dag_runs if datetime.fromisoformat(run["logical_date"]) == moment]
        assert "failed" not in states
        return states.count("success") == len(names)

    _wait(done)


def _wait(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(1)


@contextmanager
def airflow_with(started: Services, names: list[str], partitions: int = 1) -> Iterator[Airflow]:
    """Start an Airflow with an archive for each name, of a new topic of the same name."""
    archives = started.directory / "idle" / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    for left in archives.iterdir():
        left.unlink()
    for name in names:
        (archives / f"{name}.yaml").write_text(YAML.format(name=name))
    admin = AdminClient({"bootstrap.servers": started.kafka.bootstrap_servers})
    for creation in admin.create_topics([NewTopic(name, partitions) for name in names]).values():
        creation.result(30)
    airflow = Airflow(
        started.directory / "idle" / "airflow",
        free_ports(AirflowPorts),
        archives,
        connections(started.kafka, started.s3),
        {"AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600"},
    )
    try:
        airflow.start()
        yield airflow
    finally:
        airflow.stop()


def _cpu(airflow: Airflow, started: Services) -> Cpu:
    return Cpu(*(_of(service) for service in (airflow, started.kafka, started.s3)))


def _of(service: Service) -> float:
    """The CPU seconds of a service's processes, and of those that have ended."""
    root = psutil.Process(int(service.pid_file.read_text()))
    return sum(sum(process.cpu_times()[:4]) for process in (root, *root.children(recursive=True)))


if __name__ == "__main__":
    main()
