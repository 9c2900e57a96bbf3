"""The note of a DAG run, in words."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_archiver.messages.wording import size
from kafka_archiver.orchestration.dag_run.figures import Figures
from kafka_archiver.orchestration.dag_run.note import LONGEST, FailedRun, audited, failed, settled, settles, succeeded

pytestmark = pytest.mark.unit
SEVEN, MINUTE = datetime(2026, 11, 21, 7, tzinfo=UTC), timedelta(minutes=1)
RUN = "20261121T050000Z"


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        (
            {"records": 1234567, "objects": 12, "bytes": 3_400_000, "hours_closed": 2, "closed_until": SEVEN},
            "1,234,567 records in 12 objects (3.4 MB); 2 hours became complete, hours are closed until 2026-11-21 "
            "07:00 UTC",
        ),
        (
            {"records": 1, "objects": 2, "bytes": 999, "filtered": 3, "dead_letters": 4, "lost": 5, "hours_closed": 1},
            "1 record in 2 objects (999 B), 3 filtered, 4 dead-lettered, 5 lost; 1 hour became complete",
        ),
        ({"closed_until": SEVEN}, "0 records; hours are closed until 2026-11-21 07:00 UTC"),
        ({}, "0 records; no hour is closed yet"),
    ],
)
def test_a_successful_run_says_what_it_did(facts: dict[str, Any], line: str) -> None:
    assert succeeded(Figures(runs=(RUN,), **facts)) == line


def test_sizes() -> None:
    texts = [size(n) for n in (0, 999, 1000, 99_949, 999_500, 1_234_567_890, 5 * 10**15)]
    assert texts == ["0 B", "999 B", "1 kB", "99.9 kB", "1 MB", "1.23 GB", "5,000 TB"]


def test_a_failed_run_says_where_and_why_in_one_line_that_airflow_stores() -> None:
    assert failed("verify", "IntegrityError: 2 objects\nare missing") == (
        "verify failed: IntegrityError: 2 objects are missing"
    )
    long = failed("plan", "x" * 5000)
    assert len(long) == LONGEST
    assert long.endswith(" …")
    assert len(settled(long, "r" * 250)) <= LONGEST


def test_an_audit_says_its_verdict() -> None:
    note = audited({"verdict": "clean", "objects": 1200, "runs": 7, "report": "_ledger/orders/audit.json"})
    assert note == "clean: 1,200 objects of 7 runs; report _ledger/orders/audit.json"


def test_a_failed_run_that_another_settled_says_by_which_and_keeps_its_cause() -> None:
    once = settled("verify failed: x", "manual__1")
    assert once == "done later by run manual__1; it had failed: verify failed: x"
    assert settled(once, "manual__2") == once
    assert settled(None, "manual__1") == "done later by run manual__1"


def run(forward: bool = True, works: tuple[str, ...] = (), end: datetime | None = SEVEN) -> FailedRun:
    return FailedRun(forward, end, works)


def done(
    runs: tuple[str, ...] = (),
    unfinished: tuple[str, ...] = (),
    until: datetime | None = SEVEN,
    as_of: datetime | None = None,
) -> Any:
    return Figures(runs=runs, unfinished=unfinished, closed_until=until, as_of=as_of).model_dump(mode="json")


@pytest.mark.parametrize(
    ("figures", "by", "failure", "yes"),
    [
        # It finished exactly those runs.
        (done((RUN, "later")), True, run(works=(RUN,)), True),
        (done((RUN,)), False, run(False, (RUN,)), True),
        # An earlier run has finished them meanwhile: none is open any more.
        (done(("later",)), True, run(works=(RUN,)), True),
        (done(("later",), (RUN,)), True, run(works=(RUN,)), False),
        # A rebuild that was given up has not been done.
        (done(("later",)), True, run(False, (f"{RUN}+r1",)), False),
        # Nor does a rebuild settle what a scheduled run was to do.
        (done((f"{RUN}+r1",)), False, run(works=(RUN,)), False),
        # It failed before it had a plan: its interval is closed now, or not.
        (done(), True, run(), True),
        (done(until=datetime(2026, 11, 21, 6, tzinfo=UTC)), True, run(), False),
        (done(until=None), True, run(), False),
        # It was triggered by hand, within an hour.
        (done(as_of=SEVEN + 2 * MINUTE), True, run(end=SEVEN + MINUTE), True),
        (done(as_of=SEVEN), True, run(end=SEVEN + MINUTE), False),
        (done(), False, run(), False),
        (done(), True, run(False), False),
    ],
)
def test_when_a_run_has_settled_what_another_failed_to_do(
    figures: Any, by: bool, failure: FailedRun, yes: bool
) -> None:
    assert settles(figures, by, failure) is yes
