"""Where ranges start and end, and what each strange state of the brokers leads to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.model.plan import PartitionPlan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.unsure_hours import LeftOutOffsets
from kafka_archiver.planning.beginnings import beginnings, policy_errors
from kafka_archiver.planning.left_out import left_out
from kafka_archiver.planning.partition_state import Known, PartitionState
from kafka_archiver.planning.planned_ranges import plan_backfill, plan_forward
from kafka_archiver.values.ranges import Range, TopicPartition, merge, overlaps
from tests.support.plans import FIVE, plan

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


def observed(**changes: Any) -> PartitionState:
    state: dict[str, Any] = {
        "name": NAME,
        "topic_id": "id",
        "committed": None,
        "group_in_place": False,
        "log_start": 0,
        "log_end": 100,
        "leader_epoch": 0,
        "begin": 0,
        "tools": KafkaTools("b:9092"),
    } | changes
    return PartitionState(**{"high": state["log_end"], **state})


def known(
    next_: int | None, covered: tuple[tuple[int, int], ...] = (), topic_id: str = "id"
) -> dict[TopicPartition, Any]:
    return {NAME: PartitionProgress(topic="orders", topic_id=topic_id, partition=0, next=next_, covered=covered)}


def forward(of: Archive, states: list[PartitionState], ledger: Known) -> list[PartitionPlan]:
    starts = beginnings(of, states, ledger)
    return plan_forward(of.source.max_records_per_run, states, ledger, starts)


def backfill(state: PartitionState, ledger: Known, start: int, end: int) -> list[PartitionPlan]:
    return plan_backfill([state], ledger, {state.name: Range(start, end)})


def only(planned: list[PartitionPlan]) -> PartitionPlan:
    [partition_plan] = planned
    return partition_plan


ALL = 10**9


@pytest.mark.parametrize(
    ("state", "ledger", "limit", "ranges"),
    [
        pytest.param({"begin": 40}, {}, ALL, [(40, 100)], id="a new archive starts where the YAML says"),
        pytest.param({"committed": 70}, known(70), ALL, [(70, 100)], id="a run goes on where the group stands"),
        pytest.param({"committed": 10}, known(10), 30, [(10, 40)], id="a capped run stops early"),
        pytest.param({"committed": 100, "high": 103}, known(100), ALL, [], id="of an idle partition nothing is taken"),
        pytest.param({"committed": 10}, known(10, ((20, 30), (50, 60))), ALL, [(10, 20), (30, 50), (60, 100)],
                     id="what a backfill archived is not archived again"),
        pytest.param({"committed": 5, "log_start": 8}, known(5, ((5, 8),)), ALL, [(8, 100)],
                     id="retention stops nobody where a backfill has all of it"),
    ],
)  # fmt: skip
def test_the_ranges_of_a_run(state: dict[str, Any], ledger: Known, limit: int, ranges: list[tuple[int, int]]) -> None:
    planned = only(forward(archive(limit), [observed(**state)], ledger))
    start = state.get("committed", state.get("begin"))
    assert (planned.offset_ranges, planned.lost, planned.start) == (tuple(Range(*r) for r in ranges), (), start)
    # The plan says how far the log goes.
    assert (planned.end, planned.high) == (ranges[-1][1] if ranges else 100, state.get("high", 100))


def test_a_cap_is_shared_so_that_a_skewed_partition_starves_nobody() -> None:
    small = observed(name=TopicPartition("orders", 1), log_end=5)
    planned = forward(archive(limit=50), [observed(), small], {})
    assert [p.count for p in planned] == [45, 5]


def test_a_backfill_takes_the_offsets_of_its_interval_that_nobody_covers() -> None:
    state = observed(committed=100)
    assert only(backfill(state, known(100, ((0, 25),)), 20, 60)).offset_ranges == (Range(25, 60),)
    assert only(backfill(observed(), {}, 7, 7)).offset_ranges == ()
    assert only(backfill(observed(), {}, 20, 100)).offset_ranges == (Range(20, 100),)


STRANGE = [
    (
        observed(committed=5, log_start=8),
        known(5),
        r"3 offsets of orders\[0\] are gone.*for one run `airflow dags trigger archive_orders --conf "
        r"'{\"policies\": {\"lost_offsets\": \"record_loss\"}}'`, for all runs `policies.lost_offsets: record_loss`",
    ),
    (observed(committed=5, topic_id="new"), known(5), r"deleted and made again.*recreated_topic: new_generation`"),
    (observed(committed=101), {}, r"past the end of the log at 100"),
    (
        observed(committed=50),
        known(60),
        r"stands at 50 .* up to 60.*`policies.moved_group: follow_ledger`.*r b:9092 .*--to-offset 60",
    ),
    (observed(committed=70), known(60), r"stands at 70 .* up to 60"),
    (
        observed(committed=60, doubt="it is another log."),
        known(60),
        r"it is another log\..*recreated_topic: new_generation`",
    ),
]


@pytest.mark.parametrize(("state", "ledger", "message"), STRANGE)
def test_a_strange_state_fails_and_says_what_to_do(
    state: PartitionState, ledger: dict[TopicPartition, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        forward(archive(), [state], ledger)


def test_a_run_that_would_stop_twice_is_told_of_both_with_one_command_that_goes_on() -> None:
    """Two commands, each refused for want of the other's choice, would send a person round and round."""
    other = observed(name=TopicPartition("orders", 1), committed=20)
    states, ledger = (
        [observed(committed=5, log_start=8), other],
        {**known(5), other.name: known(60)[NAME].model_copy(update={"partition": 1})},
    )
    conf = '{"policies": {"lost_offsets": "record_loss", "moved_group": "follow_ledger"}}'
    with pytest.raises(PolicyError, match=r"3 offsets of orders\[0\] are gone.* stands at 20 in orders\[1\]") as error:
        forward(archive(), states, ledger)
    assert str(error.value).count("airflow dags trigger") == 1
    assert f"`airflow dags trigger archive_orders --conf '{conf}'`" in str(error.value)
    forward(archive(lost_offsets="record_loss", moved_group="follow_ledger"), states, ledger)


