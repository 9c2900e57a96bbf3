"""Where ranges start and end, and what each strange state of the brokers leads to."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.config import Archive
from kafka_archiver.errors import PolicyError
from kafka_archiver.intervals import Interval
from kafka_archiver.plan import PartitionPlan, Plan
from kafka_archiver.planning import begins_behind, plan_backfill, plan_forward
from kafka_archiver.policy import Known, Seen, beginnings, troubles
from kafka_archiver.proof import PartitionProgress, Progress
from kafka_archiver.ranges import Range, TopicPartition, merge, overlaps

NAME = TopicPartition("orders", 0)


def archive(limit: int = 10**9, **policies: str) -> Archive:
    return Archive.model_validate(
        {
            "archive": "orders",
            "source": {"topics": ["orders"], "max_records_per_run": limit},
            "store": {"url": "s3://b/p"},
            "policies": policies,
        }
    )


def seen(**changes: Any) -> Seen:
    state: dict[str, Any] = {
        "name": NAME,
        "topic_id": "id",
        "committed": None,
        "log_start": 0,
        "log_end": 100,
        "interval_start": None,
        "interval_end": None,
        "begin": 0,
    } | changes
    end = state["interval_end"]
    return Seen(**{"passed": state["log_end"] if end is None else end, "high": state["log_end"], **state})


def known(
    next_: int | None, covered: tuple[tuple[int, int], ...] = (), topic_id: str = "id"
) -> dict[TopicPartition, Any]:
    return {NAME: PartitionProgress(topic="orders", topic_id=topic_id, partition=0, next=next_, covered=covered)}


def forward(of: Archive, states: list[Seen], ledger: Known) -> list[PartitionPlan]:
    starts = beginnings(of, states, ledger)
    return plan_forward(of.source.max_records_per_run, states, ledger, starts, {})


def only(planned: list[PartitionPlan]) -> PartitionPlan:
    [one] = planned
    return one


def test_a_new_archive_starts_where_the_yaml_says() -> None:
    planned = only(forward(archive(), [seen(begin=40)], {}))
    assert (planned.start, planned.end, planned.offset_ranges) == (40, 100, (Range(40, 100),))


def test_a_partition_added_later_starts_at_its_first_record() -> None:
    other = seen(name=TopicPartition("orders", 1), begin=90, log_start=5)
    planned = forward(archive(), [seen(committed=100), other], known(100))
    assert planned[1].offset_ranges == (Range(5, 100),)


def test_a_run_goes_on_where_the_group_stands() -> None:
    assert only(forward(archive(), [seen(committed=70)], known(70))).offset_ranges == (Range(70, 100),)


def test_an_idle_partition_gives_an_empty_range_that_closes_the_hour() -> None:
    planned = only(forward(archive(), [seen(committed=100)], known(100)))
    assert (planned.count, planned.end, planned.closes) == (0, 100, True)


def test_a_capped_run_stops_early_and_does_not_close_the_hour() -> None:
    planned = only(forward(archive(limit=30), [seen(committed=10, interval_end=60)], known(10)))
    assert (planned.offset_ranges, planned.end, planned.closes) == ((Range(10, 40),), 40, False)


def test_a_cap_is_shared_so_that_a_skewed_partition_starves_nobody() -> None:
    small = seen(name=TopicPartition("orders", 1), log_end=5)
    planned = forward(archive(limit=50), [seen(), small], {})
    assert [p.count for p in planned] == [45, 5]


def test_what_a_backfill_archived_is_not_archived_again() -> None:
    planned = only(forward(archive(), [seen(committed=10)], known(10, ((20, 30), (50, 60)))))
    assert planned.offset_ranges == (Range(10, 20), Range(30, 50), Range(60, 100))
    assert planned.end == 100


def test_a_backfill_takes_the_offsets_of_its_interval_that_nobody_covers() -> None:
    state = seen(interval_start=20, interval_end=60, committed=100)
    assert only(plan_backfill([state], known(100, ((0, 25),)))).offset_ranges == (Range(25, 60),)
    assert only(plan_backfill([seen()], {})).offset_ranges == ()
    assert only(plan_backfill([seen(interval_start=20)], {})).offset_ranges == (Range(20, 100),)


STRANGE = [
    (
        seen(committed=5, log_start=8),
        known(5),
        r"3 offsets of orders\[0\] are gone.*once with `airflow dags trigger archive_orders --conf "
        r"'{\"policies\": {\"lost_offsets\": \"record_loss\"}}'`, always with `policies.lost_offsets: record_loss`",
    ),
    (seen(committed=5, topic_id="new"), known(5), r"deleted and made again.*recreated_topic: new_generation`"),
    (seen(committed=101), {}, r"past the end of the log at 100"),
    (seen(committed=50), known(60), r"stands at 50 .* up to 60.*`policies.moved_group: follow_ledger`.*--to-offset 60"),
    (seen(committed=70), known(60), r"stands at 70 .* up to 60"),
]


@pytest.mark.parametrize(("state", "ledger", "message"), STRANGE)
def test_a_strange_state_fails_and_says_what_to_do(
    state: Seen, ledger: dict[TopicPartition, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        forward(archive(), [state], ledger)


def test_a_missing_group_resumes_from_the_ledger_unless_told_to_fail() -> None:
    assert only(forward(archive(), [seen()], known(60))).offset_ranges == (Range(60, 100),)
    with pytest.raises(PolicyError, match=r"no offset for orders\[0\].*resume_from_ledger"):
        forward(archive(missing_group="fail"), [seen()], known(60))


def test_lost_offsets_are_recorded_when_the_policy_says_so() -> None:
    planned = only(forward(archive(lost_offsets="record_loss"), [seen(committed=5, log_start=8)], known(5, ((6, 7),))))
    assert planned.lost == ((5, 6), (7, 8))
    assert planned.offset_ranges == (Range(8, 100),)
    assert planned.start == 5


def test_a_moved_group_follows_the_ledger_when_the_policy_says_so() -> None:
    planned = only(forward(archive(moved_group="follow_ledger"), [seen(committed=20)], known(60)))
    assert planned.offset_ranges == (Range(60, 100),)


START = datetime(2026, 11, 21, tzinfo=UTC)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("grow"), st.integers(1, 50)),
            st.tuples(st.just("run"), st.integers(1, 60)),
            st.tuples(st.just("backfill"), st.tuples(st.integers(0, 300), st.integers(0, 300))),
        ),
        max_size=40,
    )
)
def test_whatever_the_order_of_runs_and_backfills_every_offset_is_planned_once(steps: list[tuple[str, Any]]) -> None:
    progress, group, end, planned = Progress(archive="orders"), None, 0, []
    for number, (what, how) in enumerate([*steps, ("run", 10**6)]):
        if what == "grow":
            end += how
            continue
        before = {p.name: p for p in progress.partitions}
        if what == "run":
            part = only(forward(archive(limit=how), [seen(committed=group, log_end=end)], before))
            assert part.start == (group or 0)
            group = part.end
        else:
            low, high = sorted(min(x, end) for x in how)
            part = only(plan_backfill([seen(log_end=end, interval_start=low, interval_end=high)], before))
        planned += part.offset_ranges
        interval = Interval(start=START + timedelta(hours=number), end=START + timedelta(hours=number + 1))
        plan = Plan(
            archive="orders",
            interval=interval,
            origin="scheduled" if what == "run" else "backfill",
            planned_at=interval.end,
            cluster_id="c",
            group="g",
            settings=archive().settings,
            policies={},
            partitions=(part,),
        )
        progress = progress.after(plan)
        assert progress.after(plan) == progress
    assert not overlaps(planned)
    assert merge(planned) == merge([Range(0, end)])
    assert group == end


def test_a_capped_run_does_not_close_the_hour_even_if_the_time_index_says_so() -> None:
    # One record with a time far ahead, early in the log, is the answer to every question after its hour.
    planned = only(forward(archive(limit=30), [seen(interval_end=5)], {}))
    assert (planned.end, planned.closes) == (30, False)


def test_records_behind_an_open_transaction_keep_the_hour_open() -> None:
    assert not only(forward(archive(), [seen(log_end=20, passed=90)], {})).closes
    assert not only(plan_backfill([seen(interval_start=5, log_end=20, passed=90)], {})).closes


def test_a_backfill_does_not_claim_an_hour_it_cannot_see() -> None:
    hidden = seen(interval_start=5, interval_end=5)
    assert not only(plan_backfill([hidden], known(0))).closes
    assert only(plan_backfill([hidden], known(100, ((0, 100),)))).closes
    cut = seen(interval_start=20, interval_end=40, log_start=20)
    assert not only(plan_backfill([cut], known(10, ((0, 10),)))).closes
    assert only(plan_backfill([cut], known(20, ((0, 20),)))).closes


def test_a_backfill_of_a_topic_that_was_made_again_fails_too() -> None:
    with pytest.raises(PolicyError, match="deleted and made again"):
        plan_backfill([seen(topic_id="new")], known(5))


def test_doctor_hears_of_every_partition_s_trouble_not_of_the_first_alone() -> None:
    other = seen(name=TopicPartition("orders", 1), committed=200)
    found = troubles(archive(), [seen(committed=5, log_start=8), other], known(5))
    assert [("are gone" in message, "past the end" in message) for message in found] == [(True, False), (False, True)]
    assert troubles(archive(), [seen(committed=5)], known(5)) == []


@pytest.mark.parametrize("committed", [None, 3, 60, 500])
def test_a_topic_made_again_begins_a_new_generation_at_its_log_s_start(committed: int | None) -> None:
    choice = archive(recreated_topic="new_generation")
    state = seen(committed=committed, topic_id="new", log_start=2, log_end=10)
    planned = only(forward(choice, [state], known(60, ((0, 60),))))
    assert (planned.generation, planned.start, planned.offset_ranges, planned.lost) == (1, 2, (Range(2, 10),), ())
    assert "deleted and made again" in planned.decided[0]


def test_all_partitions_of_a_topic_made_again_are_of_one_generation_old_ones_and_new_ones() -> None:
    choice = archive(recreated_topic="new_generation")
    ledger = known(60) | {
        TopicPartition("orders", 1): PartitionProgress(topic="orders", topic_id="id", partition=1, generation=3, next=5)
    }
    states = [seen(name=TopicPartition("orders", n), topic_id="new") for n in range(3)]
    assert [p.generation for p in forward(choice, states, ledger)] == [4, 4, 4]


def test_a_log_that_lost_its_end_begins_a_new_generation() -> None:
    choice = archive(recreated_topic="new_generation")
    planned = only(forward(choice, [seen(committed=101)], known(101, ((0, 101),))))
    assert (planned.generation, planned.offset_ranges) == (1, (Range(0, 100),))


@pytest.mark.parametrize("position", [20, 80])
def test_a_group_moved_on_purpose_begins_a_new_generation_where_it_stands(position: int) -> None:
    choice = archive(moved_group="new_generation")
    state, ledger = seen(committed=position), known(60, ((0, 60),))
    planned = only(forward(choice, [state], ledger))
    assert (planned.generation, planned.start, planned.offset_ranges) == (1, position, (Range(position, 100),))
    # What nobody archives any more keeps hours from being complete.
    behind = begins_behind([state], ledger, beginnings(choice, [state], ledger))
    assert behind == ({NAME: 80} if position == 80 else {})


def test_the_generation_that_began_goes_on() -> None:
    ledger = {NAME: PartitionProgress(topic="orders", topic_id="id", partition=0, generation=2, next=70)}
    assert only(forward(archive(), [seen(committed=70)], ledger)).generation == 2
    assert only(plan_backfill([seen(interval_start=10, interval_end=70)], ledger)).generation == 2


def test_what_was_lost_keeps_a_backfill_from_completing_the_hour() -> None:
    ledger = {NAME: known(20, ((0, 20),))[NAME].model_copy(update={"lost": ((15, 20),)})}
    assert not only(plan_backfill([seen(interval_start=20, interval_end=40, log_start=20)], ledger)).closes
