"""One connection, both readers: whoever it proves us to be, by token, password or certificate, both are let in."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_archiver.kafka import failures
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.records.writer.result import Limits, WriteJob
from kafka_archiver.spark.engine import SparkEngine
from scripts.stack.ports import HOST
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.guarded import SECRET, Guarded, guarded_broker
from tests.support.topics import DAY, HOUR, Record, new_topic, produce

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

COUNT = 12


@pytest.fixture(scope="module")
def guarded(stack_directory: Path) -> Iterator[Guarded]:
    with guarded_broker(stack_directory / "guarded") as broker:
        yield broker


@pytest.fixture(scope="module")
def topic(guarded: Guarded) -> str:
    name = new_topic(guarded.kafka.bootstrap_servers)
    records = [Record(0, DAY + n % 2 * HOUR, b'{"n": %d}' % n) for n in range(COUNT)]
    produce(guarded.kafka.bootstrap_servers, name, records)
    return name


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "PATIENCE", 0.5)


@pytest.mark.parametrize(
    "connection", ["OAUTHBEARER", "OAUTHBEARER in other words", "PLAIN", "SCRAM", "TLS", "TLS in other words"]
)
def test_one_connection_serves_both_readers(
    guarded: Guarded, s3: S3, topic: str, tmp_path: Path, connection: str
) -> None:
    etags = []
    client = guarded.connections[connection]
    for reader in ("native", "spark"):
        archiver = Archiver(guarded.kafka, s3, tmp_path, [topic], source={"reader": reader}, client=client)
        archiver.run(hour(2))
        assert archiver.account(hour(2)) == {"archived": COUNT}
        etags.append(archiver.etags())
    assert etags[0] == etags[1]


SECRET_OF = {"OAUTHBEARER": "sasl.oauthbearer.client.secret", "PLAIN": "sasl.password"}


@pytest.mark.parametrize("connection", list(SECRET_OF))
def test_a_wrong_secret_is_one_clear_line_and_nobody_tries_again(
    guarded: Guarded, s3: S3, topic: str, tmp_path: Path, connection: str, impatient: None
) -> None:
    archiver = Archiver(guarded.kafka, s3, tmp_path, [topic])
    plan = archiver.context.ledger.plan(archiver.plan(hour(2)).runs[0])
    assert plan is not None
    [chunk] = plan.chunks()
    client = {**guarded.connections[connection], SECRET_OF[connection]: f"not {SECRET}"}
    asked = len(guarded.provider.asked)

    def spark() -> object:
        store = dict(archiver._outside().store)
        return SparkEngine(archiver.archive.store.url, store, client, Limits(), "spark").write(
            plan, [chunk], WriteJob.of(plan, "fail", {})
        )

    refused: list[Callable[[], object]] = [
        lambda: Cluster(client).size(),
        lambda: list(read_chunk(client, plan.group, chunk, plan.settings)),
        spark,
    ]
    for refuse in refused:
        with pytest.raises(PermanentError, match=r"correct the .*Kafka connection") as caught:
            refuse()
        message = str(caught.value)
        assert re.search("no such client, or another secret|Invalid username or password", message), message
        assert "\n" not in message
        assert SECRET not in message
    # librdkafka asks again every ten seconds, Spark's driver three times in all.
    assert len(guarded.provider.asked) - asked < 10


def test_a_provider_that_does_not_answer_may_do_so_later(guarded: Guarded) -> None:
    url = {"sasl.oauthbearer.token.endpoint.url": f"https://{HOST}:9/token"}
    with pytest.raises(TransientError, match=r"identity provider gave no token.*Failed to connect"):
        Cluster({**guarded.connections["OAUTHBEARER"], **url}, timeout=5).size()


def test_a_broker_that_cannot_be_trusted_is_not_spoken_to(guarded: Guarded, impatient: None) -> None:
    client = {name: value for name, value in guarded.connections["PLAIN"].items() if not name.startswith("ssl.ca.")}
    with pytest.raises(PermanentError, match=r"TLS failed.*certificate verify failed"):
        Cluster(client).size()


def test_a_broker_that_wants_a_certificate_says_so(guarded: Guarded) -> None:
    client = {k: v for k, v in guarded.connections["TLS"].items() if k not in ("ssl.certificate.pem", "ssl.key.pem")}
    with pytest.raises(TransientError, match=r"no answer.*alert bad certificate"):
        Cluster(client, timeout=10).size()


def test_the_provider_hears_what_the_connection_says(guarded: Guarded) -> None:
    asked = len(guarded.provider.asked)
    Cluster(guarded.connections["OAUTHBEARER"]).size()
    [form] = guarded.provider.asked[asked:]
    assert form == {"grant_type": "client_credentials", "scope": "archive read"}
