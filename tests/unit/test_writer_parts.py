"""Parts grow, so that no object can need more of them than S3 takes."""

from contextlib import closing
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.writer.disk import LateDirectory
from kafka_archiver.records.writer.part import PartBuffer, part_size
from kafka_archiver.store.base import MAX_PART, MAX_PARTS

pytestmark = pytest.mark.unit

# What the YAML allows.
PART_BYTES = st.integers(5 << 20, 1 << 30)


def sizes(part_bytes: int) -> list[int]:
    return [part_size(number, part_bytes) for number in range(1, MAX_PARTS + 1)]


@given(PART_BYTES)
def test_ten_thousand_parts_hold_the_largest_object_of_s3_whatever_the_setting(part_bytes: int) -> None:
    part_sizes = sizes(part_bytes)
    assert part_sizes[0] == part_bytes
    assert all(first <= second for first, second in pairwise(part_sizes))
    assert part_sizes[-1] <= MAX_PART
    assert sum(part_sizes) >= 5 << 40


def test_ordinary_objects_have_equal_parts() -> None:
    default = Settings().part_bytes
    assert set(sizes(default)[:800]) == {default}
    assert part_size(801, default) == part_size(1600, default) == 2 * default
    assert sum(sizes(default)) == 16_787_200 << 20


def test_one_part_more_is_refused_with_what_to_do() -> None:
    with pytest.raises(PermanentError, match=r"more than 10,000 parts .* a smaller store\.chunk_records"):
        part_size(MAX_PARTS + 1, Settings().part_bytes)


@given(st.lists(st.binary(max_size=20), max_size=20), st.sets(st.integers(0, 19)), st.integers(1, 50))
def test_a_part_is_its_bytes_and_no_more_of_them_than_allowed_are_in_memory(
    pieces: list[bytes], spilled: set[int], memory: int
) -> None:
    with closing(LateDirectory(None)) as directory:
        part = PartBuffer(directory, memory)
        for number, piece in enumerate(pieces):
            part.add(memoryview(piece))
            assert part.memory <= memory
            if number in spilled:
                part.spill()
        whole = b"".join(pieces)
        assert part.size == len(whole)
        taken = part.take()
        assert isinstance(taken, bytes) == (len(whole) <= memory)
        assert (taken if isinstance(taken, bytes) else taken.read()) == whole
        part.close()
        assert part.memory == 0
        assert isinstance(taken, bytes) or taken.closed
