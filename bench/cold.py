"""python -m bench.cold: measures a cold job of a few records, beside the first job of a plain Spark session."""

import argparse
import os
import statistics
from collections.abc import Callable
from dataclasses import replace

from bench.commands import measured
from bench.job import JobSettings, archive
from bench.records import records
from bench.scenarios import Scenario
from bench.services import Services, services
from bench.topics import fill
from bench.usage import Usage
from scripts.stack.java import find_java
from scripts.stack.paths import BIN
from scripts.stack.settings import spark_settings

# With so few records, the time is that of the start.
TINY = 1000
_PLAIN = """from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate().range(1000).count()
"""


def main() -> None:
    """Print CPU and wall seconds: medians of several runs."""
    parser = argparse.ArgumentParser(prog="python -m bench.cold", description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="run each N times, in turns (default 3)")
    options = parser.parse_args()
    scenario = Scenario(size=1200)
    with services(fresh=False, needed_gib=1) as running:
        batch = records(TINY, scenario.size, scenario.hours, scenario.partitions, scenario.skewed)
        topic = scenario.topic(TINY)
        fill(running.kafka.bootstrap_servers, topic, scenario.partitions, batch, TINY)
        settings = JobSettings(cores=2, store={}, conf=[])
        without = replace(settings, conf=["spark.driver.defaultJavaOptions=-XX:-UsePerfData -XX:+UseSerialGC"])
        commands: dict[str, Callable[[], Usage]] = {
            "as the DAG submits it": lambda: archive(running, topic, settings).usage,
            "the same without a class-data archive": lambda: archive(running, topic, without).usage,
            "a plain Spark session's first job": lambda: _plain(running),
        }
        usages: dict[str, list[Usage]] = {name: [] for name in commands}
        for _ in range(options.repeat):
            for name, run in commands.items():
                usages[name].append(run())
    reference = statistics.median(u.total for u in usages["a plain Spark session's first job"])
    print(f"{'CPU seconds':42} {'JVM':>6} {'driver':>7} {'workers':>8} {'all':>6} {'of plain':>9} {'wall':>6}")
    for name, runs in usages.items():
        kinds = [statistics.median(u.cpu.get(kind, 0.0) for u in runs) for kind in ("jvm", "driver", "worker")]
        total, wall = statistics.median(u.total for u in runs), statistics.median(u.wall for u in runs)
        jvm, driver, workers = kinds
        print(f"{name:42} {jvm:6.1f} {driver:7.1f} {workers:8.1f} {total:6.1f} {total / reference:9.2f} {wall:6.1f}")


def _plain(running: Services) -> Usage:
    program = running.directory / "plain.py"
    program.write_text(_PLAIN)
    command = [str(BIN / "spark-submit"), "--master", "local[2]", "--conf", "spark.log.level=WARN", str(program)]
    # An empty conf directory: without our settings.
    conf = running.directory / "no-conf"
    conf.mkdir(exist_ok=True)
    directories = {"SPARK_CONF_DIR": str(conf), "TMPDIR": str(running.directory), "PATH": os.environ["PATH"]}
    environment = {**spark_settings(find_java()), **directories}
    return measured(command, running.directory / "plain.log", environment)


if __name__ == "__main__":
    main()
