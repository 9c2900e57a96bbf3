"""Runs the model test for some time: `python -m tests.support.model_run --minutes 30 [--twins]`.

Prints statistics, and the shortest sequence for each failure; the exit code is 1 if there was one.
"""

import argparse
import functools
import logging
import random
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from kafka_archiver.kafka import cluster
from kafka_archiver.model import marks, proof, settling
from kafka_archiver.planning import interval_offsets, time_boundary
from kafka_archiver.records.pipeline.transform import code
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.values import threads
from kafka_archiver.work.archive import publish, replay
from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.ports import free_ports
from scripts.stack.s3 import S3, S3Ports
from tests.support import mapped
from tests.support.model import Model
from tests.support.three_brokers import SESSION_SECONDS, ThreeBrokers
from tests.support.worlds import RealWorld, ThreeBrokerWorld


@contextmanager
def one_thread() -> Iterator[None]:
    """No thread pools, for a reproducible sequence; short guards, searches' ends, stretches, pages, marks."""
    with (
        patch.object(interval_offsets, "GUARD", 2),
        patch.object(time_boundary, "SMALL", 1),
        patch.object(threads, "THREADS", 1),
        patch.object(publish, "complete", functools.partial(complete, threads=1)),
        patch.object(replay, "complete", functools.partial(complete, threads=1)),
        patch.object(settling, "LONG", 2),
        patch.object(proof, "PAGE", 2),
        patch.object(marks, "MARKS", 3),
        patch.object(code, "digest_of", mapped.digest_now),
    ):
        yield


def run(machine: type[Model], examples: int, steps: int, shrink: bool = True, number: int | None = None) -> None:
    """Run sequences until one fails, and shrink that one."""
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        phases=phases,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    if number is not None:
        machine = seed(number)(type("Model", (machine,), {"statistics": machine.statistics}))
    with one_thread():
        run_state_machine_as_test(machine, settings=chosen)


def real(kafka: Kafka, s3: S3) -> type[Model]:
    """The model on real servers."""
    return type("RealModel", (Model,), {"world_of": staticmethod(functools.partial(RealWorld, kafka, s3))})


def cut(kafka: ThreeBrokers, s3: S3) -> type[Model]:
    """The model on a cluster of three brokers, of which one is cut off at times."""
    return type("CutModel", (Model,), {"world_of": staticmethod(functools.partial(ThreeBrokerWorld, kafka, s3))})


@contextmanager
def with_spark(directory: Path) -> Iterator[type[Model]]:
    """The model with SQL, in a Spark of this process."""
    # Imported late: it loads Spark.
    from tests.support.spark_session import local_spark
    from tests.support.sql_model import sql_model

    with local_spark(directory, str(directory)) as spark:
        yield sql_model(spark)


@contextmanager
def servers(directory: Path, three_brokers: bool = False) -> Iterator[type[Model]]:
    """The model on servers of its own."""
    s3 = S3(directory / "s3", free_ports(S3Ports))
    kafka = Kafka(directory / "kafka", free_ports(KafkaPorts))
    with ExitStack() as stack:
        stack.callback(s3.stop, grace=0)
        s3.start()
        if three_brokers:
            # Its controller misses a broker after three seconds.
            stack.enter_context(patch.object(cluster, "SESSION_SECONDS", SESSION_SECONDS + 2))
            yield cut(stack.enter_context(ThreeBrokers(directory).running()), s3)
        else:
            stack.callback(kafka.stop, grace=0)
            kafka.start()
            yield real(kafka, s3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--twins", action="store_true", help="in memory instead of on real servers")
    parser.add_argument("--three-brokers", action="store_true", help="real servers: of three brokers one is cut off")
    parser.add_argument("--sql", action="store_true", help="in memory, with SQL that a local Spark evaluates")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    number = options.seed or random.SystemRandom().randrange(10**6)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="model-")))
        machine = stack.enter_context(
            nullcontext(Model)
            if options.twins
            else with_spark(directory)
            if options.sql
            else servers(directory, options.three_brokers)
        )
        end, failures = time.monotonic() + options.minutes * 60, 0
        while time.monotonic() < end:
            number += 1
            try:
                run(machine, 5, options.steps, not options.no_shrink, number)
            except Exception:  # noqa: BLE001 - print every failure
                failures += 1
                print(f"seed {number}:", traceback.format_exc(), flush=True)
            print(f"seed {number}: {failures} failures, {machine.statistics}", flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
