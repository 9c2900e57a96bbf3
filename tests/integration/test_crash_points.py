"""Every write of a run, and a kill -9 between every two of them.

The list of crash points is not written down here: a run is watched through a proxy before the real S3 server, and
every write that it makes is a point. Each has to be a row of the table in docs/FORMAT.md, and every row of the table
has to be met: a new write cannot be forgotten. The step `archive` is a real spark-submit, killed with its driver, or
alone: then the driver goes on until it sees that.
"""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from kafka_archiver.proof import HourProof
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.steps.commit import commit
from kafka_archiver.steps.plan import Work
from kafka_archiver.steps.rebuild import rebuild_run
from scripts.stack.kafka import Kafka
from scripts.stack.paths import ROOT
from scripts.stack.s3 import S3
from tests.support.archiver import SMALL, Archiver, hour
from tests.support.proxy import Request, S3Proxy
from tests.support.topics import DAY, HOUR, Record, new_topic, produce

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]
WRITES = ("start", "part", "complete", "abort", "put", "delete")
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def rows() -> dict[str, str]:
    """The rows of the crash table: what is written, and by which step."""
    table = (ROOT / "docs" / "FORMAT.md").read_text().split("## Write order")[1]
    found = re.findall(r"^\| (\d+) \| (.+?) \| (\w+) \|", table, re.MULTILINE)
    return {number: f"{step}: {what}" for number, what, step in found}


def row_of(step: str, request: Request) -> str | None:
    """The number of the table's row that a write is of; None for one that the table does not have."""
    name = request.key.rsplit("/", 1)[-1].removesuffix(".json")
    ledger = "_ledger/" in request.key
    if "_ledger/_topics/" in request.key:
        return "0" if (step, request.verb) == ("plan", "put") else None
    known = {
        ("plan", "put", "plan"): "1",
        ("archive", "put", "intent"): "3",
        ("archive", "put", "manifest"): "5",
        ("commit", "put", "commit"): "6",
        ("close_hours", "put", "progress"): "10",
    }
    if ledger and "/hours/" in request.key:
        return "8" if (step, request.verb) == ("close_hours", "put") else None
    if ledger:
        return known.get((step, request.verb, name))
    return {
        ("archive", "start"): "2",
        ("archive", "part"): "2",
        ("archive", "complete"): "4",
        ("commit", "abort"): "6",
        ("close_hours", "delete"): "9",
    }.get((step, request.verb))


@dataclass
class Watched:
    """An archive whose steps run as processes behind a proxy.

    :param kill: how. Of spark-submit, the process group is with the driver, the process without.
    """

    archiver: Archiver
    proxy: S3Proxy
    kill: Callable[[int, int], None]

    def step(self, name: str, work: Work, kill: tuple[int, bool] | None = None) -> list[Request]:
        """Run a step. Returns its writes.

        :param kill: kill it at this write (from 0), before the server sees it, or after it has answered.
        """
        writes: list[Request] = []
        process: subprocess.Popen[str] | None = None
        family: list[psutil.Process] = []
        lock = threading.Lock()

        def watch(request: Request, done: bool) -> int | None:
            if request.verb not in WRITES:
                return None
            with lock:
                # Several come at a time, and a client may ask again.
                known = [(w.verb, w.key) for w in writes]
                if (request.verb, request.key) not in known:
                    writes.append(request)
                    known.append((request.verb, request.key))
                place = known.index((request.verb, request.key))
            if kill == (place, done) and process:
                family.extend(psutil.Process(process.pid).children(recursive=True))
                self.kill(process.pid, signal.SIGKILL)
                process.wait(30)
                return 503
            return None

        self.proxy.rule = watch
        arguments = [hour(1).model_dump_json()] if name == "plan" else list(work.runs)
        process = self.archiver.start(work.archive) if name == "archive" else self.archiver.start_step(name, *arguments)
        output, _ = process.communicate(timeout=60)
        _, alive = psutil.wait_procs(family, timeout=30)
        assert not alive
        self.proxy.rule = lambda _, __: None
        assert process.returncode == (-signal.SIGKILL if kill else 0), output
        return writes


Watch = Callable[[Callable[[int, int], None]], Watched]


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> str:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n * HOUR // 5, b"%d" % n) for n in range(10)])
    return topic


