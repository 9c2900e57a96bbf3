"""Case 16 with the real spark-submit: how it ends when the store's trouble does not, and what the next attempt does."""

from pathlib import Path

import pytest

from kafka_archiver.spark.failures import MARK, TRANSIENT_EXIT
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.proxy import S3Proxy
from tests.support.s3_faults import JOB, Faults
from tests.support.topics import DAY, HOUR, Record, new_topic, produce

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]


def test_case_16_trouble_without_end_is_for_the_next_attempt_which_finishes_through_faults_of_every_kind(
    kafka: Kafka, s3: S3, proxy: S3Proxy, tmp_path: Path
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n % 4 * HOUR, b"%d" % n) for n in range(40)])
    archiver = Archiver(kafka, s3, tmp_path, [topic], proxy=proxy)
    work = archiver.plan(hour(3))
    proxy.rule = lambda request, _: 503 if request.verb == "complete" and "hour=02" in request.key else None
    line = archiver.submit(work.archive, expect=TRANSIENT_EXIT).splitlines()[-1]
    assert line.startswith(f"{MARK}TransientError: complete_multipart_upload of {topic}/date=2026-11-21/hour=02/")
    assert "HTTP 503 SlowDown" in line
    assert "(tried 10 times in " in line
    some = archiver.etags()
    assert len(some) == 3
    assert archiver.context.ledger.manifest(hour(3).id) is None

    proxy.rule = faults = Faults(JOB, [429, "reset", 503])
    archiver.submit(archiver.plan(hour(3)).archive)
    assert faults.all_happened(), faults.befallen
    archiver.finish(work)
    assert some.items() <= archiver.etags().items()
    assert archiver.lines() == {f"date=2026-11-21/hour=0{h}": [n for n in range(40) if n % 4 == h] for h in range(4)}
    assert list(archiver.context.store.list_uploads("")) == []
