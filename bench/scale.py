"""python -m bench.scale: what partitions and archives cost, each size in a process of its own, without servers.

Partitions: the steps of a run with a record in each, and of one without records, on the in-memory store. Archives: from
the YAML files to the DAGs as Airflow stores them. For history: python -m tests.support.growth.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

PARTITIONS = (1, 100, 1_000, 10_000)
ARCHIVES = (1, 100, 1_000)


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="*", default=PARTITIONS)
    parser.add_argument("--archives", type=int, nargs="*", default=ARCHIVES)
    parser.add_argument("--only", choices=["partitions", "archives"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only == "partitions":
        _partitions(options.partitions[0])
    elif options.only == "archives":
        _archives(options.archives[0])
    else:
        for kind, sizes in (("partitions", options.partitions), ("archives", options.archives)):
            for size in sizes:
                command = [sys.executable, "-m", "bench.scale", "--only", kind, f"--{kind}", str(size)]
                subprocess.run(command, check=True)


class Steps:
    """The CPU seconds of steps, in order."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def of(self, step: str) -> Iterator[None]:
        """Measure a step."""
        start = time.process_time()
        yield
        self._seconds[step] = time.process_time() - start

    def __str__(self) -> str:
        return "  ".join(f"{step} {seconds:.2f}" for step, seconds in self._seconds.items())


def _partitions(number: int) -> None:
    from kafka_archiver.store.memory import MemoryStore
    from kafka_archiver.values.ranges import Range, TopicPartition
    from kafka_archiver.work.backlog import archive_runs
    from kafka_archiver.work.close_hours import close_hours
    from kafka_archiver.work.commit import commit
    from kafka_archiver.work.plan import plan
    from kafka_archiver.work.verify import verify

    # mypy does not follow this: it does not check tests.
    support: Any = import_module("tests.support.lake")
    hour = support.hour
    store = MemoryStore(uuid.uuid4().hex)
    lake = support.Lake(store, {TopicPartition("orders", partition): Range(0, 1) for partition in range(number)})
    start = _peak()
    for title, moment in (("active", 0), ("idle", 1)):
        steps = Steps()
        lake.now = hour(moment + 1).start
        with steps.of("plan"):
            work = plan(lake.context, hour(moment), "scheduled")
        with steps.of("archive"):
            archive_runs(lake.context, work, lake.job().run)
        with steps.of("verify"):
            verify(lake.context, work.runs)
        with steps.of("commit"):
            commit(lake.context, work.runs)
        with steps.of("close_hours"):
            close_hours(lake.context, work.runs)
        size = sum(stat.size for stat in store.list(f"_ledger/{lake.name}/runs/{hour(moment).id}/"))
        print(
            f"{number:,} partitions, {title}: CPU s: {steps}; documents of the run {size / 1000:,.0f} kB, "
            f"peak {start:,.0f} → {_peak():,.0f} MiB",
            flush=True,
        )


def _archives(number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for index in range(number):
            name = f"archive_{index:04d}"
            text = f"archive: {name}\nsource: {{topics: [{name}]}}\nstore: {{url: 's3://bucket/lake'}}\n"
            (Path(folder) / f"{name}.yaml").write_text(text)
        os.environ |= {"AIRFLOW_HOME": folder, "ARCHIVER_CONFIG_DIR": folder, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
        from airflow.serialization.serialized_objects import LazyDeserializedDAG

        from kafka_archiver import airflow_dags
        from kafka_archiver.orchestration.before_fork import prepare

        prepare()
        start, steps = _peak(), Steps()
        with steps.of("DAGs made"):
            dags = airflow_dags()
        with steps.of("serialized"):
            stored = [LazyDeserializedDAG.from_dag(dag) for dag in dags.values()]
        with steps.of("the DAG of one task"):
            _of_one_task("archive_archive_0000", airflow_dags)
        print(
            f"{number:,} archives, {len(stored):,} DAGs: CPU s: {steps}; peak {start:,.0f} → {_peak():,.0f} MiB",
            flush=True,
        )


def _of_one_task(dag: str, make: Callable[[], object]) -> None:
    os.environ["_AIRFLOW_PARSING_CONTEXT_DAG_ID"] = dag
    make()


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
