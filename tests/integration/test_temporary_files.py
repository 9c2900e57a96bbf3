"""Files that a job puts on the local disk go with it, or with the next if it was killed; never under one that lives."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.archiver import Services, hour
from tests.support.proxy import Hold, S3Proxy
from tests.support.topics import DAY, HOUR, Record

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def test_what_spark_left_of_a_killed_job_goes_with_the_next_and_nothing_of_one_that_is_alive(
    services: Services, proxy: S3Proxy
) -> None:
    records = [Record(0, DAY + n * HOUR // 10, b"%d" % n) for n in range(10)]
    place = services.directory / "chosen" / "by a person"
    archiver = services.archive(records, proxy=proxy, spark_conf={"spark.local.dir": str(place)})
    work = archiver.plan(hour(0))

    def directories() -> dict[Path, set[str]]:
        """Return what Spark has in each directory at the place that was chosen."""
        return {d: {p.name.split("-")[0] for p in d.iterdir()} for d in place.iterdir()}

    proxy.rule = hold = Hold("part")
    killed = archiver.start(work.archive)
    assert hold.came.wait(100)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=30)
    hold.gone.set()
    [left] = directories()
    assert directories() == {left: {"blockmgr", "spark"}}
    assert list(left.rglob("userFiles-*/kafka-clients-*.jar"))

    proxy.rule = hold = Hold("part")
    alive = archiver.start(work.archive)
    try:
        assert hold.came.wait(100)
        [mine] = directories()
        assert mine != left
        proxy.rule = lambda _, __: None
        archiver.submit(work.archive)
        assert directories() == {mine: {"blockmgr", "spark"}}
    finally:
        hold.gone.set()
        output, _ = alive.communicate(timeout=100)
    assert alive.returncode == 0, output[-3000:]
    assert directories() == {}
    archiver.finish(work)
