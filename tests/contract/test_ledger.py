"""The ledger's documents on a store: written once where they must be, checked whenever they are read."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from kafka_archiver.ledger.documents import Stored
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import DocumentError, IntegrityError, TransientError
from kafka_archiver.model.complete_hours import Judgement
from kafka_archiver.model.manifest import Commit, Intent, Manifest, Settled
from kafka_archiver.model.object_keys import hour_document, line_document, progress_document, run_document
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import Contribution, HourPage, HourProof, ProofObject, prove
from kafka_archiver.store import Stat, Store
from kafka_archiver.store.base import StoredObject
from kafka_archiver.values.documents import Document
from tests.support.values import FIVE, plan

pytestmark = pytest.mark.contract

RUN = "20261121T050000Z"
PLAN = plan()
MANIFEST = Manifest.of(PLAN, [], [])
INTENT = Intent(archive="orders", run=RUN, attempt=1, keys=("orders/a",))
SETTLED = Settled(archive="orders", run=RUN, number=1)
NOTHING: Stored[Any] = Stored(None, None)
HOUR = 498_677


@pytest.fixture
def ledger(store: Store) -> Ledger:
    return Ledger(store, "orders")


def commit(manifest_digest: str = MANIFEST.digest, minute: int = 0) -> Commit:
    return Commit(
        archive="orders",
        run=RUN,
        plan_digest=PLAN.digest,
        manifest_digest=manifest_digest,
        committed_at=FIVE + timedelta(minutes=minute),
    )


def proof(hour: int | None = HOUR) -> HourProof:
    return prove(hour, None, PLAN, MANIFEST, Judgement("complete", FIVE))


def page(number: int = 0, hour: int | None = HOUR) -> HourPage:
    start = proof(hour).hour_start
    added = ProofObject(key="orders/a", rows=1, bytes=1, checksum="c")
    run = Contribution(number=1, run=RUN, late=False, rows=1, objects=(added,))
    return HourPage(archive="orders", hour_start=start, page=number, runs=(run,))


def paged(*numbers: int) -> HourProof:
    """A proof that says that these are the last runs of its pages."""
    return proof().model_copy(update={"pages": numbers})


def test_documents_are_read_back_as_they_were_written(ledger: Ledger) -> None:
    assert ledger.append(PLAN)
    assert ledger.planned(1) == PLAN
    ledger.file_plan(PLAN)
    assert ledger.plan(RUN) == PLAN
    ledger.put_intent(INTENT, NOTHING)
    assert ledger.intent(RUN).document == INTENT
    ledger.create_manifest(MANIFEST)
    assert ledger.manifest(RUN) == MANIFEST
    assert ledger.create_commit(commit()) == commit() == ledger.commit(RUN)
    ledger.create_settled(SETTLED)
    assert ledger.settled(RUN) == SETTLED
    for hour in (HOUR, None):
        assert ledger.put_hour(proof(hour), NOTHING)
        assert ledger.hour(hour) == proof(hour)
    assert ledger.put_page(page(), NOTHING)
    assert ledger.page(paged(1), 0) == page()
    progress = Progress(archive="orders").after(PLAN)
    assert ledger.put_progress(progress, NOTHING)
    assert ledger.progress() == progress


def test_documents_are_where_the_format_says(ledger: Ledger, store: Store) -> None:
    ledger.append(PLAN)
    ledger.file_plan(PLAN)
    ledger.put_intent(INTENT, NOTHING)
    ledger.create_manifest(MANIFEST)
    ledger.create_commit(commit())
    ledger.create_settled(SETTLED)
    ledger.put_page(page(), NOTHING)
    ledger.put_page(page(1, None), NOTHING)
    ledger.put_hour(proof(), NOTHING)
    ledger.put_hour(proof(None), NOTHING)
    ledger.put_progress(Progress(archive="orders"), NOTHING)
    assert sorted(stat.key.removeprefix("_ledger/orders/") for stat in store.list("")) == [
        "hours/2026-11-21/05+000000.json",
        "hours/2026-11-21/05.json",
        "hours/__HIVE_DEFAULT_PARTITION__+000001.json",
        "hours/__HIVE_DEFAULT_PARTITION__.json",
        "line/000000000001.json",
        "progress.json",
        "runs/20261121T050000Z/commit.json",
        "runs/20261121T050000Z/intent.json",
        "runs/20261121T050000Z/manifest.json",
        "runs/20261121T050000Z/plan.json",
        "runs/20261121T050000Z/settled.json",
    ]


class TestTheLine:
    def test_a_place_is_taken_once_whatever_the_intervals(self, ledger: Ledger) -> None:
        assert ledger.append(PLAN)
        assert not ledger.append(plan(start=FIVE + timedelta(hours=1)))
        assert ledger.planned(1) == PLAN

    def test_it_is_read_from_any_place_in_order_and_without_a_listing(self, store: Store) -> None:
        line = [plan(number=number, start=FIVE + timedelta(hours=-number)) for number in (1, 2, 3)]
        ledger = Ledger(store, "orders")
        for entry in line:
            ledger.append(entry)

        class WithoutLists:
            url, version = store.url, store.version

        blind = Ledger(WithoutLists(), "orders")  # type: ignore[arg-type]
        assert list(blind.following(0)) == line
        assert list(blind.following(2)) == line[2:]
        assert list(blind.following(3)) == []

    def test_a_plan_at_another_s_place_is_refused(self, ledger: Ledger, store: Store) -> None:
        store.put(line_document("orders", 2), PLAN.to_json())
        with pytest.raises(
            DocumentError, match=r"000000000002\.json is not the document .* found number 1, expected 2"
        ):
            ledger.planned(2)


class TestPlans:
    def test_the_copy_beside_a_run_is_written_once(self, ledger: Ledger, store: Store) -> None:
        ledger.file_plan(PLAN)
        before = store.head(run_document("orders", RUN, "plan"))
        ledger.file_plan(PLAN)
        assert store.head(run_document("orders", RUN, "plan")) == before

    def test_a_copy_that_is_another_plan_is_an_integrity_error(self, ledger: Ledger) -> None:
        ledger.file_plan(plan(group="another"))
        with pytest.raises(
            IntegrityError, match=r"plan\.json is not the plan at place 1 of the line: somebody changed it"
        ):
            ledger.file_plan(PLAN)
        assert ledger.plan(RUN) == plan(group="another")

    def test_a_plan_that_vanishes_between_two_looks_is_a_transient_error(self, store: Store) -> None:
        class Vanishing:
            url = store.url

            def create(self, key: str, data: bytes) -> bool:
                return False

            def version(self, key: str) -> StoredObject | None:
                return None

        with pytest.raises(TransientError, match=r"plan\.json existed when it was to be written, and is gone now"):
            Ledger(Vanishing(), "orders").file_plan(PLAN)  # type: ignore[arg-type]


class TestIntents:
    def test_an_attempt_takes_the_intent_from_the_one_before_and_no_other(self, ledger: Ledger) -> None:
        first = ledger.put_intent(INTENT, NOTHING)
        assert first is not None
        assert first.document == INTENT
        second = ledger.put_intent(INTENT.model_copy(update={"attempt": 2}), first)
        assert second is not None
        # Whoever read it before the second one took it is too late, with whatever it says.
        for late in (NOTHING, first):
            assert ledger.put_intent(INTENT.model_copy(update={"attempt": 3}), late) is None
        assert ledger.intent(RUN) == second


class TestEnds:
    def test_ending_a_run_again_returns_the_first_end(self, ledger: Ledger) -> None:
        first = ledger.create_commit(commit(minute=1))
        assert ledger.create_commit(commit(minute=2)) == first
        # That it is of another manifest is for whoever asked to say.
        assert ledger.create_commit(commit(manifest_digest="b" * 64)) == first
        given_up = Commit(
            archive="orders", run=RUN, outcome="given_up", by="x", plan_digest="p", manifest_digest=None,
            committed_at=FIVE,
        )  # fmt: skip
        assert ledger.create_commit(given_up) == first == ledger.commit(RUN)

    def test_a_manifest_is_written_once(self, ledger: Ledger) -> None:
        other = MANIFEST.model_copy(update={"plan_digest": "other"})
        assert ledger.create_manifest(MANIFEST) == MANIFEST
        assert ledger.create_manifest(other) == MANIFEST == ledger.manifest(RUN)

    def test_the_last_committed_revision_counts_whatever_was_given_up(self, ledger: Ledger) -> None:
        ends = {0: "committed", 1: "given_up", 2: "committed", 3: "given_up"}
        for revision, outcome in ends.items():
            revised_plan = plan(
                number=revision + 1, revision=revision, supersedes=RUN if revision else None, origin="rebuild"
            )
            ledger.file_plan(revised_plan)
            committed = outcome == "committed"
            ledger.create_commit(
                Commit.model_validate(
                    {
                        "archive": "orders", "run": revised_plan.run, "revision": revision, "outcome": outcome,
                        "by": None if committed else "x", "plan_digest": revised_plan.digest,
                        "manifest_digest": "m" if committed else None, "committed_at": FIVE,
                    }
                )
            )  # fmt: skip
        assert ledger.last_committed(RUN) == f"{RUN}+r2"
        assert ledger.superseded_by(RUN) == ledger.superseded_by(f"{RUN}+r1") == f"{RUN}+r2"
        assert ledger.superseded_by(f"{RUN}+r2") is None
        assert ledger.superseded_by(f"{RUN}+r3") is None
        current = ledger.current(RUN)
        assert current is not None
        assert current.revision == 2


class TestDerived:
    def test_a_proof_is_replaced_only_by_who_read_it(self, ledger: Ledger) -> None:
        assert ledger.put_hour(proof(), NOTHING)
        read = ledger.stored_hour(HOUR)
        assert ledger.put_hour(proof().model_copy(update={"rows": 1}), read)
        for late in (NOTHING, read):
            assert not ledger.put_hour(proof().model_copy(update={"rows": 2}), late)
        assert (stored := ledger.hour(HOUR)) is not None
        assert stored.rows == 1

    def test_progress_is_replaced_only_by_who_read_it(self, ledger: Ledger) -> None:
        progress = Progress(archive="orders")
        assert ledger.put_progress(progress, NOTHING)
        read = ledger.stored_progress()
        assert ledger.put_progress(progress.after(PLAN), read)
        for late in (NOTHING, read):
            assert not ledger.put_progress(progress, late)
        assert ledger.progress() == progress.after(PLAN)

    def test_contributions_are_those_of_the_pages_and_of_the_proof_but_for_what_was_replaced(
        self, ledger: Ledger
    ) -> None:
        ledger.put_page(page(), NOTHING)
        [first] = page().runs
        second = first.model_copy(update={"number": 2, "run": "second"})
        whole = paged(1).model_copy(update={"runs": (second,)})
        assert ledger.contributions(whole) == (first, second)
        assert ledger.contributions(whole.model_copy(update={"replaced": (RUN,)})) == (second,)

    def test_a_page_that_no_proof_names_any_more_is_replaced_but_only_for_the_proof_that_was_read(
        self, ledger: Ledger
    ) -> None:
        old, new = page(), page().model_copy(update={"runs": ()})
        read = ledger.stored_hour(HOUR)
        assert ledger.put_page(old, read)
        assert ledger.put_page(new, read)
        assert ledger.page(paged(1), 0) == new
        assert ledger.put_hour(proof(), read)
        assert not ledger.put_page(old, read)
        assert ledger.page(paged(1), 0) == new

    def test_a_page_that_is_gone_is_an_integrity_error(self, ledger: Ledger) -> None:
        with pytest.raises(IntegrityError, match=r"05\+000000\.json is gone\. `airflow archive repair orders` "):
            ledger.contributions(paged(1))

    def test_a_page_of_another_number_is_refused(self, ledger: Ledger, store: Store) -> None:
        store.put(hour_document("orders", HOUR, 0), page(1).to_json())
        with pytest.raises(DocumentError, match=r"found page 1 of .*, expected 0 of"):
            ledger.contributions(paged(1))


class TestListings:
    def test_runs_are_listed_oldest_first_with_their_documents(self, ledger: Ledger) -> None:
        for hours in (25, 0, 1):
            ledger.file_plan(plan(start=FIVE + timedelta(hours=hours)))
        ledger.create_manifest(MANIFEST)
        ledger.create_commit(commit())
        assert list(ledger.runs().items()) == [
            (RUN, frozenset({"plan", "manifest", "commit"})),
            ("20261121T060000Z", frozenset({"plan"})),
            ("20261122T060000Z", frozenset({"plan"})),
        ]

    def test_runs_and_hours_are_in_order_whatever_the_server_s_order_is(self, store: Store) -> None:
        class Backwards:
            """A server may list in any order."""

            url = store.url

            def list(self, prefix: str) -> Iterator[Stat]:
                return reversed(list(store.list(prefix)))

        ledger = Ledger(store, "orders")
        for hours in (1, 0):
            ledger.file_plan(plan(start=FIVE + timedelta(hours=hours)))
            ledger.put_hour(proof(HOUR + hours), NOTHING)
        backwards = Ledger(Backwards(), "orders")  # type: ignore[arg-type]
        assert list(backwards.runs()) == [RUN, "20261121T060000Z"]
        assert backwards.hours() == (HOUR, HOUR + 1)

    def test_hours_are_listed_once_oldest_first_and_the_timeless_last(self, ledger: Ledger) -> None:
        for hour in (None, 498_700, 0, 2_000_000):
            ledger.put_hour(proof(hour), NOTHING)
            ledger.put_page(page(0, hour), NOTHING)
        assert ledger.hours() == (0, 498_700, 2_000_000, None)


class TestForeignDocuments:
    """Documents that are sound but lie under a key that is not theirs."""

    @pytest.mark.parametrize(
        ("document", "read"),
        [
            (PLAN, lambda ledger: ledger.plan("20261121T060000Z")),
            (INTENT, lambda ledger: ledger.intent("20261121T060000Z")),
            (MANIFEST, lambda ledger: ledger.manifest("20261121T060000Z")),
            (commit(), lambda ledger: ledger.commit("20261121T060000Z")),
            (SETTLED, lambda ledger: ledger.settled("20261121T060000Z")),
        ],
        ids=["plan", "intent", "manifest", "commit", "settled"],
    )
    def test_a_document_of_another_run_is_refused(
        self, ledger: Ledger, store: Store, document: Any, read: Callable[[Ledger], object]
    ) -> None:
        name = type(document).__name__.lower()
        store.put(run_document("orders", "20261121T060000Z", name), document.to_json())
        expected = rf"{name}\.json is not the document .* found run {RUN}, expected 20261121T060000Z"
        with pytest.raises(DocumentError, match=expected):
            read(ledger)

    @pytest.mark.parametrize(
        ("key", "document", "read"),
        [
            (line_document("mine", 1), PLAN, lambda ledger: ledger.planned(1)),
            (run_document("mine", RUN, "plan"), PLAN, lambda ledger: ledger.plan(RUN)),
            (run_document("mine", RUN, "commit"), commit(), lambda ledger: ledger.commit(RUN)),
            (hour_document("mine", HOUR), proof(), lambda ledger: ledger.hour(HOUR)),
            (progress_document("mine"), Progress(archive="orders"), lambda ledger: ledger.progress()),
        ],
        ids=["line", "plan", "commit", "hour", "progress"],
    )
    def test_a_document_of_another_archive_is_refused(
        self, store: Store, key: str, document: Document, read: Callable[[Ledger], object]
    ) -> None:
        store.put(key, document.to_json())
        with pytest.raises(DocumentError, match="found archive orders, expected mine"):
            read(Ledger(store, "mine"))

    def test_the_proof_of_another_hour_is_refused(self, ledger: Ledger, store: Store) -> None:
        store.put(hour_document("orders", HOUR), proof(None).to_json())
        with pytest.raises(DocumentError, match=f"found hour_start None, expected hour {HOUR}"):
            ledger.hour(HOUR)

    def test_a_damaged_plan_is_named_and_never_planned_again(self, ledger: Ledger, store: Store) -> None:
        store.put(run_document("orders", RUN, "plan"), PLAN.to_json()[:-40])
        with pytest.raises(DocumentError, match=f"{store.url}/_ledger/orders/runs/{RUN}/plan.json is not a readable"):
            ledger.file_plan(PLAN)
        store.put(line_document("orders", 1), PLAN.to_json()[:-40])
        assert not ledger.append(PLAN)
        with pytest.raises(DocumentError, match=f"{store.url}/_ledger/orders/line/000000000001.json is not a readable"):
            ledger.planned(1)

    def test_a_document_is_never_written_to_another_archive_s_ledger(self, store: Store) -> None:
        with pytest.raises(DocumentError, match="archive 'orders' does not belong in the ledger of 'mine'"):
            Ledger(store, "mine").append(PLAN)
        assert list(store.list("")) == []
