"""Every write of a run, and a kill -9 between every two of them.

The list of crash points is not written down here: a run is watched through a proxy before the real S3 server, and
every write that it makes is a point. Each has to be a row of the table in docs/FORMAT.md, and every row of the table
has to be met: a new write cannot be forgotten. Each kill has an archive and a proxy of its own, so several happen side
by side: they wait more than they work. test_crashes.py kills jobs that spark-submit runs.
"""

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import SIGKILL
from tempfile import mkdtemp
from typing import Any

import psutil
import pytest

from kafka_archiver.model.proof import HourProof
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.commit import commit
from kafka_archiver.work.dead_letters import replay_letters
from kafka_archiver.work.planned_work import PlannedWork
from kafka_archiver.work.rebuild import rebuild_run
from scripts.stack.kafka import Kafka
from scripts.stack.paths import ROOT
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.proxy import Request, S3Proxy
from tests.support.step import end_of
from tests.support.topics import DAY, HOUR, Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]
WRITES = ("start", "part", "complete", "abort", "put", "delete")
SIDE_BY_SIDE = 4
# At which write, from 0; before the server sees it, or after it has answered.
Kill = tuple[int, bool]


def rows() -> dict[str, str]:
    """The rows of the crash table: what is written, and by which step."""
    table = (ROOT / "docs" / "FORMAT.md").read_text().split("## Write order")[1]
    table_rows = re.findall(r"^\| (\d+) \| (.+?) \| (\w+) \|", table, re.MULTILINE)
    return {number: f"{step}: {what}" for number, what, step in table_rows}


def row_of(step: str, request: Request) -> str | None:
    """The number of the table's row that a write is of; None for one that the table does not have.

    :param request: its number says how often the same was written before.
    """
    name = request.key.rsplit("/", 1)[-1].removesuffix(".json")
    step = "plan" if step in ("rebuild", "replay") else step.partition(",")[0]
    if "_ledger/" not in request.key:
        return {
            ("archive", "start"): "4",
            ("archive", "part"): "4",
            ("archive", "complete"): "6",
            ("close_hours", "delete"): "13",
        }.get((step, request.verb))
    if request.verb != "put":
        return None
    for folder, owner, row in (
        ("_ledger/_topics/", "plan", "0"),
        ("/topics/", "plan", "17"),
        ("/line/", "plan", "1"),
        ("/hours/", "close_hours", "11"),
    ):
        if folder in request.key:
            return row if step == owner else None
    return {
        ("plan", "plan"): "2",
        ("plan", "commit"): "3",
        ("archive", "set_aside"): "16",
        ("archive", "intent"): "5" if request.number == 0 else "7",
        ("archive", "manifest"): "8",
        ("commit", "commit"): "9",
        ("close_hours", "intent"): "12",
        ("close_hours", "settled"): "14",
        ("close_hours", "progress"): "15",
    }.get((step, name))


@dataclass
class Watched:
    """An archive whose steps run as processes behind a proxy."""

    archiver: Archiver
    proxy: S3Proxy

    def step(self, name: str, *runs: str, kill: Kill | None = None) -> list[Request]:
        """Run a step. Returns its writes.

        :param kill: kill it there.
        """
        writes: list[Request] = []
        answered: set[int] = set()
        process: BaseProcess | None = None
        lock = threading.Lock()

        def watch(request: Request, done: bool) -> int | None:
            if request.verb not in WRITES:
                return None
            with lock:
                # Several come at a time, and a client may ask again; what was answered and comes again is another.
                same = [n for n, w in enumerate(writes) if (w.verb, w.key) == (request.verb, request.key)]
                if not done and not set(same) - answered:
                    writes.append(request._replace(number=len(same)))
                    same.append(len(writes) - 1)
                place = same[-1]
                if done:
                    answered.add(place)
            if kill == (place, done) and process:
                os.kill(process.pid or 0, SIGKILL)
                until(lambda: not psutil.pid_exists(process.pid or 0))
                return 503
            return None

        self.proxy.rule = watch
        process = self.archiver.start_step(name, *runs)
        code = end_of(process, 60)
        self.proxy.rule = lambda _, __: None
        step_log = (self.archiver.directory / "step.log").read_text()
        assert code == (-SIGKILL if kill else 0), step_log
        return writes


Watch = Callable[..., Watched]


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> str:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n * HOUR // 5, b"%d" % n) for n in range(10)])
    return topic


