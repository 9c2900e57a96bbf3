"""A restore whose records get the schema ids of another registry, or is refused before its first write."""

import time
import uuid
from typing import Any

import pytest

from kafka_archiver.model.restore import RestorePlan, RestoreSelection
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.model.restored_schemas import ReframedColumn
from kafka_archiver.store import open_store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.restore.lane import Lane, UnknownFrameError
from kafka_archiver.work.restore.pace import Pace
from kafka_archiver.work.restore.partition_writer import PartitionWriter
from kafka_archiver.work.restore.plan import plan_restore
from kafka_archiver.work.restore.step import checked_frames
from kafka_archiver.work.restore.verify import PartitionReader
from tests.support.kafka_twin import KafkaTwin
from tests.support.lake import Lake
from tests.support.restore_twin import TwinTarget

pytestmark = pytest.mark.unit

NAME = TopicPartition("t", 0)
FRAMED = [b"\0\0\0\0\1a", b"\0\0\0\0\2", None, b"\0\0\0\0\1b"]


def lane_of(values: list[bytes | None]) -> tuple[Lane, KafkaTwin]:
    """Return the lane of a restore of these values, whose ids 1 and 2 become 70 and 1, and its target."""
    name = uuid.uuid4().hex
    MemoryStore(name)
    odd: dict[Any, Any] = {(NAME, offset): {"value": value} for offset, value in enumerate(values)}
    settings = {"content": "record", "codec": "none"}
    lake = Lake(open_store(f"memory://{name}/", {}), {NAME: Range(0, len(values))}, settings=settings, odd=odd)
    lake.run(len(values))
    twin = KafkaTwin(lambda: 0)
    twin.create_topic("t")
    ids = ReframedColumn(topic="t", column="value", ids=((1, 70), (2, 1)))
    request = RestoreRequest("r", RestoreSelection(topics=("t",)), schema_ids=(ids,))
    plan = plan_restore(lake.ledger, twin, request)
    assert RestorePlan.from_json(plan.to_json(), "plan").schema_ids == (ids,)
    return Lane(lake.ledger, plan, NAME, frozenset()), twin


def test_records_get_the_new_ids_and_are_verified_with_them() -> None:
    lane, twin = lane_of(FRAMED)
    target = TwinTarget(twin)
    assert checked_frames(lane, lambda: False) == len(FRAMED)
    PartitionWriter(target, lane, Pace()).run()
    assert PartitionReader(target, lane, time.sleep).run().report.verified
    values = [entry.record.value for entry in twin.log(NAME).entries if entry.record]
    assert values == [b"\0\0\0\0\x46a", b"\0\0\0\0\1", None, b"\0\0\0\0\x46b"]


@pytest.mark.parametrize("value", [b"\0\0\0", b"\0\0\0\0\7a", b"plain text"])
def test_a_frame_that_is_not_known_is_refused_before_the_first_write(value: bytes) -> None:
    lane, twin = lane_of([*FRAMED, value])
    with pytest.raises(UnknownFrameError, match=r"t\[0\] offset 4 names no schema that the target's registry has"):
        checked_frames(lane, lambda: False)
    assert twin.log(NAME).high == 0
