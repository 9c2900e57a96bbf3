"""The progress that runs of the line give: what they cover, and up to when nothing is missing."""

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.model.complete_hours import reason_for_holes
from kafka_archiver.model.marks import MARKS
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.unsure_hours import unsure_by_plan
from kafka_archiver.values.ranges import Range
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


def test_a_run_that_reaches_the_high_watermark_closes_every_hour_that_was_over_then() -> None:
    assert after(plan(1, partition(0, 10))).closed_until == at(1)


def test_what_was_seen_counts_from_when_all_of_it_is_archived_and_not_before() -> None:
    first = held_back(1, 0, 6, 10)
    progress = after(first)
    assert (progress.as_of, len(progress.marks)) == (None, 1)
    # The second run, too, is held back, but has what the first had seen.
    progress = after(held_back(2, 6, 11, 15), progress=progress)
    assert progress.as_of == first.planned_at
    assert progress.closed_until == at(1)
    progress = after(plan(3, partition(11, 20)), progress=progress)
    assert (progress.closed_until, progress.marks) == (at(3), ())


def test_while_a_transaction_hangs_a_few_observations_wait_the_oldest_and_the_newest_among_them() -> None:
    progress = NEW
    for number in range(1, 200):
        progress = after(held_back(number, 5 if number > 1 else 0, 5, 10 * number), progress=progress)
    assert len(progress.marks) == MARKS
    assert (progress.marks[0].number, progress.marks[-1].number) == (1, 199)
    progress = after(plan(200, partition(5, 2000)), progress=progress)
    assert (progress.closed_until, progress.marks) == (at(200), ())


def test_a_backfill_of_the_rest_completes_what_a_scheduled_run_has_seen() -> None:
    capped = plan(1, partition(0, 4, high=10))
    backfill = plan(2, partition(4, 10, high=None), origin="backfill")
    progress = after(capped, backfill)
    assert progress.as_of == capped.planned_at
    assert progress.partitions[0].next == 4


def test_a_rebuild_whose_ranges_are_known_changes_no_coverage() -> None:
    first = plan(1, partition(0, 10))
    again = plan(2, partition(0, 10, high=None), start=0, origin="rebuild", revision=1, supersedes=first.run)
    progress = after(first)
    assert progress.after(again, "committed", manifest(again), manifest(first)) == progress.model_copy(
        update={"settled": 2}
    )
    assert progress.after(again, "given_up") == progress.model_copy(update={"settled": 2})


@pytest.mark.parametrize(
    ("starts", "anew", "earlier"),
    [
        # The group was moved ahead: all of it is the log's.
        ((9,), False, ((0, 8),)),
        # It was wound back on purpose: what was to be archived again is, and nothing of it counts as earlier.
        ((5,), False, ((0, 5),)),
        ((9, 4), False, ((0, 4),)),
        ((4, 9), False, ((0, 4),)),
        # Another log's offsets mean other records.
        ((5,), True, ()),
    ],
)
def test_a_takeover_behind_new_generations_is_taken_in_where_it_is_the_same_log(
    starts: tuple[int, ...], anew: bool, earlier: tuple[tuple[int, int], ...]
) -> None:
    first, second = plan(1, partition(0, 2)), plan(2, partition(2, 8))
    progress = after(first).after(second, "replaced")
    for number, start in enumerate(starts, start=1):
        # A run that takes little of it: the rest is still to come.
        begins = partition(start, start, high=9, log_end=9, generation=number, anew=anew)
        progress = progress.after(plan(2 + number, begins), "committed", manifest(plan(2 + number, begins)))
    rebuild = plan(9, partition(2, 8, high=None), origin="rebuild", takes_over=True)
    for _ in range(2):
        progress = progress.after(rebuild, "committed", manifest(rebuild))
        assert progress.partitions[0].earlier == earlier


def test_a_run_that_was_replaced_moves_the_position_and_covers_nothing() -> None:
    first, two = plan(1, partition(0, 10)), plan(2, partition(0, 10, high=None), origin="rebuild", takes_over=True)
    progress = NEW.after(first, "replaced")
    assert (progress.partitions[0].next, progress.partitions[0].covered, progress.as_of) == (10, (), None)
    progress = progress.after(two, "committed", manifest(two))
    assert (progress.partitions[0].covered, progress.as_of) == (((0, 10),), first.planned_at)


def test_a_run_of_a_log_that_was_given_up_does_not_bring_it_back() -> None:
    old = plan(1, partition(0, 10))
    new = plan(2, partition(0, 4, generation=1, topic_id="new", anew=True))
    late = plan(3, partition(10, 12, high=None), origin="backfill")
    progress = after(old, new)
    assert (progress.partitions[0].generation, progress.partitions[0].next) == (1, 4)
    assert after(late, progress=progress).partitions == progress.partitions


def test_a_topic_made_again_leaves_the_hours_until_then_unsure() -> None:
    progress = after(plan(1, partition(0, 10)), plan(2, partition(0, 4, generation=1, topic_id="new", anew=True)))
    assert progress.unsure
    assert progress.unsure.until == at(3)
    assert "began anew" in progress.unsure.reason


