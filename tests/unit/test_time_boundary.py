"""The boundary between two hours in a log, where single records have wrong clocks."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.planning import time_boundary
from kafka_archiver.planning.time_boundary import TimeBoundary
from kafka_archiver.values.ranges import Range, subtract

YEAR_2090 = 3_786_912_000_000
MOST_ROUNDS = 64


def search_of(time: int, log: dict[int, int], end: int | None = None, tolerated: int = 0) -> tuple[Range, int]:
    """The boundary of a time in a log (times by offset), and the rounds of questions."""
    stop = max(log, default=-1) + 1 if end is None else end
    first = next((o for o in sorted(log) if log[o] >= time), stop)
    search, rounds = TimeBoundary(time, first, stop, tolerated), 0
    while not search.is_done:
        rounds += 1
        assert rounds <= MOST_ROUNDS
        offsets = sorted(log)
        read = [o for place in search.places() for o in [o for o in offsets if o >= place][:3]]
        search.see({o: log[o] for o in read})
    return search.range, rounds


def test_in_an_ordered_log_the_index_is_right_and_one_look_shows_it() -> None:
    log = {offset: offset * 10 for offset in range(10_000)}
    assert search_of(50_000, log) == (Range(5000, 5000), 1)


@given(
    rate=st.sampled_from([1, 7, 100]),
    wrong=st.sets(st.integers(0, 4999), max_size=40),
    past=st.sets(st.integers(0, 4999), max_size=20),
    time=st.integers(1, 4999),
    holes=st.sampled_from([1, 1, 3, 50]),
    base=st.sampled_from([0, 123_456_789]),
)
def test_single_wrong_clocks_do_not_move_it(
    rate: int, wrong: set[int], past: set[int], time: int, holes: int, base: int
) -> None:
    log = {base + o * holes: o * rate for o in range(5000)}
    log |= {base + o * holes: 0 for o in past if (o + 1) % 9 == 0}
    log |= {base + o * holes: YEAR_2090 for o in wrong if o % 9 == 0}
    among, rounds = search_of(time * rate, log)
    right = base + time * holes
    slack = 8 * holes
    assert among.start - slack <= right <= among.end + slack
    assert among.size <= 4 * time_boundary.SMALL
    assert rounds <= MOST_ROUNDS


@given(
    times=st.lists(st.integers(0, 100), min_size=1, max_size=300),
    cuts=st.lists(st.integers(1, 100), min_size=2, max_size=8, unique=True).map(sorted),
    small=st.sampled_from([1, 4, 32]),
)
def test_the_hours_of_any_log_together_leave_nothing_out_between_their_ends(
    times: list[int], cuts: list[int], small: int
) -> None:
    log = dict(enumerate(times))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time_boundary, "SMALL", small)
        ends = [search_of(time, log)[0] for time in cuts]
    taken = [Range(begin.start, end.end) for begin, end in pairwise(ends)]
    assert not subtract(Range(ends[0].end, ends[-1].start), taken)


@given(times=st.lists(st.integers(0, 100), max_size=200), time=st.integers(0, 101), end=st.integers(0, 200))
def test_it_ends_in_any_log_and_lies_between_the_indexs_answer_and_the_end(
    times: list[int], time: int, end: int
) -> None:
    log = dict(enumerate(times))
    first = next((o for o in log if log[o] >= time), len(log))
    among, _ = search_of(time, log, max(first, min(end, len(log))))
    assert first <= among.start <= among.end <= max(first, min(end, len(log)))


def test_many_records_with_the_same_wrong_clock_in_a_row_do_not_move_it_far() -> None:
    log = {offset: offset for offset in range(100_000)}
    for start in range(1000, 100_000, 2500):
        log |= dict.fromkeys(range(start, start + 50), YEAR_2090)
    for time in (5000, 31_111, 77_777):
        among, _ = search_of(time, log)
        assert among.start - 3000 <= time <= among.end + 3000


@pytest.mark.parametrize("time", range(2, 2000, 7))
def test_it_is_found_exactly_close_to_the_wrong_clock_and_far_from_it(time: int) -> None:
    base = 123_456_789
    log = {base + offset: offset for offset in range(5000)} | {base: YEAR_2090}
    among, _ = search_of(time, log)
    assert among.start <= base + time <= among.end


def test_a_log_of_nothing_but_wrong_clocks_has_its_boundary_at_its_beginning() -> None:
    assert search_of(5, dict.fromkeys(range(1000), YEAR_2090))[0] == Range(0, 0)


def test_records_that_the_archive_tolerates_are_no_reason_to_search() -> None:
    log = {offset: offset for offset in range(1000)} | {500: 520}
    assert search_of(510, log)[0].size > 0
    assert search_of(510, log, tolerated=50)[0] == Range(500, 500)


def test_control_records_and_records_without_a_time_do_not_count() -> None:
    log = {offset: offset for offset in range(1000) if offset % 5} | {100: YEAR_2090}
    log |= dict.fromkeys(range(2, 1000, 5), -1)
    among, _ = search_of(600, log)
    assert among.start <= 600 <= among.end
    assert among.size <= 4 * time_boundary.SMALL
