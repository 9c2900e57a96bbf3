"""A record batch that no client can decompress: the run names its offsets, and goes on without them by command."""

import pytest

from kafka_archiver.audit.inspection import audit
from kafka_archiver.kafka import consumer
from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.model.set_aside import OffsetsAside
from kafka_archiver.orchestration.terminal.options import offsets
from kafka_archiver.values.intervals import to_hour
from kafka_archiver.work.repair import give_up_offsets
from tests.support.archiver import Archiver, Services, hour
from tests.support.raw_produce import bomb, produce_raw
from tests.support.topics import DAY, Record, produce

pytestmark = [pytest.mark.contract, pytest.mark.timeout(200)]


@pytest.fixture
def bombed(services: Services, monkeypatch: pytest.MonkeyPatch) -> Archiver:
    """An archive of a readable record, five in a batch that unpacks to 100 MB, and another readable one."""
    # As with 2 GiB, and no test needs as much memory.
    monkeypatch.setattr(consumer, "UNPACKED", 40 << 20)
    topic = services.topic([Record(0, DAY, b"1")])
    port = int(services.kafka.bootstrap_servers.rpartition(":")[2])
    assert produce_raw(port, topic, bomb(5, 20 << 20)) == 1
    produce(services.kafka.bootstrap_servers, topic, [Record(0, DAY, b"2")])
    return services.archive_of(topic, policies={"bad_record": "dead_letter"}, settings={"chunk_records": 4})


def test_the_run_names_the_offsets_and_goes_on_without_them_by_command(bombed: Archiver) -> None:
    work = bombed.plan(hour(1))
    run, topic, name = hour(1).id, bombed.topics[0], bombed.archive.archive
    # The batch reaches into the next chunk, whose part has a command of its own.
    for command in (f"{topic}:0:1-4", f"{topic}:0:4-6"):
        with pytest.raises(PermanentError, match=r"decompress.* Its offsets here are \[\d, \d\)\. To go on") as caught:
            bombed.job(plain=True).run(run)
        assert caught.value.actions[0].command == f"airflow archive repair {name} --run {run} --lost-offsets {command}"
        give_up_offsets(bombed.context.ledger, run, offsets(command))
    bombed.work(work, plain=True)
    assert bombed.account(hour(1)) == {"archived": 2, "lost": 5}
    assert bombed.values() == [1, 2]
    # The next run proves the hours.
    bombed.run(hour(2), plain=True)
    proof = bombed.context.ledger.hour(to_hour(hour(0).start))
    assert proof
    assert (proof.status, proof.rows) == ("incomplete", 2)
    assert f"offsets of {topic}[0] before 6 were lost" in str(proof.reason)
    before = bombed.etags()
    for key in before:
        bombed.context.store.delete(key)
    bombed.job(plain=True).run(run)
    assert bombed.etags() == before
    report = audit(bombed.archive, bombed.context.store, bombed.now[0], deep=True)
    assert [finding for finding in report.findings if finding.severity == "problem"] == []


def test_only_what_an_unfinished_run_reads_can_be_given_up(bombed: Archiver) -> None:
    bombed.plan(hour(1))
    topic, ledger, run = bombed.topics[0], bombed.context.ledger, hour(1).id

    def refused(start: int, end: int, run: str = run, topic: str = topic) -> str:
        with pytest.raises(ConfigError) as caught:
            give_up_offsets(ledger, run, OffsetsAside(topic=topic, partition=0, start=start, end=end))
        return str(caught.value)

    assert f"has no run 20200101T000000Z; expected one of `airflow archive runs {ledger.archive}`" in refused(
        1, 6, "20200101T000000Z"
    )
    assert "does not read [7, 9); it reads [0, 7) there" in refused(1, 9)
    assert "it reads nothing there" in refused(1, 2, topic="another")
    give_up_offsets(ledger, run, OffsetsAside(topic=topic, partition=0, start=1, end=6))
    bombed.job(plain=True).run(run)
    assert "has read everything, and its manifest says so" in refused(1, 6)
