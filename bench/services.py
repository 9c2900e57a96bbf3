"""The bench's own broker and S3 server, on free ports."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.stack.checks import require_disk
from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.paths import LOCAL
from scripts.stack.ports import free_ports
from scripts.stack.s3 import S3, S3Ports

HOME = LOCAL / "bench"


@dataclass(frozen=True)
class Services:
    """The running services."""

    kafka: Kafka
    s3: S3
    directory: Path


@contextmanager
def services(fresh: bool, needed_gib: float) -> Iterator[Services]:
    """Start both services; stop them at the end. Topics stay for the next run, unless `fresh`; objects do not.

    :raises StackError: too little disk is free, or a service does not start.
    """
    if fresh:
        shutil.rmtree(HOME / "kafka", ignore_errors=True)
    HOME.mkdir(parents=True, exist_ok=True)
    require_disk(HOME, needed_gib)
    kafka = Kafka(HOME / "kafka", free_ports(KafkaPorts))
    s3 = S3(HOME / "s3", free_ports(S3Ports))
    _discard(s3)
    try:
        kafka.start()
        s3.start()
        yield Services(kafka, s3, HOME)
    finally:
        kafka.stop()
        _discard(s3)


def _discard(s3: S3) -> None:
    s3.stop(grace=0)
    shutil.rmtree(s3.directory, ignore_errors=True)
