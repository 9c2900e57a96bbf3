"""A stage that nobody asked for, behind both readers: some records become several rows, others are left out."""

from typing import Any

import pytest

from kafka_archiver.audit.inspection import audit
from kafka_archiver.spark import engine
from kafka_archiver.spark.sink import Sink
from kafka_archiver.values.ranges import TopicPartition
from tests.support.archiver import Services, hour
from tests.support.topics import DAY, HOUR, Record
from tests.support.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

COUNT = 300


def with_a_stage_more() -> type[Sink]:
    """A sink whose tasks double the records of every fifth offset, filter those of every seventh behind them, and
    reject those of every eleventh of the rest. A class of a function's own: Spark ships it to its workers as it is.
    """

    class More(Sink):
        def write(self, chunk: Any, batches: Any) -> bytes:
            import numpy as np
            import pyarrow as pa

            from kafka_archiver.records.pipeline import variants
            from kafka_archiver.records.pipeline.stages import stages_of
            from kafka_archiver.values.columns import column

            def double(batch: Any, marks: Any) -> Any:
                offsets = column(batch, "offset")
                marks.filter(offsets[offsets % 7 == 3])
                bad = offsets[(offsets % 11 == 5) & (offsets % 7 != 3)]
                marks.reject(dict.fromkeys(bad.tolist(), "nobody likes it"))
                return batch.take(pa.array(np.repeat(np.arange(len(offsets)), 1 + (offsets % 5 == 2))))

            variants.stages_of = lambda *arguments: [*stages_of(*arguments), double]
            try:
                return super().write(chunk, batches)
            finally:
                # Spark's workers go on to other tests.
                variants.stages_of = stages_of

    return More


def fate(offset: int) -> str:
    return "filtered" if offset % 7 == 3 else "dead_lettered" if offset % 11 == 5 else "archived"


@pytest.mark.parametrize("reader", ["native", "spark"])
@pytest.mark.parametrize("content", ["value", "record"])
def test_the_account_is_exact_and_both_readers_agree(
    services: Services, monkeypatch: pytest.MonkeyPatch, reader: str, content: str
) -> None:
    offsets = [*range(100), *range(101, COUNT + 1)]
    monkeypatch.setattr(engine, "Sink", with_a_stage_more())
    settings = {"chunk_records": 120, "content": content}
    archiver = services.archive(settings=settings, policies={"bad_record": "dead_letter"}, source={"reader": reader})
    records = [Record(0, DAY + n % 3 * HOUR, b"%d" % n, b"k") for n in range(COUNT)]
    archiver.produce(records[:100], "commit")
    # The transaction's marker, at which Kafka has no record, arrives a moment after the commit.
    name = TopicPartition(archiver.topics[0], 0)
    until(lambda: archiver.context.cluster.log_ends([name], "read_committed")[name] == 101)
    archiver.produce(records[100:])
    archiver.run(hour(1))

    fates = [fate(offset) for offset in offsets]
    assert archiver.account(hour(1)) == {"absent": 1, **{name: fates.count(name) for name in set(fates)}}
    manifest = archiver.manifest(hour(1))
    doubled = sum(offset % 5 == 2 for offset, name in zip(offsets, fates, strict=True) if name == "archived")
    assert manifest.rows == fates.count("archived") + doubled
    assert sum(o.offsets for o in manifest.objects) == fates.count("archived")
    assert [a.rows for a in manifest.chunks] == [
        sum(1 + (o % 5 == 2) for o in offsets if a.start <= o < a.end and fate(o) == "archived")
        for a in manifest.chunks
    ]
    values = sorted(line for lines in archiver.lines().values() for line in lines if isinstance(line, int))
    if content == "value":
        expected = [n for n, o in enumerate(offsets) for _ in range(1 + (o % 5 == 2)) if fate(o) == "archived"]
        assert values == expected
    report = audit(archiver.archive, archiver.context.store, archiver.now[0], deep=True)
    assert (report.verdict, report.findings) == ("clean", ())