@pytest.fixture
def watched(kafka: Kafka, s3: S3, proxy: S3Proxy, tmp_path: Path, topic: str) -> Watch:
    return lambda kill: Watched(Archiver(kafka, s3, tmp_path, [topic], proxy=proxy, driver_records=SMALL), proxy, kill)


STEPS = ("plan", "archive", "verify", "commit", "close_hours")


def result(archiver: Archiver) -> tuple[object, ...]:
    """What must be the same whatever happened on the way: bytes, proofs, accounts, the group; and no upload left."""
    ledger = archiver.context.ledger
    names = [TopicPartition(archiver.topics[0], 0)]
    manifests = [ledger.manifest(run) for run in ledger.runs()]
    return (
        archiver.etags(),
        [_without_times(proof) for hour in ledger.hours() if (proof := ledger.hour(hour))],
        [manifest and manifest.chunks for manifest in manifests],
        archiver.context.cluster.committed(archiver.archive.group, names),
        list(archiver.context.store.list_uploads("")),
    )


def _without_times(proof: HourProof) -> HourProof:
    return proof.model_copy(update={"archive": "a", "complete_as_of": None})


def test_a_kill_between_any_two_writes_of_a_run_changes_nothing(watched: Watch) -> None:
    undisturbed = watched(os.killpg)
    work = Work((hour(1).id,), (hour(1).id,))
    points = {step: undisturbed.step(step, work) for step in STEPS}
    assert points["verify"] == []
    met = {row_of(step, request) for step, requests in points.items() for request in requests}
    # 7 is the group in Kafka, between the last write of `commit` and the first of `close_hours`; 9 is a rebuild's.
    assert met == set(rows()) - {"7", "9"}, points
    undisturbed.archiver.run(hour(2), plain=True)
    expected = result(undisturbed.archiver)
    assert expected[3] == {TopicPartition(undisturbed.archiver.topics[0], 0): 10}
    for number, step in enumerate(STEPS):
        count = len(points[step])
        for kill in [*((n, False) for n in range(count)), *([(count - 1, True)] if count else [])]:
            killed = watched(os.killpg)
            archiver = killed.archiver
            if number:
                archiver.plan(hour(1))
            if number > STEPS.index("archive"):
                archiver.job(plain=True).run(hour(1).id)
            if step == "close_hours":
                commit(archiver.context, work.runs, NOW)
            killed.step(step, work, kill)
            if step == "plan":
                archiver.run(hour(1), plain=True)
            # Else nobody clears anything: the next interval's run finds what is unfinished.
            archiver.run(hour(2), plain=True)
            assert result(archiver) == expected, (step, kill)


def test_a_kill_between_any_two_writes_of_a_rebuild_changes_nothing(watched: Watch) -> None:
    def settled() -> Watched:
        one = watched(os.kill)
        one.archiver.run(hour(1), plain=True)
        return one

    undisturbed = settled()
    work = rebuild_run(undisturbed.archiver.context, hour(1).id, NOW)
    points = {step: undisturbed.step(step, work) for step in STEPS[1:]}
    met = {row_of(step, request) for step, requests in points.items() for request in requests}
    assert met == set(rows()) - {"0", "1", "7"}, points
    undisturbed.archiver.run(hour(2), plain=True)
    expected = result(undisturbed.archiver)
    assert all("+r1." in key for key in undisturbed.archiver.objects())
    for step in STEPS[1:]:
        count = len(points[step])
        for kill in [*((n, False) for n in range(count)), *([(count - 1, True)] if count else [])]:
            killed = settled()
            archiver = killed.archiver
            work = rebuild_run(archiver.context, hour(1).id, NOW)
            if step != "archive":
                archiver.job(plain=True).run(work.runs[0])
            if step == "close_hours":
                commit(archiver.context, work.runs, NOW)
            killed.step(step, work, kill)
            if archiver.context.ledger.commit(work.runs[0]) is None:
                archiver.work(rebuild_run(archiver.context, hour(1).id, NOW), plain=True)
            # What was committed is finished by whichever run comes next.
            archiver.run(hour(2), plain=True)
            assert result(archiver) == expected, (step, kill)
