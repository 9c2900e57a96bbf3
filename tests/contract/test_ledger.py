"""The ledger's documents on a store: written once where they must be, checked whenever they are read."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from kafka_archiver.documents import Document
from kafka_archiver.errors import DocumentError, IntegrityError, TransientError
from kafka_archiver.intervals import Interval
from kafka_archiver.keys import hour_document, progress_document, run_document
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import Commit, Intent, Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.proof import HourProof, Progress, prove
from kafka_archiver.store import Stat, Store
from tests.support.values import FIVE, plan

pytestmark = pytest.mark.contract

RUN = "20261121T050000Z"
PLAN = plan()
MANIFEST = Manifest.of(PLAN, [], [])
INTENT = Intent(archive="orders", run=RUN, keys=("orders/a",))
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
    return prove(hour, None, PLAN, MANIFEST, "complete")


def test_an_empty_ledger_has_nothing(ledger: Ledger) -> None:
    assert ledger.plan(RUN) is None
    assert ledger.intent(RUN) is None
    assert ledger.manifest(RUN) is None
    assert ledger.commit(RUN) is None
    assert ledger.hour(HOUR) is None
    assert ledger.hour(None) is None
    assert ledger.progress() is None
    assert ledger.runs() == {}
    assert ledger.hours() == ()


def test_documents_are_read_back_as_they_were_written(ledger: Ledger) -> None:
    assert ledger.create_plan(PLAN) == PLAN == ledger.plan(RUN)
    ledger.put_intent(INTENT)
    assert ledger.intent(RUN) == INTENT
    ledger.create_manifest(MANIFEST)
    assert ledger.manifest(RUN) == MANIFEST
    assert ledger.create_commit(commit()) == commit() == ledger.commit(RUN)
    for hour in (HOUR, None):
        ledger.put_hour(proof(hour))
        assert ledger.hour(hour) == proof(hour)
    progress = Progress(archive="orders").after(PLAN)
    ledger.put_progress(progress)
    assert ledger.progress() == progress


def test_documents_are_where_the_format_says(ledger: Ledger, store: Store) -> None:
    ledger.create_plan(PLAN)
    ledger.put_intent(INTENT)
    ledger.create_manifest(MANIFEST)
    ledger.create_commit(commit())
    ledger.put_hour(proof())
    ledger.put_hour(proof(None))
    ledger.put_progress(Progress(archive="orders"))
    assert sorted(stat.key.removeprefix("_ledger/orders/") for stat in store.list("")) == [
        "hours/2026-11-21/05.json",
        "hours/__HIVE_DEFAULT_PARTITION__.json",
        "progress.json",
        "runs/20261121T050000Z/commit.json",
        "runs/20261121T050000Z/intent.json",
        "runs/20261121T050000Z/manifest.json",
        "runs/20261121T050000Z/plan.json",
    ]


class TestPlans:
    def test_the_first_plan_of_a_run_counts_for_everybody(self, ledger: Ledger) -> None:
        assert ledger.create_plan(PLAN) == PLAN
        assert ledger.create_plan(plan(group="another")) == PLAN
        assert ledger.plan(RUN) == PLAN

    def test_racing_planners_all_get_the_plan_that_was_first(self, ledger: Ledger) -> None:
        start = Barrier(8)

        def race(number: int) -> Plan:
            start.wait()
            return ledger.create_plan(plan(group=f"planner {number}"))

        with ThreadPoolExecutor(8) as pool:
            winners = set(map(Plan.to_json, pool.map(race, range(8))))
        assert (stored := ledger.plan(RUN)) is not None
        assert winners == {stored.to_json()}

    def test_a_plan_that_vanishes_between_two_looks_is_a_transient_error(self, store: Store) -> None:
        class Vanishing:
            url = store.url

            def create(self, key: str, data: bytes) -> bool:
                return False

            def get(self, key: str) -> bytes | None:
                return None

        with pytest.raises(TransientError, match=r"plan\.json was there when it was to be written, and is gone now"):
            Ledger(Vanishing(), "orders").create_plan(PLAN)  # type: ignore[arg-type]


class TestCommits:
    def test_committing_again_returns_the_first_commit(self, ledger: Ledger) -> None:
        first = ledger.create_commit(commit(minute=1))
        assert ledger.create_commit(commit(minute=2)) == first
        assert ledger.commit(RUN) == first

    def test_committing_another_manifest_is_an_integrity_error(self, ledger: Ledger) -> None:
        ledger.create_commit(commit(manifest_digest="a" * 64))
        expected = r"commit\.json commits manifest aaaaaaaaaaaa, this attempt wrote bbbbbbbbbbbb"
        with pytest.raises(IntegrityError, match=expected):
            ledger.create_commit(commit(manifest_digest="b" * 64))
        assert (stored := ledger.commit(RUN)) is not None
        assert stored.manifest_digest == "a" * 64


class TestListings:
    def test_runs_are_listed_oldest_first_with_their_documents(self, ledger: Ledger) -> None:
        for hours in (25, 0, 1):
            ledger.create_plan(plan(start=FIVE + timedelta(hours=hours)))
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
            ledger.create_plan(plan(start=FIVE + timedelta(hours=hours)))
            ledger.put_hour(proof(HOUR + hours))
        backwards = Ledger(Backwards(), "orders")  # type: ignore[arg-type]
        assert list(backwards.runs()) == [RUN, "20261121T060000Z"]
        assert backwards.hours() == (HOUR, HOUR + 1)

    def test_hours_are_listed_oldest_first_and_the_timeless_last(self, ledger: Ledger) -> None:
        for hour in (None, 498_700, 0, 2_000_000):
            ledger.put_hour(proof(hour))
        assert ledger.hours() == (0, 498_700, 2_000_000, None)

    def test_what_is_no_document_of_this_archive_is_not_listed(self, ledger: Ledger, store: Store) -> None:
        for key in (
            "_ledger/orders/runs/yesterday/plan.json",
            "_ledger/orders/runs/20261121T050000Z/plan.json.bak/x",
            "_ledger/orders/hours/2026-11-21/25.json",
            "_ledger/orders2/runs/20261121T050000Z/plan.json",
            "orders/date=2026-11-21/hour=05/orders+0+00000000000000000000.jsonl.gz",
        ):
            store.put(key, b"{}")
        assert ledger.runs() == {}
        assert ledger.hours() == ()

    def test_archives_on_one_store_do_not_see_each_other(self, store: Store) -> None:
        Ledger(store, "orders").create_plan(PLAN)
        for other in ("orders2", "order", "runs", "orders/runs"):
            assert Ledger(store, other).runs() == {}
            assert Ledger(store, other).plan(RUN) is None


class TestForeignDocuments:
    """Documents that are sound but lie under a key that is not theirs."""

    @pytest.mark.parametrize(
        ("document", "read"),
        [
            (PLAN, lambda ledger: ledger.plan("20261121T060000Z")),
            (INTENT, lambda ledger: ledger.intent("20261121T060000Z")),
            (MANIFEST, lambda ledger: ledger.manifest("20261121T060000Z")),
            (commit(), lambda ledger: ledger.commit("20261121T060000Z")),
        ],
        ids=["plan", "intent", "manifest", "commit"],
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
            (run_document("mine", RUN, "plan"), PLAN, lambda ledger: ledger.plan(RUN)),
            (run_document("mine", RUN, "commit"), commit(), lambda ledger: ledger.commit(RUN)),
            (hour_document("mine", HOUR), proof(), lambda ledger: ledger.hour(HOUR)),
            (progress_document("mine"), Progress(archive="orders"), lambda ledger: ledger.progress()),
        ],
        ids=["plan", "commit", "hour", "progress"],
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

    def test_a_plan_where_a_commit_belongs_is_refused(self, ledger: Ledger, store: Store) -> None:
        store.put(run_document("orders", RUN, "commit"), PLAN.to_json())
        with pytest.raises(DocumentError, match=r"commit\.json is not a readable commit document"):
            ledger.commit(RUN)

    def test_a_damaged_plan_is_named_and_never_planned_again(self, ledger: Ledger, store: Store) -> None:
        store.put(run_document("orders", RUN, "plan"), PLAN.to_json()[:-40])
        with pytest.raises(DocumentError, match=f"{store.url}/_ledger/orders/runs/{RUN}/plan.json is not a readable"):
            ledger.create_plan(PLAN)

    def test_a_document_is_never_written_to_another_archive_s_ledger(self, store: Store) -> None:
        with pytest.raises(DocumentError, match="archive 'orders' does not belong in the ledger of 'mine'"):
            Ledger(store, "mine").create_plan(PLAN)
        assert list(store.list("")) == []


def test_an_interval_given_in_another_zone_is_the_same_run(ledger: Ledger) -> None:
    local = Interval.model_validate({"start": "2026-11-21T06:00:00+01:00", "end": "2026-11-21T07:00:00+01:00"})
    assert ledger.create_plan(plan(interval=local)) == PLAN == ledger.plan(RUN)
