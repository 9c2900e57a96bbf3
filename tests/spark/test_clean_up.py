"""Clean-up after the real job: what a rebuild that was given up wrote goes, and the archive is what it was."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from kafka_archiver.steps.clean_up import leftovers, remove
from kafka_archiver.steps.rebuild import rebuild_run
from kafka_archiver.steps.verify import verify
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.topics import DAY, HOUR, Record, new_topic, produce

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]


def test_a_rebuild_that_was_given_up_and_one_that_was_finished(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2)
    # One value is none that its format can hold, so that there are dead letters too.
    values = [b"two\nlines" if n == 7 else b"%d" % n for n in range(40)]
    records = [Record(n % 2, DAY + n % 3 * HOUR, value) for n, value in enumerate(values)]
    produce(kafka.bootstrap_servers, topic, records)
    archiver = Archiver(kafka, s3, tmp_path, [topic], policies={"bad_record": "dead_letter"})
    archiver.run(hour(3))
    ledger, before = archiver.context.ledger, archiver.etags()
    assert any(key.startswith("_dead_letter/") for key in before)

    def soon() -> datetime:
        return archiver.now[0] + timedelta(minutes=1)

    # Its job has ended, nobody commits it, and another run comes.
    [run] = rebuild_run(archiver.context, hour(3).id).archive
    archiver.job().run(run)
    assert len(archiver.etags()) == 2 * len(before)
    assert leftovers(ledger, soon()) == []
    archiver.run(hour(4), plain=True)
    assert leftovers(ledger, archiver.now[0] - timedelta(minutes=5)) == []
    remove(ledger, leftovers(ledger, soon()))
    assert archiver.etags() == before
    verify(archiver.context, [hour(3).id])
    assert leftovers(ledger, soon()) == []

    work = rebuild_run(archiver.context, hour(3).id)
    archiver.job().run(work.archive[0])
    archiver.finish(work)
    after = archiver.etags()
    assert len(after) == len(before)
    assert not after.keys() & before.keys()
    # As if the task had been killed before it removed the last.
    [first, *_] = sorted(before)
    archiver.context.store.put(first, b"left")
    assert [(item.kind, item.key) for item in leftovers(ledger, soon())] == [("superseded", first)]
    remove(ledger, leftovers(ledger, soon()))
    assert archiver.etags() == after
