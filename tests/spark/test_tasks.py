"""How chunks become Spark tasks: few where there is little in them, and nothing left of one that fails half-way."""

from pathlib import Path

import pytest

from kafka_archiver.errors import IntegrityError
from kafka_archiver.plan import Chunk
from kafka_archiver.spark.native import TASK_CHUNKS, TASK_OFFSETS, tasks
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.topics import DAY, Record, new_topic, produce

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1], 1),
        ([250] * 4, 1),
        ([TASK_OFFSETS - 1], 1),
        ([TASK_OFFSETS], 1),
        ([TASK_OFFSETS // 2] * 4, 3),
        ([100] * 500, 1 + 500 * 100 // TASK_OFFSETS + 500 // TASK_CHUNKS),
        ([1_000_000] * 8, 8),
    ],
)
def test_a_task_for_each_chunk_of_any_size_and_few_for_many_small_ones(sizes: list[int], expected: int) -> None:
    assert (
        tasks([Chunk(topic="t", partition=p, start=0, end=size, generation=0) for p, size in enumerate(sizes)])
        == expected
    )


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("spark")
def test_a_task_that_fails_at_its_second_chunk_leaves_nothing_of_its_first(
    kafka: Kafka, s3: S3, tmp_path: Path
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n, b"%d" % n) for n in range(100)])
    archiver = Archiver(kafka, s3, tmp_path, [topic])
    plan = archiver.context.ledger.plan(archiver.plan(hour(0)).archive[0])
    assert plan is not None
    (chunk,) = plan.chunks()
    unplanned = chunk.model_copy(update={"start": chunk.end, "end": chunk.end + 1})
    with pytest.raises(IntegrityError, match="is not in plan"):
        archiver.job().engine.write(plan, [chunk, unplanned], "fail")
    assert list(archiver.context.store.list_uploads("")) == []
