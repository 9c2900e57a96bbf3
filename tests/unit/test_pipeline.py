"""The runner of the stages: whatever a stage does, each offset is archived, filtered or rejected, once."""

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.pipeline.base import Marks, Stage, rows_where
from kafka_archiver.records.pipeline.runner import Counts, Runner
from kafka_archiver.records.pipeline.stages import stages_of
from kafka_archiver.values.columns import column
from tests.support.chunks import Row, batch

pytestmark = pytest.mark.unit

# What a stage does with a record.
FATES = ("keep", "drop", "double", "filter", "filter and drop", "reject", "reject and drop")
OFFSETS = st.lists(st.integers(0, 30), unique=True, min_size=1, max_size=15).map(sorted)
DRAWN = st.lists(st.dictionaries(st.integers(0, 30), st.sampled_from(FATES)), max_size=4)
HONEST = tuple(fate for fate in FATES if fate != "drop")


def doing(fates: dict[int, str]) -> Stage:
    """A stage that does so with the offsets that it is told, and keeps the others."""

    def stage(rows_in: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        offsets = column(rows_in, "offset")
        done = [fates.get(offset, "keep") for offset in offsets.tolist()]
        marks.filter(offsets[[fate.startswith("filter") for fate in done]])
        marks.reject({o: "bad" for o, fate in zip(offsets.tolist(), done, strict=True) if fate.startswith("reject")})
        times = [0 if "drop" in fate else 2 if fate == "double" else 1 for fate in done]
        return rows_in.take(pa.array(np.repeat(np.arange(len(offsets)), times)))

    return stage


def rows(offsets: Iterable[int]) -> pa.RecordBatch:
    return batch([Row(offset, 5) for offset in offsets])


@given(OFFSETS, DRAWN)
def test_no_stage_can_make_an_offset_vanish(offsets: list[int], drawn: list[dict[int, str]]) -> None:
    runner = Runner([doing(fates) for fates in drawn])
    left, filtered, rejected, lost = dict.fromkeys(offsets, 1), set(), set(), False
    for fates in drawn:
        for offset in list(left):
            fate = fates.get(offset, "keep")
            lost |= fate == "drop"
            if fate == "double":
                left[offset] *= 2
            elif fate != "keep":
                del left[offset]
                (filtered if fate.startswith("filter") else rejected).add(offset)
    if lost:
        with pytest.raises(IntegrityError, match=r"stage .*lost offset [0-9]+ without a mark"):
            runner.run(rows(offsets))
        return
    passed = runner.run(rows(offsets))
    assert passed.kept.column("offset").to_pylist() == [o for o, times in left.items() for _ in range(times)]
    assert dict(passed.rejected) == dict.fromkeys(rejected, "bad")
    assert runner.counts == Counts(len(left), len(filtered), len(rejected), sum(left.values()))


@given(OFFSETS, st.dictionaries(st.integers(0, 30), st.sampled_from(HONEST)), st.integers(0, 15))
def test_what_becomes_of_a_record_does_not_depend_on_the_batches(
    offsets: list[int], fates: dict[int, str], cut: int
) -> None:
    whole, parted = Runner([doing(fates)]), Runner([doing(fates)])
    expected = whole.run(rows(offsets))
    outcomes = [parted.run(rows(some)) for some in (offsets[:cut], offsets[cut:]) if some]
    assert pa.concat_batches([p.kept for p in outcomes]).equals(pa.concat_batches([expected.kept]))
    assert {o: reason for p in outcomes for o, reason in p.rejected.items()} == expected.rejected
    counted = [r.counts for r in (whole, parted)]
    assert counted[0] == counted[1]


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (lambda rows_in, _: rows_in.slice(1), "lost offset 3 without a mark"),
        (lambda rows_in, _: rows([3, 4, 7, 9]), "returned unknown offset 9"),
        (lambda rows_in, _: rows_in.take(pa.array([1, 0, 2])), "not in offset order"),
        (lambda rows_in, _: rows_in.drop_columns(["offset"]), "without a column `offset`"),
        (lambda rows_in, marks: marks.filter(np.array([5])) or rows_in, "returned unknown offset 5"),
        (lambda rows_in, marks: marks.reject({8: "no"}) or rows_in, "returned unknown offset 8"),
        (
            lambda rows_in, marks: marks.filter(np.array([4])) or marks.reject({4: "no"}) or rows_in,
            "offset 4 is both filtered and rejected",
        ),
    ],
)
def test_a_stage_that_breaks_its_promise_is_named(
    stage: Callable[[pa.RecordBatch, Marks], pa.RecordBatch], message: str
) -> None:
    with pytest.raises(IntegrityError, match=r"the stage .*lambda.*please report it") as caught:
        Runner([stage]).run(rows([3, 4, 7]))
    assert message in str(caught.value)


def test_a_stage_sees_nothing_that_one_before_it_has_left_out() -> None:
    offsets_left: list[int] = []

    def looking(rows_in: pa.RecordBatch, _: Marks) -> pa.RecordBatch:
        offsets_left.extend(rows_in.column("offset").to_pylist())
        return rows_in

    stages = [doing({1: "filter", 2: "reject"}), looking, doing(dict.fromkeys(range(9), "filter")), looking]
    Runner(stages).run(rows(range(5)))
    # The last one is not even asked: nothing was left.
    assert offsets_left == [0, 3, 4]


def test_good_batches_pass_the_stages_of_a_plan_as_they_are() -> None:
    for content in ("value", "record"):
        settings = Settings(content=content, value_decode="json", null_value="skip", max_value_bytes=10)
        rows_in = rows(range(5))
        rows_in = rows_in.select(["offset", "timestamp", "value"]) if content == "value" else rows_in
        assert Runner(stages_of(settings)).run(rows_in).kept is rows_in


@given(st.lists(st.booleans(), max_size=30))
def test_rows_where_a_mask_is_true(mask: list[bool]) -> None:
    selected = rows_where(rows(range(len(mask))), np.array(mask, np.bool_))
    assert selected.column("offset").to_pylist() == [n for n, chosen in enumerate(mask) if chosen]
