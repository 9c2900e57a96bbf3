"""`source.max_value_bytes` on real services: both readers, and any batches, give the same objects and dead letters."""

import random
from dataclasses import replace

import pytest

from kafka_archiver.errors import PermanentError
from kafka_archiver.kafka import reader
from kafka_archiver.steps.rebuild import rebuild_run
from tests.support.archiver import Services, hour
from tests.support.topics import DAY, HOUR, Record

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

LIMIT = 1000


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["dead_letter", "skip"])
def test_both_readers_and_any_batches_agree_on_what_is_too_large(
    services: Services, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    draw = random.Random(7)
    sizes = [draw.choice([None, 0, 1, LIMIT - 1, LIMIT, LIMIT + 1, 40_000]) for _ in range(400)]
    values = [None if size is None else b"7" * size for size in sizes]
    records = [
        Record(0, DAY + n % 3 * HOUR, value, b"k" * 2 * LIMIT, [("h", b"h" * 2 * LIMIT)])
        for n, value in enumerate(values)
    ]
    topic = services.topic(records)
    large = sum(size is not None and size > LIMIT for size in sizes)

    def written(reader: str = "native") -> tuple[dict[str, str], dict[str, int]]:
        source = {"max_value_bytes": LIMIT, "reader": reader}
        choice = {"bad_record": policy}
        archiver = services.archive_of(topic, settings={"chunk_records": 150}, policies=choice, source=source)
        archiver.run(hour(1), plain=reader == "native")
        return archiver.etags(), archiver.account(hour(1))

    expected = written("spark")
    fate = "dead_lettered" if policy == "dead_letter" else "filtered"
    assert expected[1] == {"archived": len(records) - large, fate: large}
    for batch in (1, 7, 2000):
        monkeypatch.setattr(reader, "BATCH", batch)
        assert written() == expected


def test_a_run_keeps_the_limit_it_was_planned_with_and_the_message_s_command_settles_it(services: Services) -> None:
    records = [Record(0, DAY, b"1"), Record(0, DAY, b"2" * 11)]
    archiver = services.archive(records, source={"max_value_bytes": 10})
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
