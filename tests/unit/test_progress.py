"""The progress that runs of the line give: what they cover, and up to when nothing is missing."""

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.model.marks import MARKS
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.unsure_hours import unsure_by_plan
from tests.support.plans import at, manifest, partition, plan

NEW = Progress(archive="orders")


def after(*plans: Plan, progress: Progress = NEW) -> Progress:
    """Each ended with a manifest without records."""
    for step in plans:
        progress = progress.after(step, "committed", manifest(step))
    return progress


def held_back(number: int, start: int, end: int, high: int, **fields: Any) -> Plan:
    """A run that an open transaction kept from the end of the log."""
    return plan(number, partition(start, end, log_end=end, high=high), **fields)


def test_while_a_transaction_hangs_a_few_observations_wait_the_oldest_and_the_newest_among_them() -> None:
    progress = NEW
    for number in range(1, 200):
        progress = after(held_back(number, 5 if number > 1 else 0, 5, 10 * number), progress=progress)
    assert len(progress.marks) == MARKS
    assert (progress.marks[0].number, progress.marks[-1].number) == (1, 199)
    progress = after(plan(200, partition(5, 2000)), progress=progress)
    assert (progress.closed_until, progress.marks) == (at(200), ())


@pytest.mark.parametrize(("rules", "until", "whole_from"), [(3, at(999), at(999)), (4, at(5), None)])
def test_plans_before_the_fourth_rules_keep_hours_incomplete_up_to_the_time_of_a_wrong_clock(
    rules: int, until: datetime, whole_from: datetime | None
) -> None:
    left_out = {"older": ((0, 5),), "older_than": at(999)}
    progress = after(plan(1, partition(5, 10, **left_out), partition(5, 10, partition=1, **left_out)))
    late = plan(2, partition(4, 5, lost=((0, 4),), high=None), origin="backfill", start=3, hour_rules=rules)
    progress = after(late, progress=progress)
    assert progress.unsure
    assert progress.unsure.until == until
    # The topic is made again with one partition.
    made_again = partition(0, 4, generation=1, topic_id="new", anew=True)
    assert after(plan(3, made_again, hour_rules=rules), progress=progress).whole_from == whole_from


@pytest.mark.parametrize(("rules", "until"), [(3, at(3)), (4, at(2))])
def test_plans_before_the_fourth_rules_take_an_added_partition_for_a_topic_made_again(
    rules: int, until: datetime
) -> None:
    new = {"generation": 1, "topic_id": "new"}
    progress = after(
        plan(1, partition(0, 4), partition(0, 4, partition=1), hour_rules=rules),
        plan(2, partition(0, 4, anew=True, **new), start=0, hour_rules=rules),
        plan(3, partition(4, 6, **new), partition(0, 2, partition=1, anew=True, **new), start=1.5, hour_rules=rules),
    )
    assert progress.unsure
    assert progress.unsure.until == until


@given(lost=st.integers(0, 3), appended=st.none() | st.integers(-3, 6), cut=st.booleans(), anew=st.booleans())
def test_a_plan_says_which_hours_its_losses_leave_unsure_before_it_is_archived(
    lost: int, appended: int | None, cut: bool, anew: bool
) -> None:
    fields = {"cut": cut, "anew": anew, "appended_by": None if appended is None else at(appended + 0.5)}
    first, ranges = plan(1, partition(0, 2)), ((2 + lost, 9),)
    lost_ranges = ((2, 2 + lost),) if lost else ()
    proposed = plan(2, partition(2, 9, ranges=ranges, lost=lost_ranges, log_start=lost, **fields), hour_rules=4)
    settled = after(first).after(proposed, "committed", manifest(proposed), ended=at(9))
    assert unsure_by_plan(proposed) == (settled.unsure and settled.unsure.until)


def as_older_releases_wrote_it(new_plan: Plan) -> Plan:
    text = json.loads(new_plan.to_json())
    del text["loss_rules"]
    return Plan.from_json(json.dumps(text).encode(), "plan.json")


def test_plans_of_older_releases_keep_their_rules() -> None:
    """Else the audit would find the proofs that they made wrong."""
    first = as_older_releases_wrote_it(plan(1, partition(0, 20), start=3))
    progress = NEW.after(first, "committed", manifest(first, [1, 2, 40], lost=4))
    assert progress.unsure
    assert progress.unsure.until == at(3)
    begun = as_older_releases_wrote_it(plan(1, partition(5, 10, log_start=5), start=3))
    progress = NEW.after(begun, "committed", manifest(begun, [1, 2]))
    assert progress.unsure
    assert progress.unsure.until == at(3)


def test_a_beginning_that_no_plan_has_judged_is_judged_when_its_first_offset_is_taken() -> None:
    first = as_older_releases_wrote_it(plan(1, partition(8, 10, log_start=5)))
    progress = after(first)
    assert progress.unsure is None
    late = plan(2, partition(5, 8, log_start=5, high=None), origin="backfill", start=-3, planned_at=at(4.1))
    progress = after(late, progress=progress)
    assert progress.unsure
    assert progress.unsure.until == at(5)


@pytest.mark.parametrize("what", ["lost", "cut", "begun", "made again"])
def test_while_clocks_differ_nothing_is_said_of_a_moment_before_what_a_planner_found_gone(what: str) -> None:
    cut_short = {
        "lost": partition(2, 10, log_start=2, lost=((0, 2),)),
        "cut": partition(0, 10, cut=True),
        "begun": partition(5, 10, log_start=5),
        "made again": partition(0, 10, anew=True),
    }[what]
    slow = plan(1, cut_short, at_latest=at(1.2))
    progress = after(slow)
    assert (progress.as_of, progress.gone_by) == (None, at(1.2))
    # What the same slow clock says a moment later is not enough, by its own time it may have been there yet.
    progress = after(plan(2, partition(10, 11, log_start=5), planned_at=at(1.1), at_latest=at(1.3)), progress=progress)
    assert progress.as_of is None
    assert after(plan(3, partition(11, 11, log_start=5)), progress=progress).as_of == plan(3).planned_at
    # With clocks that agree what was gone when a planner looked was gone at its moment.
    assert after(plan(1, cut_short)).as_of == slow.planned_at


# Runs as they come: of how much, up to where an open transaction lets them.
STEPS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.booleans()), max_size=30)


@given(STEPS)
def test_hours_are_closed_exactly_as_of_the_last_moment_whose_records_are_all_archived(
    steps: list[tuple[int, int, bool]],
) -> None:
    progress, position, high, moments = NEW, 0, 0, []
    for number, (grown, waiting, capped) in enumerate(steps, start=1):
        high += grown
        stable = max(position, high - waiting)
        end = position + (stable - position) // 2 if capped else stable
        first = plan(number, partition(position, end, log_end=stable, high=high))
        progress, position = after(first, progress=progress), end
        moments.append((first.planned_at, high))
        expected = max((moment for moment, needed in moments if needed <= position), default=None)
        if len(progress.marks) < MARKS:
            assert progress.as_of == expected
        # Fewer observations may close hours later, never earlier.
        assert progress.as_of is None or (expected is not None and progress.as_of <= expected)
    assert not progress.partitions or progress.partitions[0].holes(position) == ()
