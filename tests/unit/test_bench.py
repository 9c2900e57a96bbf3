"""The bench's pure parts: what it makes, what it reads, what it calculates. Nothing here measures time."""

import json
from itertools import islice

import pytest

from bench.figures import Floors, Result
from bench.floors import consumed
from bench.job import JobRun
from bench.processes import TICK, parse_stat
from bench.records import MS_PER_HOUR, PARTITIONS, START, records, values
from bench.table import table
from bench.usage import Usage

pytestmark = pytest.mark.unit

OUTPUT = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms
2026-11-21 10:00:00:000, 2026-11-21 10:00:04:000, 1144.4092, 286.1, 1000000, 250000.0, 300, 3700, 309.3, 270270.2
"""


def _run(jvm: float, worker: float, wall: float, records: int = 2_000_000) -> JobRun:
    usage = Usage(
        code=0,
        wall=wall,
        cpu={"jvm": jvm, "driver": 2.0, "worker": worker},
        peak_process={"jvm": 800 << 20, "worker": 200 << 20},
        peak_kind={"jvm": 800 << 20, "worker": 300 << 20},
        peak_total=1100 << 20,
    )
    return JobRun(records=records, objects=4, size=1_000_000, usage=usage)


RESULT = Result(
    name="1200 B",
    run=_run(jvm=40.0, worker=12.0, wall=50.0),
    tiny=_run(jvm=20.0, worker=2.0, wall=10.0, records=1000),
    cores=2,
    floors=Floors(consume=6.0, compress_and_put=9.0),
)


def test_start_up_is_taken_off_and_figures_are_per_million() -> None:
    assert (RESULT.jvm, RESULT.python, RESULT.total) == (10.0, 5.0, 15.0)
    assert RESULT.rate == 50_000
    assert RESULT.ratio == 2.0
    assert RESULT.memory_per_core == 550 << 20


def test_a_rate_needs_a_run_that_takes_longer_than_its_start() -> None:
    hurried = Result(name="", run=_run(1, 1, wall=9.0), tiny=_run(1, 1, wall=10.0), cores=2, floors=None)
    assert hurried.rate is None
    assert hurried.ratio is None
    rows = {line[:40].strip(): line[40:].strip() for line in table([hurried]).splitlines()}
    assert rows["records/s, start-up apart"] == "–"


def test_the_table_has_a_column_a_scenario() -> None:
    lines = table([RESULT, RESULT]).splitlines()
    assert lines[0].split() == ["1200", "B", "1200", "B"]
    (ratio,) = (line for line in lines if line.startswith("job / (floor 1 + floor 2)"))
    assert ratio.split()[-2:] == ["2.00", "2.00"]
    assert len({line.index("B") for line in lines[:1]}) == 1


def test_figures_are_json() -> None:
    found = json.loads(json.dumps(RESULT.to_dict()))
    assert found["cpu_seconds_per_million"] == {"jvm": 10.0, "python": 5.0, "total": 15.0}
    assert Usage.from_dict(found["job"]) == RESULT.run.usage


def test_the_output_of_consumer_performance() -> None:
    assert consumed("a warning, 1, 2\n" + OUTPUT) == 1_000_000
    with pytest.raises(ValueError, match="not the output"):
        consumed("Exception in thread main")


def test_a_line_of_proc_stat_whose_name_has_brackets() -> None:
    found = parse_stat("42 (a) b (c)) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 9 9 20 0 1 0 100 1 1")
    assert found[:4] == (42, "a) b (c)", "S", 7)
    assert found.cpu == pytest.approx(200 * TICK)


@pytest.mark.parametrize(("size", "low", "high"), [(1200, 1150, 1250), (120, 100, 140)])
def test_values_are_json_of_their_size_each_another_and_always_the_same(size: int, low: int, high: int) -> None:
    first = list(islice(values(size), 500))
    assert first == list(islice(values(size), 500))
    assert len({json.loads(value)["id"] for value in first}) == 500
    assert low < sum(map(len, first)) / 500 < high


def test_records_of_one_hour_are_in_its_order_and_those_of_many_come_at_once() -> None:
    hour = list(records(400, 120, 1))
    assert [r.timestamp for r in hour] == sorted(r.timestamp for r in hour)
    assert {(r.timestamp - START) // MS_PER_HOUR for r in hour} == {0}
    assert {r.partition for r in hour} == set(range(PARTITIONS))
    many = list(records(48 * PARTITIONS, 120, 48))
    for partition in range(PARTITIONS):
        hours = [(r.timestamp - START) // MS_PER_HOUR for r in many if r.partition == partition]
        assert sorted(hours) == list(range(48))
