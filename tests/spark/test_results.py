"""Each chunk that an engine is given has a result: one without would look like offsets at which Kafka has no record."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kafka_archiver.messages.errors import IntegrityError, PermanentError
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.records.writer.result import WriteJob
from kafka_archiver.spark import engine, native, source
from kafka_archiver.work.archive.step import ArchiveStep
from tests.support.archiver import Archiver, Services, hour
from tests.support.topics import DAY, Record

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

engines = pytest.mark.parametrize("reader", ["native", "spark"])


def planned(services: Services, reader: str) -> tuple[Archiver, ArchiveStep, Plan]:
    """Two partitions in chunks of 10. [0] has records from 0 to 21 and aborted ones behind, [1] aborted ones alone."""
    archiver = services.archive(
        [Record(0, DAY, b"1")] * 22, 2, settings={"chunk_records": 10}, source={"reader": reader}
    )
    archiver.produce([Record(n % 2, DAY, b"no") for n in range(50)], "abort")
    return archiver, archiver.job(), archiver.planned(archiver.plan(hour(1)).runs[0])


@engines
def test_also_a_chunk_without_a_record_has_a_result(services: Services, reader: str) -> None:
    archiver, job, plan = planned(services, reader)
    results = job.engine.write(plan, list(plan.chunks()), WriteJob.of(plan, "fail", {}))
    assert sorted(map(str, plan.chunks())) == sorted(str(result.chunk) for result in results)
    accounts = {(r.chunk.partition, r.chunk.start): (r.account.archived, r.account.absent) for r in results}
    assert accounts == {
        (0, 0): (10, 0), (0, 10): (10, 0), (0, 20): (2, 8), (0, 30): (0, 10), (0, 40): (0, 8),
        (1, 0): (0, 10), (1, 10): (0, 10), (1, 20): (0, 6),
    }  # fmt: skip
    assert len(archiver.uploads()) == 3


def test_a_task_that_nobody_makes_of_a_chunk_is_missed(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    archiver, job, plan = planned(services, "native")
    share = native.share
    monkeypatch.setattr(engine, "share", lambda chunks, cores: share(chunks[:4] + chunks[5:], cores))
    with pytest.raises(
        IntegrityError, match=r"\[0\] \[40, 48\) was given to the engine, and has no result.*please report"
    ):
        job.run(plan.run)
    assert archiver.uploads() == []


def dropping(reads: Iterable[list[Chunk]]) -> list[list[Chunk]]:
    *earlier, last = reads
    return [*earlier, last[:-1]] if last[:-1] else earlier


def twice(reads: Iterable[list[Chunk]]) -> list[list[Chunk]]:
    """The empty chunk of [0] is read again, instead of one that has records."""
    chunks = [chunk for some in reads for chunk in some]
    [empty] = [c for c in chunks if (c.partition, c.start) == (0, 30)]
    return [[empty if (c.partition, c.start) == (0, 10) else c] for c in chunks]


@pytest.mark.parametrize(("change", "missing"), [(dropping, "[0] [40, 48)"), (twice, "[0] [10, 20)")])
def test_a_chunk_that_spark_s_source_is_not_asked_for_is_missed(
    services: Services, monkeypatch: pytest.MonkeyPatch, change: Callable[..., Any], missing: str
) -> None:
    archiver, job, plan = planned(services, "spark")
    reads = source._reads
    monkeypatch.setattr(source, "_reads", lambda chunks: change(reads(chunks)))
    with pytest.raises(IntegrityError, match="has no result") as caught:
        job.run(plan.run)
    assert missing in str(caught.value)
    assert archiver.uploads() == []


def test_a_spark_that_does_not_say_what_a_task_read_is_not_trusted(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    archiver, job, plan = planned(services, "spark")
    monkeypatch.setattr(source, "_RANGE", "of another version")
    with pytest.raises(PermanentError, match=r"does not say which offsets .*source\.reader: native"):
        job.engine.write(plan, list(plan.chunks()), WriteJob.of(plan, "fail", {}))
    assert archiver.uploads() == []
