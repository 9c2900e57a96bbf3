"""Sets of offsets: what goes in comes out, in one form each, however many there are."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kafka_archiver.values.gaps import Bitmap, Gaps, beside, count, merged, outside, pack, unpack
from kafka_archiver.values.ranges import Range, merge

Rows = npt.NDArray[np.int64]
START = 1000
SETS = st.sets(st.integers(START, START + 400))


def rows(offsets: set[int]) -> Rows:
    return np.array([list(r) for r in merge(Range(o, o + 1) for o in offsets)], np.int64).reshape(-1, 2)


def offsets(gaps: Rows) -> set[int]:
    return {o for start, end in gaps.tolist() for o in range(start, end)}


@given(SETS)
def test_a_packed_set_is_the_same_set(members: set[int]) -> None:
    packed = pack(START, START + 401, rows(members))
    assert offsets(unpack(START, START + 401, packed)) == members
    assert count(unpack(START, START + 401, packed)) == len(members)
    again: Gaps = TypeAdapter(Gaps).validate_json(TypeAdapter(Gaps).dump_json(packed))
    assert again == packed


def test_every_second_offset_of_a_million_is_said_in_170_kb() -> None:
    end = 1_000_000
    every_second = np.column_stack((np.arange(0, end, 2), np.arange(1, end + 1, 2)))
    packed = pack(0, end, every_second)
    assert isinstance(packed, Bitmap)
    assert len(packed.bitmap) < 170_000
    assert (unpack(0, end, packed) == every_second).all()


@given(SETS, st.integers(START - 5, START + 405), st.integers(0, 400))
def test_what_lies_outside_of_a_log_is_split_from_what_lies_in_it(members: set[int], start: int, length: int) -> None:
    inside, gone = outside(rows(members), Range(start, start + length))
    assert offsets(inside) == {o for o in members if start <= o < start + length}
    assert offsets(gone) == members - offsets(inside)


@given(SETS, SETS)
def test_sets_without_a_common_offset_merge(left: set[int], right: set[int]) -> None:
    union = merged(rows(left), rows(right - left))
    assert offsets(union) == left | right
    assert union.tolist() == rows(left | right).tolist()


@given(SETS, SETS)
def test_what_a_set_has_beside_another_is_counted(left: set[int], right: set[int]) -> None:
    assert beside(rows(left), rows(right)) == len(left - right)


@pytest.mark.parametrize("text", ["no base64!", "AA=A"])
def test_a_bitmap_that_is_none_is_refused_where_it_is_read(text: str) -> None:
    with pytest.raises(ValidationError, match="not base64"):
        Bitmap(bitmap=text)


@pytest.mark.parametrize("text", ["", "/w==", "AAE="])
def test_a_bitmap_of_another_length_or_with_bits_behind_its_end_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a bitmap of 9 offsets"):
        unpack(0, 9, Bitmap(bitmap=text))
