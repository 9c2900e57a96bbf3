"""The verdicts of verify on the objects of a run, on stores of every kind: ETags are MD5s or not, checksums or none."""

import re
import uuid

import pytest

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.store.object_check import compare
from kafka_archiver.values.checksum import crc32, spelt
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.verify import verify
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.unit

P0 = TopicPartition("orders", 0)


@pytest.fixture(params=[False, True], ids=["MD5s", "foreign ETags"])
def foreign(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=[True, False], ids=["checksums", "none"])
def lake(request: pytest.FixtureRequest, foreign: bool) -> Lake:
    """An archive with a run of some objects that is settled."""
    store = MemoryStore(uuid.uuid4().hex, foreign_etags=foreign, checksums=request.param)
    lake = Lake(store, {P0: Range(0, 4)}, settings={"codec": "none"})
    lake.run(3)
    return lake


RUN = hour(3).id


def test_objects_that_were_written_again_are_as_promised(lake: Lake, foreign: bool) -> None:
    [first, *_] = lake.stored()
    before = lake.store.head(first)
    lake.store.delete(first)
    lake.job().run(RUN)
    after = lake.store.head(first)
    assert before is not None
    assert after is not None
    assert (after.etag == before.etag) != foreign
    verify(lake.context, [RUN])


def test_another_object_of_the_same_size_is_found_out(lake: Lake) -> None:
    [first, *_] = lake.stored()
    lake.store.put(first, b"x" * len(lake.store.get(first) or b""))
    with pytest.raises(
        IntegrityError, match=rf"{re.escape(first)}: expected 9 bytes with checksum crc32:\w{{8}}, found 9 bytes with"
    ):
        verify(lake.context, [RUN])


def test_an_object_that_is_gone_or_of_another_size_is_named(lake: Lake) -> None:
    [first, second, *_] = lake.stored()
    lake.store.delete(first)
    lake.store.put(second, b"more than there was")
    with pytest.raises(
        IntegrityError,
        match=rf"(?s){re.escape(first)}: expected .*, found nothing.*{re.escape(second)}: .* found 19 bytes",
    ):
        verify(lake.context, [RUN])


def test_what_is_damaged_on_the_way_only_is_right_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(uuid.uuid4().hex, checksums=False)
    store.put("k", b"data")
    answers = [b"dada", b"data"]
    monkeypatch.setattr(store, "read", lambda *_: answers.pop(0))
    comparison = compare(store, "k", 4, spelt(crc32(b"data")))
    assert (comparison.same, comparison.by, answers) == (True, "bytes", [])


def test_what_is_there_as_promised_is_not_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryStore, "read", None)
    verify(lake.context, [RUN])
