"""Hours without a record that a run judges many at once: the progress has the verdict on them."""

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import proof_in_a_stretch
from kafka_archiver.model.stretches import LONG, Ruling, Stretch, stretch_of, stretches_after
from kafka_archiver.values.intervals import hour_start
from kafka_archiver.values.ranges import Range
from tests.support.plans import HOUR, at, partition
from tests.support.plans import plan as any_plan
from tests.support.settled import Ledger

YEARS = 26_000


def plan(number: int, *partitions: Any, **fields: Any) -> Plan:
    return any_plan(number, *partitions, **({"hour_rules": 2} | fields))


def begun(records: list[int | None] = (), hours: int = YEARS, **fields: Any) -> Ledger:  # type: ignore[assignment]
    """An archive whose first interval is old, and whose first run judges so many hours."""
    ledger = Ledger()
    ledger.settle(plan(1, partition(0, 10, **fields), planned_at=at(hours + 0.1)), records)
    return ledger


def spans(ledger: Ledger) -> list[tuple[int, int, str, int]]:
    return [(s.hours.start - HOUR, s.hours.stop - HOUR, s.status, s.number) for s in ledger.progress.stretches]


def verdict(ledger: Ledger, hour: int) -> tuple[Any, ...] | None:
    proof = ledger.proofs.get(HOUR + hour) or proof_in_a_stretch(ledger.progress, HOUR + hour)
    return proof and (proof.status, proof.rows, proof.late_rows, proof.closed_by)


def test_three_years_without_a_record_are_one_stretch_and_no_proof() -> None:
    ledger = begun()
    assert (ledger.proofs, spans(ledger)) == ({}, [(0, YEARS, "complete", 1)])
    assert (ledger.said, ledger.stretches) == ([()], [((HOUR, HOUR + YEARS),)])
    assert [verdict(ledger, hour) for hour in (0, 4711, YEARS - 1)] == [("complete", 0, 0, "20261121T050000Z")] * 3
    assert verdict(ledger, -1) is verdict(ledger, YEARS) is None
    [stretch] = ledger.progress.stretches
    assert stretch.complete_as_of == at(YEARS + 0.1)


def test_hours_with_records_have_their_proofs_whatever_the_order_and_the_stretch_does_not_count_them() -> None:
    ledger = begun([700, 3, 90_000, -400_000, None, 3])
    assert {hour and hour - HOUR for hour in ledger.proofs} == {3, 700, 90_000, -400_000, None}
    assert spans(ledger) == [(0, YEARS, "complete", 1)]
    assert ledger.said == [((HOUR - 400_000, HOUR - 399_999), (HOUR + 3, HOUR + 4), (HOUR + 700, HOUR + 701))]
    assert ledger.stretches == [
        tuple(Range(HOUR + start, HOUR + end) for start, end in ((0, 3), (4, 700), (701, YEARS)))
    ]


@pytest.mark.parametrize(("hours", "rules", "proofs"), [(LONG, 2, LONG), (LONG + 1, 2, 0), (YEARS, 1, YEARS)])
def test_few_hours_at_once_and_those_of_plans_before_have_a_proof_each(hours: int, rules: int, proofs: int) -> None:
    ledger = Ledger()
    ledger.settle(plan(1, partition(0, 10), planned_at=at(hours + 0.1), hour_rules=rules))
    assert len(ledger.proofs) == proofs
    assert bool(ledger.progress.stretches) == (proofs == 0)


def whole(hours: range, number: int, status: str, moment: datetime) -> Stretch:
    return Stretch.model_validate(
        {"start": hour_start(hours.start), "until": hour_start(hours.stop), "number": number, "run": f"r{number}",
         "status": status, "complete_as_of": moment if status == "complete" else None,
         "reason": None if status == "complete" else f"because of {number}"}
    )  # fmt: skip


JUDGED = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 30), st.integers(0, 50), st.integers(0, 50)), max_size=8)


@given(JUDGED)
def test_each_hour_has_the_first_complete_verdict_else_the_last_one(rulings: list[tuple[int, int, int, int]]) -> None:
    """Against hours as single values: any spans, in any order, with an edge before which hours are incomplete."""
    stretches: tuple[Stretch, ...] = ()
    single: dict[int, tuple[str, int]] = {}
    for number, (start, size, edge, earlier) in enumerate(rulings, start=1):
        span = range(start, start + size)

        def judged(hour: int, number: int = number, edge: int = edge) -> Stretch:
            status = "incomplete" if hour < edge else "complete"
            return whole(range(hour, hour + 1), number, status, at(number))

        stretches = stretches_after(stretches, Ruling([span], earlier, frozenset([edge]), judged))
        for hour in {*span, *(hour for hour in single if hour < earlier)}:
            if single.get(hour, ("", 0))[0] != "complete":
                single[hour] = (judged(hour).status, number)
    verdicts = {hour: (s.status, s.number) for s in stretches for hour in s.hours}
    assert verdicts == single
    assert len(verdicts) == sum(len(s.hours) for s in stretches), "no hour is in two stretches"
    assert all(stretch_of(stretches, hour) for hour in single)
    assert stretch_of(stretches, 1000) is stretch_of(stretches, None) is None
    assert len(stretches) <= 2 * len(single)


def test_a_progress_without_stretches_keeps_its_bytes_and_one_with_them_is_read_again() -> None:
    assert b"stretches" not in Progress(archive="orders").to_json()
    progress = begun([3]).progress
    assert Progress.from_json(progress.to_json(), "p") == progress
