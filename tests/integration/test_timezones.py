"""Hours are UTC's, wherever the workers and the driver stand, and whatever a record's timestamp is (cases 7, 8, 15)."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from kafka_archiver.model.manifest import Manifest
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.spark_cluster import DRIVER_ZONE, ZONES, ClusterArchiver, SparkCluster
from tests.support.topics import DAY, HOUR, Record, new_topic, produce

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]

NOWHERE = "date=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__"
YEAR_9999 = 253_402_300_799_999
# Clocks go back in Berlin and in St John's, and forward in Berlin and on the Chatham Islands.
CHANGES = ("2026-10-25T01:00", "2026-11-01T04:30", "2026-03-29T01:00", "2026-09-26T14:00")
# The chunk of each partition is a task of its own, so that both workers write.
COPIES = 170
# Missing, before 1970, and after what a date can name.
UNUSABLE = (-1, -2, -HOUR, -DAY, YEAR_9999 + 1, 2**53)


def around(starts: Iterable[int]) -> list[int]:
    """The first and the last millisecond of hours, interleaved."""
    return [t for start in starts for t in (start, start - 1)]


CASE_7 = around(DAY + h * HOUR for h in range(25))
CASE_8 = around(
    int(datetime.fromisoformat(change).replace(tzinfo=UTC).timestamp()) * 1000 // HOUR * HOUR + h * HOUR
    for change in CHANGES
    for h in range(-2, 3)
)
CASE_15 = [1, YEAR_9999, *UNUSABLE]
TIMESTAMPS = COPIES * (CASE_7 + CASE_8 + CASE_15)


def path_of(timestamp: int) -> str:
    if timestamp in UNUSABLE:
        return NOWHERE
    return f"{datetime.fromtimestamp(timestamp // 1000, UTC):date=%Y-%m-%d/hour=%H}"


class Stored(NamedTuple):
    """The objects of an archive of the topic."""

    lines: Mapping[str, list[Any]]
    etags: Mapping[str, str]
    manifest: Manifest


@pytest.fixture(scope="module")
def stored(
    kafka: Kafka, s3: S3, spark_cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Stored]:
    """The same topic, archived here and on workers in different time zones."""
    topic = new_topic(kafka.bootstrap_servers, 2)
    values = [Record(n % 2, t, json.dumps({"n": n}).encode()) for n, t in enumerate(TIMESTAMPS)]
    produce(kafka.bootstrap_servers, topic, values)

    def archive(where: str, reader: str) -> Stored:
        place = (kafka, s3, tmp_path_factory.mktemp(where), [topic], {"content": "record"})
        settings: dict[str, Any] = {"source": {"reader": reader}}
        if where == "cluster":
            archiver: Archiver = ClusterArchiver(*place, **settings, cluster=spark_cluster)
            archiver.submitted(archiver.plan(hour(30)))
        else:
            archiver = Archiver(*place, **settings)
            archiver.run(hour(30), plain=True)
        manifest = archiver.context.ledger.manifest(hour(30).id)
        assert manifest is not None
        return Stored(archiver.lines(), archiver.etags(), manifest)

    runs = (("local", "native"), ("cluster", "native"), ("cluster", "spark"))
    return {f"{reader} on {where}": archive(where, reader) for where, reader in runs}


def check(stored: dict[str, Stored], paths: set[str]) -> None:
    """Each archive has, below these paths, exactly the records that belong there."""
    expected: dict[str, list[tuple[int, int]]] = {path: [] for path in paths}
    for n, timestamp in enumerate(TIMESTAMPS):
        if (path := path_of(timestamp)) in paths:
            expected[path].append((n, timestamp))
    for name, run in stored.items():
        checks = {
            path: sorted((json.loads(line["value"])["n"], line["timestamp"]) for line in lines)
            for path, lines in run.lines.items()
            if path in paths
        }
        assert checks == expected, name


def test_case_7_the_first_and_the_last_millisecond_of_an_hour(stored: dict[str, Stored]) -> None:
    check(stored, set(map(path_of, CASE_7)))


def test_case_8_hours_are_utc_where_clocks_change_whatever_the_zone_of_a_worker(stored: dict[str, Stored]) -> None:
    check(stored, set(map(path_of, CASE_8)))


def test_case_15_the_first_and_the_last_time_there_is_and_none(stored: dict[str, Stored]) -> None:
    check(stored, set(map(path_of, CASE_15)))
    # That was all.
    for run in stored.values():
        assert run.lines.keys() == set(map(path_of, TIMESTAMPS))


def test_case_8_the_bytes_are_the_same_wherever_they_were_written(stored: dict[str, Stored]) -> None:
    first, *other_zones = stored.values()
    for other in other_zones:
        assert other.etags == first.etags
        assert [o.checksum for o in other.manifest.objects] == [o.checksum for o in first.manifest.objects]
        assert [(o.min_timestamp, o.max_timestamp) for o in other.manifest.objects] == [
            (o.min_timestamp, o.max_timestamp) for o in first.manifest.objects
        ]
        assert other.manifest.account == first.manifest.account


def test_case_8_the_workers_stood_in_different_time_zones(stored: dict[str, Stored], cluster: SparkCluster) -> None:
    assert stored
    assert len({*ZONES, DRIVER_ZONE, "UTC"}) == 4
    for worker in cluster.workers:
        # Its executor wrote something in its own directory.
        assert list((worker.directory / "work").glob("app-*/*/stderr"))
        assert "Running task" in worker.logs() or "Finished task" in worker.logs()
