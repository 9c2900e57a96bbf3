"""Case 16: whatever the store does to whichever request of a run, every record is archived once, in the same bytes.

All requests go through a proxy before the real S3 server. A fault befalls the first request of every kind in one run,
so that each kind is proved to recover in the company of the others.
"""

import random
from pathlib import Path

import pytest

from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.spark.failures import PERMANENT_EXIT, exit_code, one_line
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.proxy import Action, S3Proxy
from tests.support.s3_faults import RUN, Faults, kind_of
from tests.support.topics import DAY, HOUR, Record, new_topic, produce

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

WRITES = [kind for kind in RUN if kind.startswith("put ")]
READ = ["get line", "get plan.json", "get manifest.json"]


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> str:
    """Two partitions, three hours; one of the objects has two parts."""
    name = new_topic(kafka.bootstrap_servers, 2)
    noise = random.Random(16)
    produce(kafka.bootstrap_servers, name, [Record(n % 2, DAY + n % 3 * HOUR, b"%d" % n) for n in range(300)])
    large = [b'"%s"' % noise.randbytes(450_000).hex().encode() for _ in range(12)]
    produce(kafka.bootstrap_servers, name, [Record(0, DAY, value) for value in large])
    return name


@pytest.fixture(scope="module")
def undisturbed(kafka: Kafka, s3: S3, topic: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    archiver = archive(kafka, s3, topic, tmp_path_factory.mktemp("undisturbed"))
    archiver.run(hour(3))
    assert sorted(n for lines in archiver.lines().values() for n in lines if isinstance(n, int)) == list(range(300))
    assert archiver.account(hour(3)) == {"archived": 312}
    return archiver.etags()


def archive(kafka: Kafka, s3: S3, topic: str, directory: Path) -> Archiver:
    return Archiver(kafka, s3, directory, [topic], {"chunk_records": 100, "part_bytes": 5 << 20})


@pytest.fixture
def archiver(kafka: Kafka, s3: S3, topic: str, tmp_path: Path) -> Archiver:
    return archive(kafka, s3, topic, tmp_path)


@pytest.mark.parametrize(
    ("kinds", "actions", "carried_out"),
    [
        pytest.param(RUN, [429, 503, "reset"], False, id="refused or broken off"),
        pytest.param(RUN, [500, "reset"], True, id="done, but the answer is lost"),
        pytest.param(RUN, ["slow"], True, id="slow"),
        pytest.param(["start", "complete", "list", "uploads", *READ], ["cut"], True, id="half an answer"),
        pytest.param(["part", *WRITES], ["damage"], False, id="damaged on the way there"),
        pytest.param(READ, ["damage"], True, id="damaged on the way back"),
    ],
)
def test_case_16_a_passing_fault_of_any_request_is_survived_within_the_run(
    archiver: Archiver,
    proxy: S3Proxy,
    undisturbed: dict[str, str],
    kinds: list[str],
    actions: list[Action],
    carried_out: bool,
) -> None:
    proxy.rule = faults = Faults(kinds, actions, carried_out)
    archiver.behind(proxy).run(hour(3))
    assert faults.all_happened(), faults.befallen
    assert archiver.etags() == undisturbed
    assert archiver.account(hour(3)) == {"archived": 312}
    assert list(archiver.context.store.list_uploads("")) == []


def test_a_refused_request_ends_each_attempt_in_one_line_and_the_next_goes_further(
    archiver: Archiver, proxy: S3Proxy, undisturbed: dict[str, str]
) -> None:
    """Each attempt is refused one kind of request, in the order of a run, and is tried again without that."""
    refused = [*RUN]
    proxy.rule = lambda request, done: 403 if kind_of(request) in refused[:1] and not done else None
    beyond = archiver.behind(proxy)
    while refused:
        with pytest.raises(ArchiverError) as caught:
            beyond.run(hour(3))
        line = one_line(caught.value)
        assert exit_code(caught.value) == PERMANENT_EXIT
        assert ": access denied to " in line, line
        assert "\n" not in line
        assert archiver.etags().items() <= undisturbed.items()
        del refused[0]
    beyond.run(hour(3))
    assert archiver.etags() == undisturbed


def test_parts_that_are_listed_wrongly_on_their_way_make_no_other_object(
    archiver: Archiver, proxy: S3Proxy, undisturbed: dict[str, str]
) -> None:
    """Nothing protects the request that completes an upload: a flipped bit is refused by the server or seen by us."""
    proxy.rule = Faults(["complete"], ["damage"])
    with pytest.raises(ArchiverError):
        archiver.behind(proxy).run(hour(3))
    assert archiver.context.ledger.manifest(hour(3).id) is None
    assert archiver.etags().items() <= undisturbed.items()
    archiver.run(hour(3))
    assert archiver.etags() == undisturbed
