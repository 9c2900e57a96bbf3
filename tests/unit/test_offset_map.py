"""The offset map: each restored record is at its place, and each offset leads to the next restored record."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kafka_archiver.model.offset_map import LogMap, OffsetMap, Scattered
from kafka_archiver.model.offset_map_recorder import RunRecorder
from kafka_archiver.model.restore import SourcePartition
from kafka_archiver.values.ranges import TopicPartition

# Steps from one restored record to the next: in the source, and in the target.
STEPS = st.lists(
    st.tuples(st.sampled_from([1, 1, 1, 2, 2, 7, 1 << 20]), st.sampled_from([1, 1, 1, 1, 1, 1, 1, 2])), max_size=8
)


def places_of(steps: list[tuple[int, int]], source: int = 5, target: int = 100) -> list[tuple[int, int]]:
    """The source and target offset of each record."""
    places = []
    for source_step, target_step in steps:
        source, target = source + source_step, target + target_step
        places.append((source, target))
    return places


def map_of(runs: RunRecorder, end: int, **more: int) -> LogMap:
    return LogMap(topic="a", partition=3, target_topic="b", target_partition=3, end=end, runs=runs.runs, **more)


def recorded(places: list[tuple[int, int]]) -> RunRecorder:
    recorder = RunRecorder()
    for source, target in places:
        recorder.add(source, target)
    return recorder


def partition(number: int) -> SourcePartition:
    return SourcePartition(topic="a", partition=number)


def document(*logs: LogMap) -> OffsetMap:
    return OffsetMap(archive="x", restore="r", plan_digest="d", cluster_id="c", logs=logs)


@given(STEPS, st.integers(1, 60))
def test_every_offset_leads_to_the_next_restored_record(steps: list[tuple[int, int]], often: int) -> None:
    # Often enough that runs are packed.
    places = places_of((steps + [(2, 1)] * 3) * often)
    end = places[-1][1] + 3
    log = map_of(recorded(places), end)
    assert log.count == len(places)
    assert (log.first, log.behind) == (places[0][0], places[-1][0] + 1)
    for place, (source, target) in enumerate(places[:20]):
        assert log.translate(source) == target
        following = places[place + 1][1] if place + 1 < len(places) else end
        assert log.translate(source + 1) == following
    assert log.translate(0) == places[0][1]
    assert log.translate(places[-1][0]) == places[-1][1]
    assert log.translate(places[-1][0] + 1) == log.translate(1 << 62) == end


@given(STEPS, st.integers(1, 60), st.data())
def test_batches_of_any_size_make_the_same_map(steps: list[tuple[int, int]], often: int, data: st.DataObject) -> None:
    places = places_of((steps + [(2, 1)] * 3) * often)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(places)), max_size=5)))
    batches = RunRecorder()
    for start, end in zip([0, *cuts], [*cuts, len(places)], strict=True):
        rows = np.array(places[start:end], np.int64).reshape(-1, 2)
        batches.extend(rows[:, 0], rows[:, 1])
    runs = recorded(places).runs
    assert batches.runs == runs
    assert RunRecorder.after(runs).runs == runs


@given(STEPS, st.integers(1, 60))
def test_a_map_is_read_back_as_it_was_written(steps: list[tuple[int, int]], often: int) -> None:
    places = places_of((steps + [(2, 1)] * 3) * often)
    whole = document(map_of(recorded(places), places[-1][1] + 1, generation=2))
    assert OffsetMap.from_json(whole.to_json(), "map") == whole
    runs = [run for log in whole.logs for run in log.plain_runs]
    records = [(run.source + n, run.target + n) for run in runs for n in range(run.length)]
    assert records == places


def test_every_second_offset_of_three_million_needs_less_than_a_megabyte() -> None:
    recorder = RunRecorder()
    sources = np.arange(0, 3_000_000, 2)
    recorder.extend(sources, np.arange(len(sources)) + 7)
    log = map_of(recorder, 1 << 30)
    assert any(isinstance(run, Scattered) for run in log.runs)
    assert len(document(log).to_json()) < 800_000
    assert [log.translate(offset) for offset in (0, 1, 2, 2_000_001)] == [7, 8, 8, 7 + 1_000_001]
    assert log.count == len(sources)


def test_a_record_that_steps_back_is_refused() -> None:
    recorder = recorded([(5, 10)])
    for source, target in ((5, 11), (6, 10), (4, 12)):
        with pytest.raises(ValueError, match="the one before it, at 5, stands at 10"):
            recorder.add(source, target)
    with pytest.raises(ValidationError, match="overlaps the one before it"):
        map_of(RunRecorder(), 9).model_validate(
            {**map_of(RunRecorder(), 9).model_dump(), "runs": [(0, 5, 0), (4, 5, 5)]}
        )


def test_a_reader_of_several_logs_in_one_partition_reads_again_rather_than_skips() -> None:
    into = {"target_topic": "b", "target_partition": 0, "end": 30}
    first = LogMap(topic="a", partition=0, runs=((0, 10, 0), (10, 5, 20)), **into)
    second = LogMap(topic="a", partition=1, runs=((0, 10, 10),), **into)
    whole = document(first, second)
    target = TopicPartition("b", 0)
    assert whole.translate({partition(0): 12, partition(1): 3}) == {target: 13}
    assert whole.translate({partition(0): 12, partition(1): 99}) == {target: 22}
    # A log without an offset was not read; a partition without any offset is left alone.
    assert whole.translate({partition(0): 12}) == {target: 10}
    assert whole.translate({partition(7): 12}) == {}
