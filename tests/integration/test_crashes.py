"""Jobs of spark-submit that outlive their attempt, behind a proxy that holds a request of theirs.

Each single write of a run has its kill in test_crash_points.py.
"""

import os
import signal
import subprocess
from contextlib import suppress

import psutil
import pytest

from kafka_archiver.spark.failures import TRANSIENT_EXIT
from scripts.stack.process import command_of
from tests.support.archiver import Archiver, Services, hour
from tests.support.proxy import Hold, S3Proxy
from tests.support.topics import DAY, HOUR, Record

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def archiver(services: Services, proxy: S3Proxy) -> Archiver:
    """An archive of a topic with ten records in each of four hours."""
    return services.archive(records(range(40)), proxy=proxy)


def records(numbers: range) -> list[Record]:
    return [Record(0, DAY + n % 4 * HOUR + n, b"%d" % n) for n in numbers]


def kill(process: "subprocess.Popen[str]") -> None:
    """SIGKILL for everything the process started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def test_case_1_a_zombie_that_still_writes_after_its_successor_committed(archiver: Archiver, proxy: S3Proxy) -> None:
    work = archiver.plan(hour(3))
    proxy.rule = hold = Hold("complete")
    zombie = archiver.start(work.archive)
    try:
        assert hold.came.wait(100)
        proxy_before, archiver.proxy = archiver.proxy, None
        archiver.submitted(work)
        archiver.proxy = proxy_before
        before, commit = archiver.etags(), archiver.context.ledger.commit(hour(3).id)
        archiver.produce(records(range(40, 80)))
        hold.gone.set()
        output, _ = zombie.communicate(timeout=200)
        # What it had in flight was thrown away, and it sees that somebody else has taken over.
        assert zombie.returncode == TRANSIENT_EXIT, output[-3000:]
        assert f"another attempt of run {hour(3).id} completes its objects now" in output.splitlines()[-1]
    finally:
        hold.gone.set()
        kill(zombie)
    assert archiver.etags() == before
    assert archiver.uploads() == []
    assert archiver.context.ledger.commit(hour(3).id) == commit
    archiver.finish(work)
    assert archiver.values() == list(range(40))


def is_driver(process: psutil.Process) -> bool:
    # The shell and the JVM have it further behind.
    return any(part.endswith("archive.py") for part in command_of(process)[1:2])


def test_the_job_ends_itself_when_spark_submit_or_the_airflow_task_is_killed(
    archiver: Archiver, proxy: S3Proxy
) -> None:
    work = archiver.plan(hour(3))
    for victim in ("spark-submit", "task"):
        proxy.rule = hold = Hold("part")
        task = subprocess.Popen(["sleep", "1000"])
        job = archiver.start(work.archive, KAFKA_ARCHIVER_TASK_PID=str(task.pid))
        try:
            assert hold.came.wait(100)
            family = psutil.Process(job.pid).children(recursive=True)
            assert any(is_driver(p) for p in family)
            (job if victim == "spark-submit" else task).kill()
            _, alive = psutil.wait_procs(family, timeout=20)
            assert not alive, f"{victim} killed, and still there: {alive}"
        finally:
            kill(job)
            task.kill()
            task.wait()
            hold.gone.set()
