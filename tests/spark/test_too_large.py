"""`source.max_value_bytes` on real services: both readers, and any batches, give the same objects and dead letters."""

import random

import pytest

from kafka_archiver.kafka import reader
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
