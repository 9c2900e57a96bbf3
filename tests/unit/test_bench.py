"""The bench's pure parts: what it makes, what it reads, what it calculates. Nothing here measures time."""

from dataclasses import replace
from typing import Any

import pytest

from bench import formats
from bench.compare import changes
from bench.figures import Bare, Result
from bench.job import JobRun
from bench.orders import kinds
from bench.table import table
from bench.usage import Usage
from kafka_archiver.records.formats import names

pytestmark = pytest.mark.unit


def _run(jvm: float, worker: float, wall: float, records: int = 2_000_000) -> JobRun:
    usage = Usage(
        code=0,
        wall=wall,
        cpu={"jvm": jvm, "driver": 2.0, "worker": worker},
        peak_process={"jvm": 800 << 20, "worker": 200 << 20},
        peak_total=1100 << 20,
        machine=2 * (jvm + 2.0 + worker),
        machine_cores=2,
    )
    return JobRun(archive="a", records=records, size=1_000_000, objects=4, usage=usage)


RESULT = Result(
    name="1200 B",
    run=_run(jvm=40.0, worker=12.0, wall=50.0),
    tiny=_run(jvm=20.0, worker=2.0, wall=10.0, records=0),
    cores=2,
    bare=Bare(run=_run(jvm=0.0, worker=21.0, wall=9.0).usage, tiny=_run(jvm=0.0, worker=1.0, wall=1.0).usage),
)


def test_start_up_is_taken_off_and_figures_are_per_million() -> None:
    assert [*map(RESULT.part, ("jvm", "driver", "worker")), RESULT.total] == [10.0, 0.0, 5.0, 15.0]
    assert RESULT.rate == 50_000
    assert (RESULT.bare_total, RESULT.to_bare) == (10.0, 1.5)
    # 40 seconds of two cores for 30 seconds of CPU.
    assert RESULT.waiting == pytest.approx(80 / 30)
    # Of the machine's 60 CPU seconds the job has 30.
    assert RESULT.idle == pytest.approx(40 * 2 / 60)
    assert RESULT.other_processes == pytest.approx(15)
    assert RESULT.memory_per_core == 550 << 20


def test_the_table_has_a_column_a_scenario_with_the_medians_of_its_runs() -> None:
    slow = replace(RESULT, run=_run(jvm=70.0, worker=12.0, wall=50.0))
    lines = table({"1200 B": [RESULT, slow, RESULT], "140 B": [slow]}).splitlines()
    assert lines[0].split() == ["1200", "B", "140", "B"]
    (ratio,) = (line for line in lines if line.startswith("job / bare program"))
    assert ratio.split()[-2:] == ["1.50", "3.00"]


def saved(*cpu: float, start: float = 10.0, name: str = "1200 B") -> dict[str, list[dict[str, Any]]]:
    """Return results as `--json` writes them: runs with these CPU seconds per million."""
    return {name: [{"cpu_seconds_per_million": {"total": c}, "start_up": {"cpu": {"jvm": start}}} for c in cpu]}


def slower(before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]) -> list[str]:
    return [change.figure for change in changes(before, after) if change.slower]


def test_a_planted_regression_is_found() -> None:
    assert slower(saved(10.0, 10.1, 9.9), saved(11.0, 11.2, 10.9)) == ["a million records"]
    assert slower(saved(10.0, 10.1, 9.9), saved(10.0, 10.1, 9.9, start=11.0)) == ["start-up"]
    assert slower(saved(10.0), saved(11.5)) == ["a million records"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param((10.0, 10.1, 9.9), (10.0, 10.1, 9.9), id="the same"),
        pytest.param((10.0, 10.1, 9.9), (10.3, 10.4, 10.2), id="less than sittings differ"),
        pytest.param((9.0, 10.0, 11.5), (11.0, 11.2, 10.9), id="the saved runs differ by more"),
        pytest.param((10.0, 10.1, 9.9), (10.0, 11.0, 12.5), id="these runs differ by more"),
        pytest.param((10.0,), (10.9,), id="one run says little"),
        pytest.param((10.0, 10.1, 9.9), (6.0, 6.1, 5.9), id="faster"),
    ],
)
def test_noise_is_no_regression(before: tuple[float, ...], after: tuple[float, ...]) -> None:
    assert slower(saved(*before), saved(*after)) == []


def test_only_what_both_runs_have_is_compared() -> None:
    with pytest.raises(ValueError, match="140 B"):
        changes(saved(1.0), saved(1.0, name="140 B"))
    shared = saved(10.0, 10.0, 10.0) | saved(5.0, 5.0, 5.0, name="140 B")
    assert {change.scenario for change in changes(saved(10.0), shared)} == {"1200 B"}
    assert [str(change)[:6] for change in changes(saved(10.0), saved(5.0))] == ["faster", "same  "]


def test_every_format_and_decoder_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "POOL", 40)
    measured = [*kinds(40)]
    lines = [*formats.decoders(measured, 1), *formats.encoders(measured[0], measured[2], 1)]
    assert {line.split()[0] for line in lines} == {*formats.WANTED, *names()}
    # A decoder that refuses orders is not measured.
    with pytest.raises(RuntimeError, match="40 of 40 records are not decoded"):
        [*formats.decoders([measured[0]._replace(values=[b"?"] * 40, confluent=len)], 1)]