def test_records_that_are_gone_may_be_of_any_hour_until_they_were_known_to_be_gone() -> None:
    """However old the records behind them are: twelve late ones say nothing of the lost ones."""
    found_by_planner = plan(1, partition(4, 30, lost=((0, 4),)), start=3)
    progress = NEW.after(found_by_planner, "committed", manifest(found_by_planner, [1] * 12), ended=at(9))
    assert progress.lost == 4
    assert progress.unsure
    assert progress.unsure.until == at(5)
    found_by_attempt = plan(1, partition(0, 30), start=3)
    progress = NEW.after(found_by_attempt, "committed", manifest(found_by_attempt, [1] * 12, lost=4), ended=at(9))
    assert progress.unsure
    assert progress.unsure.until == at(10)


def test_offsets_whose_age_the_time_index_knew_leave_only_older_hours_unsure() -> None:
    first = plan(1, partition(5, 10, older=((0, 5),), older_than=at(-2)))
    progress = after(first)
    late = plan(2, partition(4, 5, lost=((0, 4),), high=None), origin="backfill", start=-3)
    progress = progress.after(late, "committed", manifest(late, [-3]), ended=at(9))
    assert progress.unsure
    assert progress.unsure.until == at(-2)


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


def test_the_brokers_time_of_the_first_record_ends_the_unsure_time() -> None:
    first = plan(1, partition(2, 10, log_start=2, lost=((0, 2),), appended_by=at(0.5)))
    progress = NEW.after(first, "committed", manifest(first, [0]))
    assert progress.unsure
    assert progress.unsure.until == at(1)


def test_a_log_that_was_cut_leaves_the_hours_until_then_unsure() -> None:
    progress = after(plan(1, partition(0, 10, cut=True)))
    assert progress.unsure
    assert progress.unsure.until == at(2)


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


def test_a_run_that_lost_everything_leaves_all_hours_until_now_unsure() -> None:
    first = plan(1, partition(0, 10), start=1)
    progress = NEW.after(first, "committed", manifest(first, lost=10))
    assert progress.unsure
    assert progress.unsure.until == at(3)


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


def test_what_an_attempt_found_gone_was_there_perhaps_when_the_next_was_planned() -> None:
    first, two = plan(1, partition(0, 10)), plan(2, partition(10, 12))
    progress = NEW.after(first, "committed", manifest(first, lost=4), ended=at(2.5))
    progress = progress.after(two, "committed", manifest(two), ended=at(2.6))
    assert progress.as_of is None
    assert after(plan(3, partition(12, 12)), progress=progress).as_of == plan(3).planned_at


def test_so_does_a_log_whose_beginning_was_gone_when_the_archive_began() -> None:
    first = plan(1, partition(5, 10, log_start=5), start=3)
    progress = NEW.after(first, "committed", manifest(first, [1, 2]))
    assert progress.unsure
    assert (progress.unsure.until, progress.unsure.reason) == (
        at(5),
        "the log of orders[0] began at offset 5, not at 0, when the archive began; nobody knows the times of the "
        "records before",
    )


def test_what_the_archive_leaves_out_before_its_start_keeps_the_hours_it_may_be_of_from_being_whole() -> None:
    first = plan(1, partition(5, 10, older=((0, 5),), older_than=at(-2)))
    progress = after(first)
    assert (progress.closed_until, progress.whole_from) == (at(1), at(-2))
    assert "offsets 0–4 of orders, partition 0," in reason_for_holes(progress)
    backfill = plan(2, partition(0, 5, high=None), origin="backfill")
    assert after(backfill, progress=progress).whole_from is None


def test_nothing_is_complete_while_nobody_knows_how_old_that_is() -> None:
    assert after(plan(1, partition(5, 10))).as_of is None


def test_a_generation_in_the_same_log_remembers_what_those_before_have_but_what_it_takes_again() -> None:
    first = plan(1, partition(0, 10))
    back = plan(2, partition(6, 12, generation=1))
    progress = after(first, back)
    assert progress.partitions[0].covered == ((6, 12),)
    assert progress.partitions[0].earlier == ((0, 6),)
    assert progress.closed_until == at(2)


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


def test_positions_are_ranges_to_whoever_asks() -> None:
    known = after(plan(1, partition(5, 10))).partitions[0]
    assert known.floor == 0
    assert known.holes(10) == (Range(0, 5),)
    assert known.without([(3, 7)]) == (Range(3, 5),)


def test_what_is_lost_of_what_the_archive_left_out_leaves_all_hours_unsure_that_it_may_have_been_of() -> None:
    older = {"older": ((0, 10),), "older_than": at(3)}
    progress = after(plan(1, partition(10, 10, **older), start=3))
    backfill = plan(2, partition(0, 10), start=0, origin="backfill")
    # What follows the loss is of the first hour; what was lost may be of any hour before the fourth.
    progress = progress.after(backfill, "committed", manifest(backfill, [0, 0], lost=2), ended=at(5))
    assert progress.unsure is not None
    assert (progress.whole_from, progress.unsure.until) == (None, at(3))