@pytest.fixture
def watched(kafka: Kafka, s3: S3, tmp_path: Path, topic: str) -> Iterator[Watch]:
    # Three hours are over.
    moment = hour(2).end + timedelta(minutes=1)
    with ExitStack() as proxies:

        def watch(topics: Sequence[str] = (topic,), **settings: Any) -> Watched:
            proxy = proxies.enter_context(S3Proxy(s3.endpoint_url).serving())
            place = Path(mkdtemp(dir=tmp_path))
            return Watched(Archiver(kafka, s3, place, [*topics], proxy=proxy, now=[moment], **settings), proxy)

        yield watch


# The step `archive`, with a record that ends processes.
ENDING = "archive, ending"
STEPS = ("plan", "archive", "verify", "commit", "close_hours")


def at_each(points: dict[str, list[Request]], check: Callable[[str, Kill], None]) -> None:
    """Check a kill right before every write of each step, and right after its last one."""
    kills = [(name, (n, False)) for name, writes in points.items() for n in range(len(writes))]
    kills += [(name, (len(writes) - 1, True)) for name, writes in points.items() if writes]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for done in [pool.submit(check, *kill) for kill in kills]:
            done.result()


def result(archiver: Archiver) -> tuple[object, ...]:
    """Return what must be the same whatever happened: bytes, proofs, accounts, the group; and no upload left."""
    ledger = archiver.context.ledger
    names = [TopicPartition(archiver.topics[0], 0)]
    manifests = [ledger.manifest(run) for run in ledger.runs()]
    return (
        archiver.etags(),
        [_without_times(proof) for h in ledger.hours() if (proof := ledger.hour(h))],
        [manifest and manifest.chunks for manifest in manifests],
        [done and (done.closed, done.changed) for done in map(ledger.settled, ledger.runs())],
        archiver.context.cluster.committed(archiver.archive.group, names),
        list(archiver.context.store.list_uploads("")),
    )


def _without_times(proof: HourProof) -> HourProof:
    return proof.model_copy(update={"archive": "a", "complete_as_of": None})


def test_a_kill_between_any_two_writes_of_a_run_changes_nothing(watched: Watch) -> None:
    undisturbed, run = watched(), hour(1).id

    def step(of: Watched, name: str, kill: Kill | None = None) -> list[Request]:
        return of.step(name, hour(1).model_dump_json() if name == "plan" else run, kill=kill)

    points = {name: step(undisturbed, name) for name in STEPS}
    assert points["verify"] == []
    met = {row_of(name, request) for name, requests in points.items() for request in requests}
    # 10 is the group in Kafka, between the last write of `commit` and the first of `close_hours`;
    # the others are a rebuild's, and of a run that leaves out a record.
    assert met == set(rows()) - {"3", "10", "12", "13", "16"}, points
    undisturbed.archiver.run(hour(2), plain=True)
    expected = result(undisturbed.archiver)
    assert expected[4] == {TopicPartition(undisturbed.archiver.topics[0], 0): 10}

    def check(name: str, kill: Kill) -> None:
        killed, number = watched(), STEPS.index(name)
        archiver = killed.archiver
        if number:
            archiver.plan(hour(1))
        if number > STEPS.index("archive"):
            archiver.job(plain=True).run(run)
        if name == "close_hours":
            commit(archiver.context, [run])
        step(killed, name, kill)
        if name == "plan":
            archiver.run(hour(1), plain=True)
        # Else nobody clears anything: the next interval's run finds what is unfinished.
        archiver.run(hour(2), plain=True)
        assert result(archiver) == expected, (name, kill)

    at_each(points, check)


def test_a_kill_between_any_two_writes_of_a_run_that_leaves_out_a_record_changes_nothing(watched: Watch) -> None:
    def begun() -> tuple[Watched, PlannedWork]:
        watched_run = watched(policies={"bad_record": "dead_letter"})
        return watched_run, watched_run.archiver.plan(hour(1))

    undisturbed, work = begun()
    points = {ENDING: undisturbed.step(ENDING, hour(1).id)}
    assert {row_of(ENDING, request) for request in points[ENDING]} == {"4", "5", "6", "7", "8", "16"}, points
    undisturbed.archiver.finish(work)
    expected = result(undisturbed.archiver)
    assert undisturbed.archiver.account(hour(1)) == {"archived": 9, "dead_lettered": 1}

    def check(name: str, kill: Kill) -> None:
        killed, work = begun()
        killed.step(name, hour(1).id, kill=kill)
        killed.step(name, hour(1).id)
        killed.archiver.finish(work)
        assert result(killed.archiver) == expected, (name, kill)

    at_each(points, check)


