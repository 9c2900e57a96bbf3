"""Chunks become Spark tasks: few where there is little in them, and nothing left of one that fails half-way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import BadRecordError, IntegrityError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.records.writer.result import WriteJob
from kafka_archiver.spark.native import LARGEST_TASK, SMALLEST_TASK, _cost, share
from tests.support.archiver import Services, hour
from tests.support.topics import DAY, Record

pytestmark = pytest.mark.spark


def chunks_of(sizes: list[int]) -> list[Chunk]:
    return [Chunk(topic="t", partition=p, start=7, end=7 + size, generation=0) for p, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "cores", "expected"),
    [
        ([1], 2, [1]),
        ([250] * 4, 2, [4]),
        # What bench.runner.FEW counts on: start-up is that of two workers.
        ([5_000] * 4, 2, [3, 1]),
        # As much as one worker reads while another would start.
        ([2_500] * 4, 2, [4]),
        ([1_000_000] * 8, 2, [1] * 8),
        ([2_000] * 500, 2, [25] * 20),
        ([2_000] * 500, 64, [5] * 100),
        ([10, 500_000, 10, 500_000, 10], 2, [1, 1, 3]),
    ],
)
def test_a_task_for_each_large_chunk_and_few_for_many_small_ones(
    sizes: list[int], cores: int, expected: list[int]
) -> None:
    assert [len(task) for task in share(chunks_of(sizes), cores)] == expected


@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=60), st.integers(1, 64))
def test_every_chunk_is_in_one_task_and_no_large_one_waits_for_others(sizes: list[int], cores: int) -> None:
    chunks = chunks_of(sizes)
    tasks = share(chunks, cores)
    assert sorted((chunk for task in tasks for chunk in task), key=lambda chunk: chunk.partition) == chunks
    assert all(len(task) == 1 for task in tasks if any(_cost(chunk) >= LARGEST_TASK for chunk in task))
    # Without its last one a task of small chunks is not full, or that one would be in another.
    assert all(sum(map(_cost, task[:-1])) < LARGEST_TASK for task in tasks)
    assert len([task for task in tasks if sum(map(_cost, task)) < SMALLEST_TASK]) <= 1
    weights = [sum(map(_cost, task)) for task in tasks]
    assert weights == sorted(weights, reverse=True)


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("spark")
def test_a_task_that_fails_at_its_second_chunk_leaves_nothing_of_its_first(services: Services) -> None:
    archiver = services.archive([Record(0, DAY + n, b"%d" % n) for n in range(100)])
    plan = archiver.planned(archiver.plan(hour(0)).archive[0])
    (chunk,) = plan.chunks()
    unplanned = chunk.model_copy(update={"start": chunk.end, "end": chunk.end + 1})
    assert share([chunk, unplanned], 2) == [[chunk, unplanned]]
    with pytest.raises(IntegrityError, match="is not in plan"):
        archiver.job().engine.write(plan, [chunk, unplanned], WriteJob.of(plan, "fail", {}))
    assert archiver.uploads() == []


@pytest.mark.timeout(200)
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("reader", ["native", "spark"])
def test_a_task_that_fails_early_hands_its_error_over_as_it_is_and_spark_goes_on(
    services: Services, reader: str
) -> None:
    """Most of what Spark has read for it is never asked for."""
    values = [b"no JSON", *[b'"%s"' % (b"x" * 10_000)] * 3_000]
    records = [*(Record(0, DAY, value) for value in values), *[Record(1, DAY, b"1")] * 20]
    archiver = services.archive(records, 2, source={"reader": reader, "value": {"decode": "json"}})
    work = archiver.plan(hour(0))
    with pytest.raises(BadRecordError) as caught:
        archiver.job().run(work.archive[0])
    assert archiver.objects() == {}
    assert str(caught.value).startswith(f"{archiver.topics[0]}[0] offset 0: ")
    # Where Spark reads, it may end a worker before that has thrown away what it had sent; the run's verify does then.
    if reader == "native":
        assert archiver.uploads() == []
    archiver.choose(bad_record="skip")
    archiver.work(work)
    assert archiver.uploads() == []
    assert archiver.account(hour(0)) == {"archived": 3_020, "filtered": 1}
