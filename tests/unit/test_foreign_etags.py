"""A job is killed between its objects and its manifest, and retention comes before the next: on every kind of store."""

import uuid

import pytest

from kafka_archiver.errors import IntegrityError
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.steps.verify import verify
from kafka_archiver.store.memory import MemoryStore
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


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("foreign", [False, True])
def test_what_the_killed_attempt_wrote_is_kept_with_the_etags_that_it_has(foreign: bool, checksums: bool) -> None:
    store = Store(uuid.uuid4().hex, foreign_etags=foreign, checksums=checksums)
    lake = Lake(store, {P0: Range(0, 4)}, policies={"lost_offsets": "record_loss"})
    with pytest.raises(Killed):
        lake.run(3)
    lake.logs[P0] = Range(2, 4)
    lake.run(3)
    manifest = lake.ledger.manifest(hour(3).id)
    assert manifest is not None
    assert (manifest.account["archived"], manifest.account["lost"]) == (4, 0)
    assert {o.key: o.etag for o in manifest.stored} == {s.key: s.etag for s in store.list("orders/")}
    verify(lake.context, [hour(3).id])
    assert lake.audit(deep=True).verdict == "clean"


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("foreign", [False, True])
def test_what_is_not_what_the_killed_attempt_wrote_is_not_kept(foreign: bool, checksums: bool) -> None:
    store = Store(uuid.uuid4().hex, foreign_etags=foreign, checksums=checksums)
    lake = Lake(store, {P0: Range(0, 4)}, policies={"lost_offsets": "record_loss"})
    with pytest.raises(Killed):
        lake.run(3)
    [first, *_] = lake.stored()
    store.put(first, bytes(len(store.get(first) or b"")))
    lake.logs[P0] = Range(2, 4)
    with pytest.raises(IntegrityError, match="was written by an earlier attempt"):
        lake.run(3)
