"""An incomplete hour counts as accepted exactly if everything that makes it incomplete is a loss that was accepted."""

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.model.loss_causes import MOST_CAUSES, LossCause, explained_by, fewest_causes
from kafka_archiver.model.progress import Progress
from kafka_archiver.values.intervals import to_hour
from tests.support.plans import at, manifest, partition, plan

pytestmark = pytest.mark.unit

LAST = 40
cause = st.builds(
    lambda hours, run: LossCause(until=at(0) + timedelta(hours=hours), lost_by=run),
    st.integers(1, LAST),
    st.none() | st.integers(1, 30),
)


def is_explained(causes: list[LossCause], hour: int, accepted: int) -> bool:
    """The rule, by every loss that ever was: at least one concerns the hour, and all that do are accepted."""
    concerning = [each for each in causes if hour < to_hour(each.until)]
    return bool(concerning) and all(each.lost_by is not None and each.lost_by <= accepted for each in concerning)


@given(st.lists(cause, max_size=60), st.integers(0, 30))
def test_the_few_causes_that_are_kept_decide_as_all_of_them_would(causes: list[LossCause], accepted: int) -> None:
    kept: tuple[LossCause, ...] = ()
    for each in causes:
        kept = fewest_causes([*kept, each])
    assert len(kept) <= MOST_CAUSES
    for hour in range(to_hour(at(0)), to_hour(at(LAST)) + 1):
        by_kept = 0 < explained_by(kept, hour) <= accepted
        by_all = is_explained(causes, hour, accepted)
        # A progress never has more; where it had, an acceptance too many is asked for, never one too few.
        assert by_kept <= by_all
        assert by_kept == by_all or len(kept) == MOST_CAUSES


@given(st.lists(st.sampled_from(["lost", "cut", "whole"]), min_size=1, max_size=6))
def test_a_progress_ties_hours_to_the_losses_in_accounts_and_to_nothing_else(kinds: list[str]) -> None:
    progress, known = Progress(archive="orders"), []
    for number, kind in enumerate(kinds, start=1):
        start = 10 * (number - 1)
        lost = start + 4 if kind == "lost" else start
        ranges = {"ranges": ((lost, start + 10),), "lost": ((start, lost),) if lost > start else ()}
        step = plan(number, partition(start, start + 10, cut=kind == "cut", **ranges))
        progress = progress.after(step, "committed", manifest(step))
        if kind != "whole":
            known.append(LossCause(until=at(number + 1), lost_by=number if lost > start else None))
    assert progress.lost_by == max([each.lost_by or 0 for each in known], default=0)
    for hour in range(to_hour(at(0)), to_hour(at(9))):
        for accepted in range(7):
            assert (0 < explained_by(progress.causes, hour) <= accepted) == is_explained(known, hour, accepted)


def test_by_the_progress_of_an_earlier_release_nobody_can_accept_an_incomplete_hour() -> None:
    first, second = plan(1, partition(4, 10, lost=((0, 4),))), plan(2, partition(10, 20))
    new = Progress(archive="orders").after(first, "committed", manifest(first))
    assert explained_by(new.causes, to_hour(at(0))) == 1
    text = json.loads(new.to_json())
    del text["unsure_by"]
    old = Progress.from_json(json.dumps(text).encode(), "progress.json").after(second, "committed", manifest(second))
    assert (old.unsure, explained_by(old.causes, to_hour(at(0)))) == (new.unsure, 0)
    assert "unsure_by" not in json.loads(old.to_json())


def test_lost_objects_explain_their_hour_unless_another_loss_concerns_it() -> None:
    hour = to_hour(at(0))
    assert explained_by((), hour, 7) == 7
    assert explained_by([LossCause(until=at(3), lost_by=9)], hour, 7) == 9
    assert explained_by([LossCause(until=at(3))], hour, 7) == 0
