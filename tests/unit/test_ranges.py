"""Arithmetic of offset ranges, against sets of offsets."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.values.ranges import Range, TopicPartition, merge, overlaps, share, subtract
from tests.support.values import offsets, ranges

pytestmark = pytest.mark.unit

many = st.lists(ranges, max_size=8)


def members(*ranges: Range) -> set[int]:
    return {offset for item in ranges for offset in range(item.start, item.end)}


def assert_fewest(ranges: tuple[Range, ...]) -> None:
    assert all(item.size > 0 for item in ranges)
    assert all(before.end < after.start for before, after in pairwise(ranges)), "touching, overlapping or unsorted"


@given(ranges)
def test_a_range_contains_its_start_and_not_its_end(item: Range) -> None:
    assert item.size == len(members(item))
    assert (item.start in item) == (item.size > 0)
    assert item.end not in item
    assert (item.end - 1 in item) == (item.size > 0)
    assert "5" not in item


@given(ranges, st.integers(1, 400))
def test_slices_tile_the_range_and_all_but_the_last_are_whole(item: Range, length: int) -> None:
    slices = list(item.split(length))
    assert sum(s.size for s in slices) == item.size
    assert all(s.size == length for s in slices[:-1])
    assert all(0 < s.size <= length for s in slices)
    if slices:
        assert (slices[0].start, slices[-1].end) == item
    assert all(before.end == after.start for before, after in pairwise(slices))


@given(many)
def test_merging_keeps_the_offsets_in_the_fewest_ranges(ranges: list[Range]) -> None:
    merged = merge(ranges)
    assert members(*merged) == members(*ranges)
    assert_fewest(merged)
    assert merge(merged) == merged


@given(ranges, many)
def test_subtracting_leaves_exactly_what_is_not_covered(whole: Range, covered: list[Range]) -> None:
    remaining = subtract(whole, covered)
    assert members(*remaining) == members(whole) - members(*covered)
    assert_fewest(remaining)


@given(many)
def test_overlaps_are_the_offsets_that_two_ranges_hold(ranges: list[Range]) -> None:
    counts = Counter(offset for item in ranges for offset in members(item))
    shared = overlaps(ranges)
    assert members(*shared) == {offset for offset, times in counts.items() if times > 1}
    assert_fewest(shared)


wishes = st.dictionaries(st.text(max_size=3), offsets, max_size=8)


@given(wishes, st.integers(0, 1_000))
def test_sharing_gives_out_all_it_may_and_nobody_more_than_it_wants(demands: dict[str, int], limit: int) -> None:
    granted = share(demands, limit)
    assert list(granted) == list(demands)
    assert all(0 <= granted[name] <= demands[name] for name in demands)
    assert sum(granted.values()) == min(limit, sum(demands.values()))


@given(wishes, st.integers(0, 1_000))
def test_nobody_goes_short_while_another_gets_more_than_one_above_it(demands: dict[str, int], limit: int) -> None:
    granted = share(demands, limit)
    short = [granted[name] for name in demands if granted[name] < demands[name]]
    assert all(max(granted.values()) - got <= 1 for got in short)


def test_one_large_partition_does_not_starve_the_small_ones() -> None:
    assert share({"large": 1_000_000, "small": 10, "middle": 500}, 1_000) == {"large": 495, "small": 10, "middle": 495}


def test_partitions_and_ranges_are_written_as_people_write_them() -> None:
    assert f"{TopicPartition('orders', 3)} {Range(5, 9)}" == "orders[3] [5, 9)"
