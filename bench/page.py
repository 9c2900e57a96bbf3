"""python -m bench.page: the page's server time with many archives and a year of hours, in this process.

The ledgers are made up as they are read: a store of 1,000 archives with 8,760 proofs each would hold nine million
documents. Airflow's database is SQLite, its auth manager the simple one, and the user may see every archive.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import Commit, Manifest, ObjectEntry
from kafka_archiver.model.object_keys import encode, hour_document, split_hour_document
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import HourProof
from kafka_archiver.store.base import Stat, StoredObject
from kafka_archiver.values.intervals import Interval, hour_start, run_id, to_hour, to_ms
from kafka_archiver.values.ranges import Range, TopicPartition

HOURS = 8760
PARTITIONS = 6
TURNS = 20
# The page promises less.
MOST_MS = 1000.0


class MadeUp:
    """A store with the ledgers of a year: one run an hour, all settled. It counts its requests."""

    def __init__(self, moment: datetime) -> None:
        self.url, self.requests = "made://up", 0
        self._now, self._last = moment, to_hour(moment) - 1
        self._first = self._last - HOURS + 1

    def now(self) -> datetime:
        return self._now

    def get(self, key: str) -> bytes | None:
        self.requests += 1
        _, archive, kind, *parts = key.split("/")
        if kind == "progress.json":
            return self._progress(archive).to_json()
        if kind == "line":
            number = int(parts[0].removesuffix(".json"))
            return self._plan(archive, number).to_json() if 1 <= number <= HOURS else None
        if kind == "runs":
            number = self._number(parts[0])
            document = {"plan.json": self._plan, "manifest.json": self._manifest, "commit.json": self._commit}.get(
                parts[1]
            )
            return document(archive, number).to_json() if document else None
        if kind == "hours" and (place := split_hour_document(archive, key)) and place[0] is not None:
            return self._proof(archive, place[0]).to_json() if self._first <= place[0] <= self._last else None
        return None

    def read(self, key: str, start: int, length: int) -> bytes | None:
        data = self.get(key)
        return None if data is None else data[start : start + length]

    def version(self, key: str) -> StoredObject | None:
        data = self.get(key)
        return None if data is None else StoredObject(data, "etag")

    def list(self, prefix: str) -> Iterator[Stat]:
        self.requests += 1
        archive = prefix.split("/")[1]
        for hour in range(self._first, self._last + 1) if "/hours/" in prefix else ():
            key = hour_document(archive, hour)
            if key.startswith(prefix):
                yield Stat(key, 700, f"etag of {hour}", self._now)

    def _number(self, run: str) -> int:
        return to_hour(datetime.strptime(run, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)) - self._first + 1

    def _progress(self, archive: str) -> Progress:
        partitions = tuple(
            PartitionProgress(
                topic=archive,
                topic_id=f"id-of-{archive}",
                partition=number,
                next=HOURS,
                covered=((0, HOURS),),
                leader_epoch=0,
            )
            for number in range(PARTITIONS)
        )
        return Progress(
            archive=archive, settled=HOURS, begun=hour_start(self._first), as_of=self._now, partitions=partitions
        )

    def _plan(self, archive: str, number: int) -> Plan:
        start = hour_start(self._first + number - 1)
        partitions = tuple(
            PartitionPlan(
                topic=archive,
                topic_id=f"id-of-{archive}",
                partition=partition,
                start=number - 1,
                end=number,
                log_start=0,
                log_end=number,
                high=number,
                leader_epoch=0,
                ranges=((number - 1, number),),
            )
            for partition in range(PARTITIONS)
        )
        return Plan(
            archive=archive,
            number=number,
            interval=Interval(start=start, end=start + timedelta(hours=1)),
            origin="scheduled",
            planned_at=start + timedelta(hours=1, minutes=5),
            cluster_id="a-cluster",
            group=f"archiver-{archive}",
            settings=_SETTINGS,
            policies={},
            partitions=partitions,
        )

    def _manifest(self, archive: str, number: int) -> Manifest:
        plan = self._plan(archive, number)
        accounts = [ChunkAccount(**c.model_dump(), archived=c.range.size) for c in plan.chunks()]
        hour = f"date={plan.interval.start:%Y-%m-%d}/hour={plan.interval.start:%H}"
        objects = [
            ObjectEntry(
                key=f"{encode(archive)}/{hour}/{archive}+{a.partition}+{a.start:020d}.jsonl.gz", topic=archive,
                partition=a.partition, generation=0, chunk_start=a.start, path=hour, rows=a.archived, bytes=1000,
                checksum="crc32:00000000", etag="etag", first_offset=a.start, last_offset=a.end - 1, min_timestamp=0,
                max_timestamp=1,
            )
            for a in accounts
        ]  # fmt: skip
        return Manifest.of(plan, objects, accounts)

    def _commit(self, archive: str, number: int) -> Commit:
        plan = self._plan(archive, number)
        return Commit(
            archive=archive, run=plan.run, plan_digest=plan.digest, manifest_digest="0" * 64,
            committed_at=plan.planned_at + timedelta(minutes=1),
        )  # fmt: skip

    def _proof(self, archive: str, hour: int) -> HourProof:
        start = hour_start(hour)
        run = run_id(start)
        return HourProof(
            archive=archive, hour_start=start, number=hour - self._first + 1, status="complete",
            complete_as_of=start + timedelta(hours=1, minutes=5), closed_by=run, changed_by=run, rows=PARTITIONS,
            bytes=1000 * PARTITIONS, objects=PARTITIONS, late_rows=hour % 50 == 0,
        )  # fmt: skip


def _settings() -> Any:
    from kafka_archiver.model.settings import Settings
    from kafka_archiver.records.formats import resolve

    return resolve(Settings(codec=""))


_SETTINGS = _settings()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.page", description=__doc__)
    parser.add_argument("--archives", type=int, default=1000)
    count = parser.parse_args().archives
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _airflow(home, count)
        return _measure(stack, count)


def _airflow(home: Path, count: int) -> None:
    """An Airflow with an empty database, and YAML files."""
    folder = home / "archives"
    folder.mkdir()
    for number in range(count):
        name = f"archive_{number:04d}"
        text = f"archive: {name}\nsource: {{topics: [{name}]}}\nstore: {{url: 'memory://{name}/x'}}\n"
        (folder / f"{name}.yaml").write_text(text)
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "ARCHIVER_CONFIG_DIR": str(folder),
        "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "broker:9092"}}),
        "AIRFLOW_CONN_AWS_DEFAULT": json.dumps({"conn_type": "aws"}),
    }
    from airflow.utils.db import initdb

    initdb()


def _measure(stack: ExitStack, count: int) -> int:
    from fastapi.testclient import TestClient

    from tests.support.brokers import Brokers
    from tests.support.page import Page

    class OneTopic(Brokers):
        """Each archive has a topic of its own: looking for it must not cost a look at all."""

        def topics(self, selection: Any) -> list[Any]:
            of_it = (
                {name: log for name, log in self.logs.items() if name.topic in selection}
                if len(selection) > 1
                else None
            )
            near = of_it or {TopicPartition(topic, p): Range(0, 1) for topic in selection for p in range(PARTITIONS)}
            return Brokers(near, self.first).topics(selection)

    moment = datetime.now(UTC)
    store = MadeUp(moment)
    logs = {
        TopicPartition(f"archive_{n:04d}", p): Range(0, HOURS + n % 7) for n in range(count) for p in range(PARTITIONS)
    }
    brokers: Any = OneTopic(logs, first=to_ms(moment) // 3_600_000 - HOURS)
    brokers.group = dict.fromkeys(logs, HOURS)
    stack.enter_context(patch("kafka_archiver.context.archive_context.connect", brokers))
    stack.enter_context(patch("kafka_archiver.context.archive_context.open_store", lambda *_: store))
    page = Page()
    archive_snapshots = page.archive_snapshots
    archive_snapshots._fresh = 3600.0
    client: TestClient = page.user("admin")

    begun = time.perf_counter()
    names = list(archive_snapshots.archives().valid)
    print(f"{count:,} YAML files read in {time.perf_counter() - begun:.1f} s")
    begun = time.perf_counter()
    snapshots = archive_snapshots.snapshots(names, wait=3600)
    cold = time.perf_counter() - begun
    assert all(shot and shot.state and shot.error is None for shot in snapshots.values()), next(
        iter(snapshots.values())
    )
    each = 1000 * cold / count
    print(f"all looked at in {cold:.1f} s, {each:.1f} ms and {store.requests / count:.1f} requests to the store each")

    worst = 0.0
    for title, path in (
        ("the list", "/archiver/"),
        ("the list, filtered", "/archiver/?q=99"),
        ("health of all", "/archiver/health"),
        ("metrics of all", "/archiver/metrics"),
        ("the dashboard's panel", "/archiver/trouble"),
    ):
        worst = max(worst, _times(title, partial(client.get, path)))
    store.requests = 0
    days = iter(range(TURNS + 1))
    archive = f"/archiver/archives/{names[0]}"
    later = moment.date()
    cost = _times(
        "an archive, 28 days that nobody has looked at",
        lambda: client.get(f"{archive}?last={later - timedelta(days=28 * (next(days) % 13))}"),
        turns=12,
    )
    print(f"  ({store.requests / 13:.0f} requests to the store each)")
    worst = max(worst, cost, _times("an archive again", lambda: client.get(archive)))
    return int(worst > MOST_MS)


def _times(title: str, ask: Callable[[], Any], turns: int = TURNS) -> float:
    """Tell the median and the worst server time of a page. Returns the median."""
    taken, spent = [], []
    for _ in range(turns + 1):
        begun, worked = time.perf_counter(), time.process_time()
        answer = ask()
        taken.append(1000 * (time.perf_counter() - begun))
        spent.append(1000 * (time.process_time() - worked))
        assert answer.status_code in (200, 503), answer.text
    size = len(answer.content) / 1000
    wall = f"{median(taken[1:]):.0f} ms, at most {max(taken[1:]):.0f} ms"
    print(f"{title}: {wall}, of CPU {median(spent[1:]):.0f} ms; {size:,.0f} kB")
    return median(taken[1:])


if __name__ == "__main__":
    raise SystemExit(main())
