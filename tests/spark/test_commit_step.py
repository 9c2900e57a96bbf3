"""What killed attempts left is thrown away before the run is final, and the commit never moves the group back."""

from pathlib import Path

import pytest

from kafka_archiver.checksum import crc32
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.steps.commit import commit
from kafka_archiver.steps.verify import verify
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.topics import DAY, Record, new_topic, produce

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]


def test_the_group_never_moves_back_and_leftovers_of_this_run_alone_are_thrown_away(
    kafka: Kafka, s3: S3, tmp_path: Path
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"%d" % n) for n in range(30)])
    archiver = Archiver(kafka, s3, tmp_path, [topic], source={"max_records_per_run": 20})
    work = archiver.plan(hour(0))
    archiver.job().run(hour(0).id)
    store, cluster, group = archiver.context.store, archiver.context.cluster, archiver.archive.group
    [key] = archiver.objects()
    foreign = key.replace("+00000000000000000000", "+00000000000000000020")
    for unfinished in (key, foreign):
        store.upload_part(store.start_upload(unfinished), 1, b"sent", crc32(b"sent"))
    partition = TopicPartition(topic, 0)
    cluster.move_group(group, {partition: 25})
    before = archiver.etags()
    verify(archiver.context, work.runs)
    commit(archiver.context, work.runs)
    assert cluster.committed(group, [partition]) == {partition: 25}
    assert [uploaded for uploaded, _, _ in store.list_uploads("")] == [foreign]
    assert archiver.etags() == before
