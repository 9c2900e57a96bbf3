"""The proofs of hours once runs are settled, one after the other."""

from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import PAGE, HourPage, counting, paged
from kafka_archiver.model.settling import Settling
from tests.support.plans import HOUR, at, entry, manifest, partition, plan
from tests.support.settled import Ledger


def test_a_run_that_saw_the_end_of_the_log_completes_the_hours_that_were_over() -> None:
    ledger, first = Ledger(), plan(1, partition(0, 10))
    proof = ledger.settle(first, [0, 0, 1])[HOUR]
    assert (proof.status, proof.rows, proof.complete_as_of, proof.closed_by) == (
        "complete",
        2,
        first.planned_at,
        first.run,
    )
    assert ledger.status(1) == "open"
    assert ledger.said == [((HOUR, HOUR + 1),)]


RUNS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 2), st.lists(st.integers(-2, 8), unique=True, max_size=3)), max_size=8
)


@given(RUNS)
def test_no_hour_is_complete_that_was_not_over_and_what_is_complete_stays_so(
    runs: list[tuple[int, int, list[int]]],
) -> None:
    ledger, position, start, complete = Ledger(), 0, 0, set[int]()
    for number, (hours, behind, touched) in enumerate(runs, start=1):
        start += 1 + hours
        first = plan(number, partition(position, position + 10, high=position + 10 + behind), start=start)
        position += 10
        ledger.settle(first, list(touched))
        complete_after = {h for h, p in ledger.proofs.items() if p.status == "complete" and h is not None}
        assert complete <= complete_after
        assert all(at(hour - HOUR + 1) <= first.planned_at for hour in complete_after - complete)
        complete = complete_after
    announced = [hour for spans in ledger.said for start, end in spans for hour in range(start, end)]
    assert sorted(announced) == sorted(complete)
    rows = sum(proof.rows for proof in ledger.proofs.values())
    assert rows == sum(len(touched) for _, _, touched in runs)


def test_the_contributions_of_an_hour_with_many_objects_go_to_pages_and_nothing_is_forgotten() -> None:
    number, proof, pages = 0, None, list[HourPage]()
    while not pages or len(pages) < 3:
        number += 1
        first = plan(number, partition(0, 10))
        entries = [entry(first, n, 0, key=f"{first.run}-{n}") for n in range(PAGE // 3)]
        written = manifest(first).model_copy(update={"objects": tuple(entries)})
        proof = Settling(Progress(archive="orders"), first, "committed", written, None, first.planned_at).prove(
            HOUR, proof, None
        )
        proof, page = paged(proof)
        pages += [page] if page else []
    assert proof
    assert [page.page for page in pages] == [0, 1, 2]
    assert [c.number for c in counting(proof, pages)] == list(range(1, number + 1))
    for page in pages:
        assert {proof.page_of(c.number) for c in page.runs} == {page.page}
    assert {proof.page_of(c.number) for c in proof.runs} == {None}
    assert proof.rows == number * (PAGE // 3)
    assert sum(len(c.objects) for c in proof.runs) <= 2 * PAGE
