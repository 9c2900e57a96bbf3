"""The proofs of hours once runs are settled, one after the other."""

from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.model.manifest import Manifest
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


def test_every_hour_between_a_first_run_and_its_plan_gets_a_proof() -> None:
    ledger, first = Ledger(), plan(1, partition(0, 10), planned_at=at(4.1))
    ledger.settle(first, [0, 2])
    assert [ledger.status(hour) for hour in range(5)] == ["complete"] * 4 + [None]
    assert ledger.said == [((HOUR, HOUR + 4),)]


def test_so_does_every_hour_where_a_later_run_closes_the_first_ones() -> None:
    ledger = Ledger()
    ledger.settle(plan(1, partition(0, 10)), outcome="replaced")
    ledger.settle(plan(2, partition(10, 10), planned_at=at(3.1)))
    ledger.settle(plan(3, partition(0, 10, high=None), start=0, origin="rebuild", revision=1, takes_over=True))
    assert [ledger.status(hour) for hour in range(4)] == ["complete"] * 3 + [None]


def test_what_a_backfill_brings_to_an_hour_that_was_never_complete_is_not_late() -> None:
    ledger = Ledger()
    # The archive begins in the middle of the log: what it leaves out is older than two hours behind the first.
    older = {"older": ((0, 10),), "older_than": at(2)}
    ledger.settle(plan(1, partition(10, 10, **older), start=3))
    for number, hour in (2, 0), (3, 1):
        ledger.settle(plan(number, partition(5 * hour, 5 * hour + 5), start=hour, origin="backfill"), [hour])
    proofs = [ledger.proofs[HOUR + hour] for hour in range(2)]
    assert [(p.status, p.rows, p.late_rows) for p in proofs] == [("complete", 1, 0)] * 2


def test_what_comes_for_an_hour_before_the_archive_that_was_whole_is_late() -> None:
    ledger = Ledger()
    ledger.settle(plan(1, partition(0, 10), start=3))
    ledger.settle(plan(2, partition(10, 20), start=4), [0])
    assert [(ledger.proofs[HOUR].status, ledger.proofs[HOUR].late_rows)] == [("complete", 1)]


def test_an_idle_hour_is_completed_on_time_too() -> None:
    ledger = Ledger()
    ledger.settle(plan(1, partition(0, 10)))
    assert (ledger.status(0), ledger.proofs[HOUR].rows, ledger.status(1)) == ("complete", 0, None)


def test_every_hour_of_an_outage_has_its_proof_and_its_event_when_one_run_makes_up_for_it() -> None:
    ledger = Ledger()
    ledger.settle(plan(1, partition(0, 10)))
    ledger.settle(plan(2, partition(10, 20), start=6), [3])
    assert [ledger.status(n) for n in range(8)] == ["complete"] * 7 + [None]
    assert ledger.said[1] == ((HOUR + 1, HOUR + 7),)


def test_idle_hours_from_the_first_one_on_are_completed_where_intervals_begin_in_the_middle_of_hours() -> None:
    ledger = Ledger()
    ledger.settle(plan(1, partition(0, 10), start=0.5))
    ledger.settle(plan(2, partition(10, 20), start=1.5))
    assert [ledger.status(n) for n in range(3)] == [None, "complete", None]


def test_a_run_that_was_held_back_leaves_its_hour_open_until_the_next_one() -> None:
    ledger = Ledger()
    ledger.settle(plan(1, partition(0, 4, high=10)), [0])
    assert ledger.status(0) == "open"
    two = plan(2, partition(4, 20))
    ledger.settle(two, [0])
    proof = ledger.proofs[HOUR]
    assert (proof.status, proof.rows, proof.late_rows, proof.closed_by) == ("complete", 2, 0, two.run)


def test_a_record_for_an_hour_to_come_or_without_a_time_leaves_that_open() -> None:
    ledger = Ledger()
    ledger.settle(plan(1, partition(0, 10)), [0, 5, None])
    assert [ledger.status(5), ledger.proofs[None].status] == ["open", "open"]