def test_a_policy_that_stops_several_partitions_names_them_all() -> None:
    states = [observed(name=TopicPartition("orders", number), committed=5, log_start=8) for number in range(12)]
    ledger = {state.name: known(5)[NAME].model_copy(update={"partition": state.name.partition}) for state in states}
    with pytest.raises(PolicyError) as error:
        forward(archive(), states, ledger)
    text = str(error.value)
    assert [text.count(f"3 offsets of orders[{number}] are gone") for number in (0, 1, 9)] == [1, 1, 1]
    assert " And 2 more. " in text
    assert "[5, 8)" not in text
    assert (error.value.policy, len(error.value.actions)) == ("lost_offsets", 1)


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
            part = only(forward(archive(limit=how), [observed(committed=group, log_end=end)], before))
            assert part.start == (group or 0)
            group = part.end
        else:
            low, high = sorted(min(x, end) for x in how)
            part = only(backfill(observed(log_end=end), before, low, high))
        planned += part.offset_ranges
        origin = "scheduled" if what == "run" else "backfill"
        progress = progress.after(plan(progress.settled + 1, part, start=number, origin=origin))
    assert not overlaps(planned)
    assert merge(planned) == merge([Range(0, end)])
    assert group == end


def test_a_backfill_of_a_topic_that_was_made_again_fails_too() -> None:
    with pytest.raises(PolicyError, match="deleted and made again"):
        backfill(observed(topic_id="new"), known(5), 0, 5)
    with pytest.raises(PolicyError, match="another log"):
        backfill(observed(doubt="It is another log."), known(5), 0, 5)
    with pytest.raises(PolicyError, match="past the end of the log at 100"):
        backfill(observed(), known(101), 0, 5)


def test_doctor_hears_of_every_partition_s_trouble_not_of_the_first_alone() -> None:
    other = observed(name=TopicPartition("orders", 1), committed=200)
    messages = [str(error) for error in policy_errors(archive(), [observed(committed=5, log_start=8), other], known(5))]
    assert [("are gone" in message, "past the end" in message) for message in messages] == [
        (True, False),
        (False, True),
    ]
    assert policy_errors(archive(), [observed(committed=5)], known(5)) == []


def test_what_lies_before_the_first_run_is_asked_about_once() -> None:
    first = only(forward(archive(), [observed(begin=40)], {}))
    assert left_out([first], {}, {}, True, FIVE) == {NAME: (Range(0, 40),)}
    older = {NAME: LeftOutOffsets(topic="orders", partition=0, ranges=((0, 40),), than=FIVE)}
    ledger = {NAME: Progress(archive="orders").after(plan(1, first)).partitions[0]}
    second = only(forward(archive(), [observed(committed=100)], ledger))
    assert left_out([second], ledger, older, True, FIVE) == {}
    # A backfill may have archived some of it, so that more can be known.
    third = only(backfill(observed(), ledger, 20, 60))
    assert left_out([third], ledger, older, False, FIVE) == {NAME: (Range(0, 20),)}
