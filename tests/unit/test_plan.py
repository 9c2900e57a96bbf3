"""Plans: chunks are exactly the planned offsets, and a plan that contradicts itself cannot be made."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.ranges import Range, TopicPartition, merge
from tests.support import values
from tests.support.values import offsets, plans

pytestmark = pytest.mark.unit


def partition(**changes: Any) -> PartitionPlan:
    state = {"topic": "t", "topic_id": "id", "partition": 0, "start": 0, "end": 9, "log_start": 0, "log_end": 9}
    return PartitionPlan.model_validate({**state, "ranges": ((0, 9),), **changes})


@given(plans())
def test_chunks_are_exactly_the_planned_offsets_in_order(plan: Plan) -> None:
    chunks = list(plan.chunks())
    for planned in plan.partitions:
        own = [c.range for c in chunks if (c.topic, c.partition) == planned.name]
        assert own == sorted(own)
        assert sum(r.size for r in own) == planned.count
        assert merge(own) == merge(planned.offset_ranges)
    assert sum(c.range.size for c in chunks) == plan.count
    assert {TopicPartition(c.topic, c.partition) for c in chunks} <= {p.name for p in plan.partitions}


@given(plans())
def test_a_chunk_has_at_most_the_offsets_of_the_settings_and_is_never_empty(plan: Plan) -> None:
    assert all(0 < c.range.size <= plan.settings.chunk_records for c in plan.chunks())


@given(plans(), offsets)
def test_the_chunk_of_an_offset_is_the_one_that_holds_it(plan: Plan, offset: int) -> None:
    for planned in plan.partitions:
        holding = [c for c in plan.chunks() if (c.topic, c.partition) == planned.name and offset in c.range]
        chunk = plan.chunk_of(planned.name, offset)
        assert ([] if chunk is None else [chunk]) == holding
    assert plan.chunk_of(TopicPartition("nobody's", 0), offset) is None


@given(plans())
def test_lost_ranges_are_accounted_for_and_not_read(plan: Plan) -> None:
    lost = [(c.topic, c.partition, c.start, c.end) for c in plan.lost_chunks()]
    assert lost == [(*p.name, *gone) for p in plan.partitions for gone in p.lost]
    assert all(plan.chunk_of(TopicPartition(topic, number), start) is None for topic, number, start, _ in lost)


@given(plans())
def test_a_plan_is_named_after_its_interval_and_only_a_scheduled_one_moves_the_group(plan: Plan) -> None:
    assert plan.run == "20261121T050000Z"
    assert plan.moves_group == (plan.origin in ("scheduled", "manual"))


@given(plans(least=1), st.data())
def test_a_partition_cannot_be_planned_twice(plan: Plan, data: st.DataObject) -> None:
    again = data.draw(st.sampled_from(plan.partitions))
    with pytest.raises(ValidationError, match="a partition is listed twice"):
        Plan.model_validate({**dict(plan), "partitions": (*plan.partitions, again)})


@pytest.mark.parametrize(
    ("ranges", "lost"), [(((0, 5), (4, 9)), ()), (((4, 9), (0, 5)), ()), (((4, 9),), ((0, 5),)), (((4, 9),) * 2, ())]
)
def test_no_offset_can_be_planned_twice(ranges: Any, lost: Any) -> None:
    with pytest.raises(ValidationError, match=r"t\[0\] has offsets in two ranges: \[4, [59]\)"):
        values.plan(partition(ranges=ranges, lost=lost))


@pytest.mark.parametrize("wrong", [(5, 5), (6, 5), (-1, 5), (5, 1 << 63)])
def test_a_planned_range_is_never_empty_or_negative_or_no_offsets_of_kafkas(wrong: tuple[int, int]) -> None:
    with pytest.raises(ValidationError, match="an offset range needs 0 <= start < end"):
        partition(ranges=(wrong,))


def test_ranges_are_ranges_after_reading_too() -> None:
    assert partition(ranges=[[2, 5]]).offset_ranges == (Range(2, 5),)


@pytest.mark.parametrize("wrong", [{"chunk_records": 0}, {"part_bytes": (5 << 20) - 1}])
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Settings(**wrong)