def test_what_comes_after_the_hour_was_complete_is_late() -> None:
    ledger, first, two = Ledger(), plan(1, partition(0, 10)), plan(2, partition(10, 20))
    ledger.settle(first, [0])
    proof = ledger.settle(two, [0, 1])[HOUR]
    assert (proof.rows, proof.late_rows, proof.closed_by, proof.changed_by) == (2, 1, first.run, two.run)
    assert [c.late for c in proof.runs] == [False, True]
    assert ledger.proofs[HOUR + 1].late_rows == 0


def test_it_is_late_too_in_an_hour_of_which_nothing_had_come() -> None:
    ledger = Ledger()
    ledger.settle(plan(1, partition(0, 10)), [0])
    ledger.settle(plan(2, partition(10, 20)), [-3])
    assert (ledger.status(-3), ledger.proofs[HOUR - 3].late_rows) == ("complete", 1)


def test_a_backfill_that_makes_the_archive_whole_completes_the_hours_that_lacked_its_records() -> None:
    ledger = Ledger()
    ledger.settle(plan(1, partition(5, 10, older=((0, 5),), older_than=at(1))), [0])
    assert ledger.status(0) == "incomplete"
    reason = "does not have offsets 0–4 of orders, partition 0, whose records may be of this hour"
    assert reason in (ledger.proofs[HOUR].reason or "")
    ledger.settle(plan(2, partition(0, 5, high=None), start=0.25, origin="backfill"), [0])
    assert (ledger.status(0), ledger.proofs[HOUR].late_rows) == ("complete", 0)


def test_what_is_lost_never_turns_green() -> None:
    ledger = Ledger()
    first = plan(1, partition(0, 10), start=2)
    ledger.settle(first, manifest(first, [1, 2], lost=4))
    # What was there when it was planned is gone: of that moment nothing can be said, but of the next one.
    assert [ledger.status(n) for n in (1, 2)] == ["open"] * 2
    ledger.settle(plan(2, partition(10, 20), start=3), [1, 3])
    assert [ledger.status(n) for n in (1, 2, 3)] == ["incomplete"] * 3
    # The loss was known in the hour after the run's.
    ledger.settle(plan(3, partition(20, 30), start=4), [4])
    assert [ledger.status(n) for n in (2, 3, 4)] == ["incomplete", "incomplete", "complete"]


def test_a_rebuild_takes_the_place_of_what_it_supersedes() -> None:
    ledger = Ledger()
    first, two = plan(1, partition(0, 10)), plan(2, partition(10, 20))
    ledger.settle(first, [0, 1])
    ledger.settle(two, [0])
    again = plan(3, partition(0, 10, high=None), start=0, origin="rebuild", revision=1, supersedes=first.run)
    ledger.settle(again, [0])
    assert [(c.run, c.late) for c in ledger.proofs[HOUR].runs] == [(two.run, True), (again.run, False)]
    assert (ledger.status(0), ledger.proofs[HOUR].rows, ledger.proofs[HOUR + 1].runs) == ("complete", 2, ())


def test_an_object_that_a_repair_gives_up_makes_its_hour_incomplete_for_good_and_says_so() -> None:
    ledger = Ledger()
    first_plan = plan(1, partition(0, 10))
    first = ledger.settle(first_plan, [0, 1]) and ledger.written[first_plan.run]
    lost, kept = first.objects
    repair = plan(2, partition(0, 10, high=None), start=0, origin="repair", revision=1, supersedes=first_plan.run,
                  lost_objects=(lost.key,))  # fmt: skip
    account = first.chunks[0].model_copy(update={"archived": 1, "lost": 1})
    manifest = Manifest.of(repair, [kept], [account]).model_copy(update={"lost_objects": (lost,)})
    ledger.settle(repair, manifest)
    proof = ledger.proofs[HOUR]
    assert (proof.status, proof.lost_rows, proof.rows) == ("incomplete", 1, 0)
    assert proof.reason == "objects with 1 rows are gone for good"
    ledger.settle(plan(3, partition(10, 20), start=2), [0])
    assert (ledger.status(0), ledger.status(1)) == ("incomplete", "complete")


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
