"""Real kills at exact writes: after each, the next attempt gives the same keys with the same bytes, nothing twice.

The S3 server stands behind a proxy that kills the process, or fails or holds a request, when a certain one comes.
Each single write of a run has its kill in test_crash_points.py.
"""

import itertools
import os
import signal
import subprocess
import threading
from contextlib import suppress

import psutil
import pytest

from kafka_archiver.spark.failures import TRANSIENT_EXIT
from tests.support.archiver import Archiver, Services, hour
from tests.support.proxy import Hold, Request, S3Proxy
from tests.support.topics import DAY, HOUR, Record

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]

HOURS = 4


@pytest.fixture
def archiver(services: Services, proxy: S3Proxy) -> Archiver:
    """An archive of a topic with ten records in each of four hours."""
    return services.archive(records(range(40)), proxy=proxy)


def records(numbers: range) -> list[Record]:
    return [Record(0, DAY + n % HOURS * HOUR + n, b"%d" % n) for n in numbers]


def expected(numbers: range) -> dict[str, list[int]]:
    return {f"date=2026-11-21/hour=0{h}": [n for n in numbers if n % HOURS == h] for h in range(HOURS)}


def kill(process: "subprocess.Popen[str]") -> None:
    """SIGKILL for everything the process started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def test_case_2_a_crash_after_some_hours_were_written_and_a_retry_after_more_records_arrived(
    archiver: Archiver, proxy: S3Proxy
) -> None:
    work = archiver.plan(hour(3))
    running: list[subprocess.Popen[str]] = []
    visible, dead = itertools.count(1), threading.Event()

    def kill_after_two(request: Request, done: bool) -> int | None:
        # The driver completes uploads side by side: the others wait until it is dead.
        if request.verb == "complete" and request.number >= 2:
            assert dead.wait(60)
            return 503
        if request.verb == "complete" and done and next(visible) == 2:
            kill(running[0])
            dead.set()
        return None

    proxy.rule = kill_after_two
    running.append(archiver.start(work.archive))
    running[0].communicate(timeout=200)
    assert running[0].returncode == -signal.SIGKILL
    some = archiver.etags()
    assert len(some) == 2
    assert archiver.context.ledger.manifest(hour(3).id) is None

    archiver.produce(records(range(40, 80)))
    proxy.rule = lambda _, __: None
    again = archiver.plan(hour(3))
    assert again == work
    archiver.submitted(again)
    assert archiver.lines() == expected(range(40))
    assert some.items() <= archiver.etags().items()
    assert archiver.group() == [40]

    archiver.submitted(archiver.plan(hour(4)))
    assert {path: sorted(lines) for path, lines in archiver.lines().items()} == expected(range(80))


def test_case_3_one_of_several_objects_fails_to_upload(archiver: Archiver, proxy: S3Proxy) -> None:
    work = archiver.plan(hour(3))
    proxy.rule = lambda request, _: 403 if request.verb == "part" and "hour=02" in request.key else None
    output = archiver.submit(work.archive, expect=64)
    assert "kafka-archiver error: PermanentError: " in output.splitlines()[-1]
    assert archiver.objects() == {}
    assert archiver.uploads() == []
    proxy.rule = lambda _, __: None
    archiver.submitted(work)
    assert archiver.lines() == expected(range(40))


def test_case_1_a_zombie_that_still_writes_after_its_successor_committed(archiver: Archiver, proxy: S3Proxy) -> None:
    work = archiver.plan(hour(3))
    proxy.rule = held = Hold("complete")
    zombie = archiver.start(work.archive)
    try:
        assert held.came.wait(100)
        proxy_before, archiver.proxy = archiver.proxy, None
        archiver.submitted(work)
        archiver.proxy = proxy_before
        before, commit = archiver.etags(), archiver.context.ledger.commit(hour(3).id)
        archiver.produce(records(range(40, 80)))
        held.gone.set()
        output, _ = zombie.communicate(timeout=200)
        # What it had in flight was thrown away, and it sees that somebody else has taken over.
        assert zombie.returncode == TRANSIENT_EXIT, output[-3000:]
        assert f"another attempt of run {hour(3).id} completes its objects now" in output.splitlines()[-1]
    finally:
        held.gone.set()
        kill(zombie)
    assert archiver.etags() == before
    assert archiver.uploads() == []
    assert archiver.context.ledger.commit(hour(3).id) == commit
    archiver.finish(work)
    assert archiver.lines() == expected(range(40))


def is_driver(process: psutil.Process) -> bool:
    with suppress(psutil.Error):  # some of the family have ended already
        return "python" in process.name() and any("archive.py" in part for part in process.cmdline())
    return False


def test_the_job_ends_itself_when_spark_submit_or_the_airflow_task_is_killed(
    archiver: Archiver, proxy: S3Proxy
) -> None:
    work = archiver.plan(hour(3))
    for victim in ("spark-submit", "task"):
        proxy.rule = held = Hold("part")
        task = subprocess.Popen(["sleep", "1000"])
        job = archiver.start(work.archive, KAFKA_ARCHIVER_TASK_PID=str(task.pid))
        try:
            assert held.came.wait(100)
            family = psutil.Process(job.pid).children(recursive=True)
            assert any(is_driver(p) for p in family)
            (job if victim == "spark-submit" else task).kill()
            _, alive = psutil.wait_procs(family, timeout=20)
            assert not alive, f"{victim} killed, and still there: {alive}"
        finally:
            kill(job)
            task.kill()
            task.wait()
            held.gone.set()
