"""`source.max_value_bytes` on real services: both readers, and any batches, give the same objects and dead letters."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_archiver.errors import PermanentError
from kafka_archiver.kafka import reader
from kafka_archiver.steps.rebuild import rebuild_run
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.topics import DAY, HOUR, Record, new_topic, produce

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

LIMIT = 1000


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["dead_letter", "skip"])
def test_both_readers_and_any_batches_agree_on_what_is_too_large(
    kafka: Kafka, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    draw = random.Random(7)
    sizes = [draw.choice([None, 0, 1, LIMIT - 1, LIMIT, LIMIT + 1, 40_000]) for _ in range(400)]
    values = [None if size is None else b"7" * size for size in sizes]
    records = [
        Record(0, DAY + n % 3 * HOUR, value, b"k" * 2 * LIMIT, [("h", b"h" * 2 * LIMIT)])
        for n, value in enumerate(values)
    ]
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, records)
    large = sum(size is not None and size > LIMIT for size in sizes)

    def written(reader: str = "native") -> tuple[dict[str, str], dict[str, int]]:
        source = {"max_value_bytes": LIMIT, "reader": reader}
        archiver = Archiver(kafka, s3, tmp_path, [topic], {"chunk_records": 150}, {"bad_record": policy}, source)
        archiver.run(hour(1), plain=reader == "native")
        return archiver.etags(), archiver.account(hour(1))

    expected = written("spark")
    fate = "dead_lettered" if policy == "dead_letter" else "filtered"
    assert expected[1] == {"archived": len(records) - large, fate: large}
    for batch in (1, 7, 2000):
        monkeypatch.setattr(reader, "BATCH", batch)
        assert written() == expected


def test_a_run_keeps_the_limit_it_was_planned_with_and_the_message_s_command_settles_it(
    kafka: Kafka, s3: S3, tmp_path: Path
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"1"), Record(0, DAY, b"2" * 11)])
    archiver = Archiver(kafka, s3, tmp_path, [topic], source={"max_value_bytes": 10})
    work = archiver.plan(hour(1))
    source = archiver.archive.source.model_copy(update={"max_value_bytes": None})
    archiver.archive = archiver.archive.model_copy(update={"source": source})
    with pytest.raises(PermanentError, match=r"\[0\] offset 1: the value has 11 bytes, and .* was 10 .*dead_letter"):
        archiver.work(work, plain=True)
    archiver.choose(bad_record="dead_letter")
    archiver.work(work, plain=True)
    assert archiver.account(hour(1)) == {"archived": 1, "dead_lettered": 1}
    # As docs/OPERATING.md has it: a rebuild, by a higher limit, has such records among the others.
    archiver.context = replace(archiver.context, archive=archiver.archive)
    archiver.work(rebuild_run(archiver.context, hour(1).id), plain=True)
    [key] = archiver.objects()
    assert key.endswith("+r1.jsonl.gz")
    assert list(archiver.lines().values()) == [[1, 22_222_222_222]]
