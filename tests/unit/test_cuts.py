"""Where blocks end, against a count by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.records.formats.shared.cuts import cuts

pytestmark = pytest.mark.unit


@given(st.lists(st.integers(0, 20)), st.integers(0, 30), st.integers(1, 30))
def test_a_block_ends_with_the_record_that_fills_it(sizes: list[int], buffered: int, limit: int) -> None:
    buffered = min(buffered, limit - 1)
    expected = []
    size = buffered
    for number, record in enumerate(sizes):
        size += record
        if size >= limit:
            expected.append(number + 1)
            size = 0
    assert cuts(np.array(sizes, np.int64), buffered, limit) == expected