REBUILD = ("rebuild", *STEPS[1:])
REPLAY = ("replay", *STEPS[1:])


def test_a_kill_between_any_two_writes_of_a_rebuild_that_takes_over_changes_nothing(watched: Watch) -> None:
    """It has every write of one of a final run, and gives up another one; unit/test_model.py kills both."""

    def begun() -> Watched:
        watched_run = watched()
        # All its objects are visible, and somebody found out that they are not what was wanted.
        watched_run.archiver.plan(hour(1))
        watched_run.archiver.job(plain=True).run(hour(1).id)
        return watched_run

    undisturbed = begun()
    run = f"{hour(1).id}+r1"

    def step(of: Watched, name: str, kill: Kill | None = None) -> list[Request]:
        return of.step(name, hour(1).id if name == "rebuild" else run, kill=kill)

    points = {name: step(undisturbed, name) for name in REBUILD}
    met = {row_of(name, request) for name, requests in points.items() for request in requests}
    assert met == set(rows()) - {"0", "10", "16", "17"}, points
    undisturbed.archiver.run(hour(2), plain=True)
    expected = result(undisturbed.archiver)
    assert all("+r1." in key for key in undisturbed.archiver.objects())

    def check(name: str, kill: Kill) -> None:
        killed = begun()
        archiver = killed.archiver
        if name == "close_hours":
            rebuild_run(archiver.context, hour(1).id)
            archiver.job(plain=True).run(run)
            commit(archiver.context, [run])
        step(killed, name, kill)
        if archiver.context.ledger.commit(run) is None:
            archiver.work(rebuild_run(archiver.context, hour(1).id), plain=True)
        # What was committed is finished by whichever run comes next.
        archiver.run(hour(2), plain=True)
        assert result(archiver) == expected, (name, kill)

    # How the steps between write objects and the commit is the same as in a run; unit/test_model.py kills them too.
    at_each({name: points[name] for name in ("rebuild", "close_hours")}, check)


def test_a_kill_between_any_two_writes_of_a_replay_of_dead_letters_changes_nothing(
    watched: Watch, kafka: Kafka
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    # Of each hour, two records are dead letters, and one of them will be again.
    values = [b"1" if n % 3 else b"1111" if n % 2 else b"111111" for n in range(12)]
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n * HOUR // 6, value) for n, value in enumerate(values)])

    def begun() -> Watched:
        watched_run = watched(topics=[topic], policies={"bad_record": "dead_letter"}, source={"max_value_bytes": 1})
        watched_run.archiver.run(hour(1), plain=True)
        source = watched_run.archiver.archive.source.model_copy(update={"max_value_bytes": 4})
        watched_run.archiver.archive = watched_run.archiver.archive.model_copy(update={"source": source})
        watched_run.archiver.context = replace(watched_run.archiver.context, archive=watched_run.archiver.archive)
        return watched_run

    undisturbed, run = begun(), f"{hour(1).id}+r1"
    assert undisturbed.archiver.account(hour(1)) == {"archived": 8, "dead_lettered": 4}

    def step(of: Watched, name: str, kill: Kill | None = None) -> list[Request]:
        return of.step(name, hour(1).id if name == "replay" else run, kill=kill)

    points = {name: step(undisturbed, name) for name in REPLAY}
    met = {row_of(name, request) for name, requests in points.items() for request in requests}
    assert met == set(rows()) - {"0", "3", "10", "16", "17"}, points
    undisturbed.archiver.run(hour(2), plain=True)
    expected = result(undisturbed.archiver)
    lines = [line for lines in undisturbed.archiver.lines().values() for line in lines]
    assert sorted(map(str, (line for line in lines if isinstance(line, int)))) == ["1"] * 8 + ["1111"] * 2
    assert [line["offset"] for line in lines if isinstance(line, dict)] == [0, 6]

    def check(name: str, kill: Kill) -> None:
        killed = begun()
        archiver, ledger = killed.archiver, killed.archiver.context.ledger
        if name != "replay":
            replay_letters(archiver.context, [hour(1).id])
        step(killed, name, kill)
        if ledger.commit(run) is None:
            archiver.work(replay_letters(archiver.context, [hour(1).id]), plain=True)
        archiver.run(hour(2), plain=True)
        assert result(archiver) == expected, (name, kill)

    # Behind the manifest everything is written as of a rebuild; unit/test_model.py kills that, too.
    at_each({name: points[name] for name in ("replay", "archive")}, check)
