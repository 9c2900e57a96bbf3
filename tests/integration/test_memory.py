"""Case 14: memory does not grow with partitions × open hours. All of it in a fixed heap and below measured ceilings."""

import hashlib

import pytest

from bench.commands import measured
from tests.support.archiver import Services, hour
from tests.support.topics import DAY, HOUR, Record

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

MIB = 1 << 20
# 500 partitions take eight times as long; docs/PERFORMANCE.md has what they need.
PARTITIONS, HOURS, EACH = 60, 48, 2


def test_case_14_many_partitions_with_48_open_hours_each_in_a_fixed_heap(services: Services) -> None:
    count = PARTITIONS * HOURS * EACH
    # Large enough for all of an encoder's memory to be used.
    values = (hashlib.shake_256(b"%d" % n).hexdigest(4000).encode() for n in range(count))
    records = (Record(n % PARTITIONS, DAY + n // PARTITIONS % HOURS * HOUR, value) for n, value in enumerate(values))
    # Spark refuses to start with less. In local mode the driver's heap is the executors' too.
    conf = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}
    archiver = services.archive(records, PARTITIONS, spark_conf=conf)
    work = archiver.plan(hour(HOURS))
    usage = measured(archiver.command(work.archive), services.directory / "job.log", archiver.environment())
    archiver.finish(work)
    manifest = archiver.manifest(hour(HOURS))
    assert (len(manifest.objects), manifest.rows) == (PARTITIONS * HOURS, count)
    print({kind: f"{peak / MIB:.0f} MiB" for kind, peak in usage.peak_process.items()})
    # Python with its libraries and librdkafka's buffers are most of it.
    assert usage.peak_process["worker"] < 270 * MIB
    assert usage.peak_process["driver"] < 270 * MIB
    assert usage.peak_process["jvm"] < 500 * MIB
