"""Whatever happened to an archive: an hour of a stretch has the verdict that a proof of its own would have."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.model import settling
from kafka_archiver.model.manifest import Manifest, Outcome
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.proof import proof_in_a_stretch
from tests.support.plans import HOUR, at, manifest, partition, plan
from tests.support.settled import Ledger

pytestmark = pytest.mark.unit
# Offsets that the archive leaves out at its begin, or that were gone by then.
LEFT_OUT = 6
HOURS = st.lists(st.one_of(st.none(), st.integers(-3, 60)), max_size=3)
Run = tuple[Plan, Manifest, Outcome]


@st.composite
def histories(draw: st.DrawFn) -> list[Run]:
    """The runs of a line: of the schedule, backfills of what was left out, rebuilds; some lose, or see no end."""
    runs: list[Run] = []
    begin = draw(st.sampled_from(["whole", "left out", "gone"]))
    offset, hour = 0 if begin == "whole" else LEFT_OUT, 0.0
    first: dict[str, Any] = {}
    if begin == "left out":
        first = {"older": ((0, LEFT_OUT),), "older_than": at(draw(st.integers(-2, 12)))}
    if begin == "gone":
        first = {"log_start": LEFT_OUT}
    free = [*range(LEFT_OUT)] if begin == "left out" else []
    for number in range(1, draw(st.integers(2, 7)) + 1):
        what = draw(st.sampled_from(["scheduled", "scheduled", "backfill", "rebuild"])) if runs else "scheduled"
        committed = [of for of, _, outcome in runs if outcome == "committed" and of.supersedes is None]
        if what == "backfill" and free:
            size = draw(st.integers(1, len(free)))
            own, free = free[:size], free[size:]
            disorder = draw(st.sampled_from([None, 1]))
            part = partition(own[0], own[-1] + 1, log_end=offset, high=offset)
            begun = draw(st.integers(-2, 40))
            # Each has another name, and some hold hours for which a proof of their own is made.
            interval = {"start": at(begun - number / 100), "end": at(begun + draw(st.sampled_from([1, 2, 7])))}
            fields = {"origin": "backfill", "interval": interval, "max_disorder_ms": disorder}
            of = plan(number, part, planned_at=at(hour + 1), **fields)
            records = draw(HOURS)[: len(own)]
            runs.append((of, manifest(of, records), "committed"))
        elif what == "rebuild" and committed:
            old = committed[-1]
            parts = tuple(p.again() for p in old.partitions)
            fields = {"origin": "rebuild", "revision": number, "supersedes": old.run, "interval": old.interval}
            of = plan(number, *parts, planned_at=at(hour + 1), **fields)
            records = draw(HOURS)[: of.count]
            runs.append((of, manifest(of, records), draw(st.sampled_from(["committed", "given_up"]))))
        else:
            hour += draw(st.sampled_from([1, 1, 2, 5, 9, 20]))
            size = draw(st.integers(0, 4))
            lost = draw(st.integers(0, size)) if draw(st.booleans()) else 0
            high = draw(st.sampled_from([offset + size] * 3 + [offset + size + 2, None]))
            part = partition(offset, offset + size, high=high, **first)
            of = plan(number, part, start=hour, planned_at=at(hour + draw(st.sampled_from([1, 1.02, 3]))))
            records = draw(HOURS)[: size - lost]
            runs.append((of, manifest(of, records, lost), "committed"))
            offset, first = offset + size, {}
    return runs


def settled(runs: list[Run], rules: int) -> Ledger:
    ledger = Ledger()
    for of, written, outcome in runs:
        ledger.settle(of.model_copy(update={"hour_rules": rules}), written, outcome)
    return ledger


def verdicts(ledger: Ledger) -> Iterator[Any]:
    for hour in range(HOUR - 5, HOUR + 100):
        proof = ledger.proofs.get(hour) or proof_in_a_stretch(ledger.progress, hour)
        closed_by = proof and proof.status == "complete" and proof.closed_by
        yield (
            hour - HOUR,
            proof and (proof.status, proof.complete_as_of, proof.assumes, proof.rows, proof.late_rows, closed_by),
        )


@given(histories())
def test_an_hour_of_a_stretch_has_the_verdict_of_a_proof_of_its_own(runs: list[Run]) -> None:
    single = settled(runs, rules=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settling, "LONG", 3)
        together = settled(runs, rules=2)
    assert [*verdicts(together)] == [*verdicts(single)]
    # Each hour that became complete was announced by the same run.
    announced = [
        {h for r in (*announced_ranges, *spans) for h in range(*r)}
        for announced_ranges, spans in zip(together.said, together.stretches, strict=True)
    ]
    assert announced == [{h for r in announced_ranges for h in range(*r)} for announced_ranges in single.said]
