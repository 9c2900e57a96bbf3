"""A job is killed between its objects and its manifest, and retention comes before the next: on every kind of store."""

import uuid

import pytest

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.verify import verify
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.unit

P0 = TopicPartition("orders", 0)


class Killed(BaseException):
    """The process is dead."""


class Store(MemoryStore):
    """Its client dies when all objects are there and nothing says so, once."""

    deadly = True

    def replace(self, key: str, data: bytes, etag: str) -> bool:
        if key.endswith("/intent.json") and self.deadly:
            self.deadly = False
            raise Killed
        return super().replace(key, data, etag)


@pytest.fixture(params=[(False, True), (False, False), (True, True), (True, False)], ids=str)
def lake(request: pytest.FixtureRequest) -> Lake:
    """An archive whose first attempt was killed, before retention had two of four records. Two make a chunk."""
    foreign, checksums = request.param
    store = Store(uuid.uuid4().hex, foreign_etags=foreign, checksums=checksums)
    lake = Lake(store, {P0: Range(0, 4)}, policies={"lost_offsets": "record_loss"})
    with pytest.raises(Killed):
        lake.run(3)
    lake.logs[P0] = Range(2, 4)
    return lake


def test_what_the_killed_attempt_wrote_is_kept_with_the_etags_that_it_has(lake: Lake) -> None:
    lake.run(3)
    manifest = lake.manifest(hour(3).id)
    assert (manifest.account["archived"], manifest.account["lost"]) == (4, 0)
    assert {o.key: o.etag for o in manifest.stored} == {s.key: s.etag for s in lake.store.list("orders/")}
    verify(lake.context, [hour(3).id])
    assert lake.audit(deep=True).verdict == "clean"


def test_what_it_had_not_written_is_read_as_far_as_it_is_there(lake: Lake) -> None:
    first, second, *later = lake.stored()
    for key in later:
        lake.store.delete(key)
    lake.logs[P0] = Range(3, 4)
    lake.run(3)
    manifest = lake.manifest(hour(3).id)
    assert (manifest.account["archived"], manifest.account["lost"]) == (3, 1)
    assert lake.stored() == [first, second, later[-1]]
    assert lake.audit(deep=True).damage == ()


def test_what_is_not_what_the_killed_attempt_wrote_is_not_kept(lake: Lake) -> None:
    [first, *_] = lake.stored()
    lake.store.put(first, bytes(len(lake.store.get(first) or b"")))
    with pytest.raises(IntegrityError, match=r"was written by an earlier attempt .* again would lose records"):
        lake.run(3)
