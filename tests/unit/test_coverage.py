"""The hours of some days: their states, and what they cost."""

import uuid
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.audit.inspection import audit, publish
from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.model.layouts.registry import hours_by_key
from kafka_archiver.model.object_keys import ObjectName, hour_document, object_key
from kafka_archiver.model.settings import Settings
from kafka_archiver.state.coverage import ProofHeads, read_coverage, read_hour
from kafka_archiver.state.coverage.cells import ProofHead, cells
from kafka_archiver.state.coverage.damage import read_damage
from kafka_archiver.state.coverage.read import HEAD
from kafka_archiver.state.overview.history import histories, last_plans
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import hour_start, to_hour
from kafka_archiver.values.ranges import Range
from tests.support.brokers import Brokers
from tests.support.counted import Counted
from tests.support.runs import DAY, P0, P1, run

pytestmark = pytest.mark.unit

FIRST = to_hour(DAY)
LAST = date(2026, 11, 20)


@pytest.fixture
def context() -> Context:
    """Runs of the hours 2 and 3 are settled, that of hour 4 is only planned."""
    archive = Archive.model_validate(
        {"archive": "orders", "source": {"topics": ["orders"]}, "store": {"url": "s3://b/p", "chunk_records": 2}}
    )
    store: Any = Counted(MemoryStore(uuid.uuid4().hex))
    brokers: Any = Brokers({P0: Range(0, 3), P1: Range(0, 3)}, first=FIRST)
    context = Context(archive, brokers, store, Ledger(store, "orders"))
    run(context, 2)
    brokers.logs.update({P0: Range(0, 4), P1: Range(0, 4)})
    run(context, 3)
    brokers.logs.update({P0: Range(0, 5)})
    run(context, 4, until="planned")
    return replace(context, clock=lambda: DAY + timedelta(hours=6))


def states(context: Context, heads: ProofHeads | None = None) -> dict[int, str]:
    coverage = read_coverage(context, LAST, 3, heads or ProofHeads())
    return {to_hour(cell.hour_start) - FIRST: cell.state for cell in coverage.hours if cell.state != "none"}


def test_each_hour_with_a_proof_has_its_verdict_and_the_hour_at_work_is_running(context: Context) -> None:
    by_hour = states(context)
    assert by_hour.pop(4) == "running"
    assert by_hour == {
        to_hour(proof.hour_start) - FIRST: proof.status
        for hour in range(FIRST, FIRST + 24)
        if (proof := context.ledger.hour(hour)) and proof.hour_start
    }
    assert by_hour[3] == "complete"


def test_a_run_that_nobody_works_on_is_unfinished(context: Context) -> None:
    cell = read_coverage(context, LAST, 1, ProofHeads(), at_work=False).hours[4]
    assert cell.state == "unfinished"


def test_what_an_audit_found_is_shown_in_its_hours(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    # The store of these runs has no objects: all are missing.
    manifest = context.ledger.manifest(context.ledger.hour(FIRST + 3).runs[0].run)  # type: ignore[union-attr]
    assert manifest is not None
    gone = {o.key for o in manifest.objects if FIRST + 3 in o.hours}
    context.store.delete(hour_document("orders", FIRST + 2))
    publish(context.store, audit(context.archive, context.store, context.clock()))
    cells = {to_hour(c.hour_start) - FIRST: c for c in read_coverage(context, LAST, 1, ProofHeads()).hours}
    assert (cells[3].state, cells[3].damaged) == ("damaged", len(gone))
    assert cells[5].state == "none"
    hour = read_hour(context, FIRST + 3)
    assert {(finding.key, finding.kind, finding.run) for finding in hour.damaged} == {
        (k, "object-missing", manifest.run) for k in gone
    }
    assert "proof-missing" in {finding.kind for finding in read_hour(context, FIRST + 2).damaged}
    # Without the manifests, by the keys. These name no hour, which is said.
    monkeypatch.setattr("kafka_archiver.state.coverage.damage.RUNS", 0)
    assert (set(read_damage(context).hours), read_damage(context).cut) == ({FIRST + 2}, True)
    key = object_key(ObjectName("orders", 0, 0), "date=2026-11-20/hour=03", ".avro")
    for zone, hours in (("", (FIRST + 3,)), ("Asia/Tokyo", ())):
        settings = Settings(layout_options={"timezone": zone} if zone else {})
        assert hours_by_key(settings, key) == hours
        assert hours_by_key(settings, f"_dead_letter/{key}") == (FIRST + 3,), "always UTC"


def test_the_figures_are_those_of_the_proof(context: Context) -> None:
    for cell in read_coverage(context, LAST, 1, ProofHeads()).hours:
        proof = context.ledger.hour(to_hour(cell.hour_start))
        if proof:
            figures = (cell.rows, cell.bytes, cell.objects, cell.late_rows, cell.complete_as_of)
            assert figures == (proof.rows, proof.bytes, proof.objects, proof.late_rows, proof.complete_as_of)


def test_the_days_are_whole_and_in_order(context: Context) -> None:
    coverage = read_coverage(context, LAST, 3, ProofHeads())
    assert [day for day, _ in coverage.days] == [date(2026, 11, 18), date(2026, 11, 19), date(2026, 11, 20)]
    assert all(len(hours) == 24 for _, hours in coverage.days)
    assert sum(coverage.counts.values()) == 72


def test_days_of_which_nothing_is_known_are_left_out_but_for_a_week(context: Context) -> None:
    assert next(day for day, _ in read_coverage(context, LAST, 28, ProofHeads()).known_days) == LAST - timedelta(days=6)
    later = LAST + timedelta(days=20)
    known = [day for day, _ in read_coverage(context, later, 28, ProofHeads()).known_days]
    assert (known[0], known[-1]) == (LAST, later)
    assert len(read_coverage(context, LAST - timedelta(days=9), 28, ProofHeads()).known_days) == 7


def test_hours_with_dead_letters_show_them(context: Context) -> None:
    key = object_key(ObjectName("orders", 0, 0), "date=2026-11-20/hour=03", ".avro", dead_letter=True)
    context.store.put(key, b"a letter")
    context.store.put(
        object_key(ObjectName("orders", 0, 2), "of another layout", ".avro", dead_letter=True), b"a letter"
    )
    coverage = read_coverage(context, LAST, 1, ProofHeads())
    assert (coverage.hours[3].state, coverage.hours[3].dead_letters) == ("letters", 1)
    assert not coverage.cut


def test_more_dead_letters_than_are_looked_at_are_said_to_be(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_archiver.state.coverage.read.LETTERS", 1)
    for start in (0, 2):
        key = object_key(ObjectName("orders", 0, start), "date=2026-11-20/hour=03", ".avro", dead_letter=True)
        context.store.put(key, b"a letter")
    coverage = read_coverage(context, LAST, 1, ProofHeads())
    assert coverage.cut
    assert coverage.hours[3].dead_letters == 1


def test_a_month_costs_one_listing_and_an_unchanged_proof_nothing(context: Context) -> None:
    store: Any = context.store
    heads = ProofHeads()

    def cost(last: date, days: int) -> dict[str, int]:
        store.asked.clear()
        read_coverage(context, last, days, heads)
        asked = [request.split()[0] for request in store.asked if "/hours/" in request]
        return {kind: asked.count(kind) for kind in sorted(set(asked))}

    proofs = len(context.ledger.hours())
    assert cost(LAST, 20) == {"list": 1, "read": proofs}
    assert cost(LAST, 20) == {"list": 1}
    # Two months.
    assert cost(LAST, 28) == {"list": 2}
    before = context.store.get(hour_document("orders", FIRST + 3)) or b""
    context.store.put(hour_document("orders", FIRST + 3), before + b"\n")
    assert cost(LAST, 20) == {"list": 1, "read": 1}


def test_only_the_beginning_of_a_long_proof_is_read(context: Context) -> None:
    proof = context.ledger.hour(FIRST + 3)
    assert proof is not None
    long = proof.model_copy(update={"runs": proof.runs * 400})
    assert len(long.to_json()) > 20 * HEAD
    context.store.put(hour_document("orders", FIRST + 3), long.to_json())
    assert read_coverage(context, LAST, 1, ProofHeads()).hours[3].rows == proof.rows


def test_a_damaged_proof_is_an_error_that_names_it(context: Context) -> None:
    context.store.put(hour_document("orders", FIRST + 3), b"{}")
    with pytest.raises(DocumentError, match=r"_ledger/orders/hours/2026-11-20/03.json is not a readable proof"):
        read_coverage(context, LAST, 1, ProofHeads())


def test_old_heads_make_room(context: Context) -> None:
    heads = ProofHeads(most=1)
    read_coverage(context, LAST, 1, heads)
    assert len(heads._kept) == 1


HEADS = st.builds(
    ProofHead,
    status=st.sampled_from(["open", "complete", "incomplete"]),
    late_rows=st.integers(0, 2),
    lost_rows=st.integers(0, 2),
)


@given(HEADS, st.integers(0, 2), st.booleans(), st.booleans())
def test_the_worst_of_an_hour_is_never_hidden(head: ProofHead, letters: int, running: bool, unsure: bool) -> None:
    spans = [range(FIRST, FIRST + 1)] if running else []
    [damaged] = cells([FIRST], {FIRST: head}, {FIRST: letters}, spans, None, {FIRST: 1})
    assert damaged.state == "damaged"
    until = hour_start(FIRST + 1) if unsure else None
    [cell] = cells([FIRST], {FIRST: head}, {FIRST: letters}, spans, until)
    assert (cell.state == "lost") == (head.lost_rows > 0 or (head.status == "incomplete" and unsure))
    if head.status != "complete":
        assert cell.state in ("lost", "incomplete", "open", "running")
    if cell.state == "complete":
        assert not letters
        assert not head.late_rows
    if head.status == "open" and not head.lost_rows:
        assert cell.state == ("running" if running else "open")


def test_an_hour_in_full_has_its_objects_runs_and_offsets(context: Context) -> None:
    detail = read_hour(context, FIRST + 3)
    assert detail.proof == context.ledger.hour(FIRST + 3)
    assert detail.proof is not None
    assert sum(item.rows for item in detail.partitions) == detail.proof.rows
    assert sum(o.rows for o in detail.objects) == detail.proof.rows
    assert [item.run for item in detail.runs] == [added.run for added in detail.proof.runs][::-1]
    for item in detail.runs:
        manifest = context.ledger.manifest(item.run)
        assert manifest is not None
        assert item.account == dict(manifest.account)
    assert (detail.more_runs, detail.more_objects) == (0, 0)


def test_of_an_object_with_several_hours_only_the_rows_of_this_hour_count(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layout `daily` makes such objects."""
    read = Ledger.manifest

    def daily(ledger: Ledger, name: str) -> Any:
        document = read(ledger, name)
        if document is None:
            return None
        hours = {"rows": 10, "rows_by_hour": ((FIRST + 3, 4), (FIRST + 4, 6)), "path": "date=2026-11-20"}
        return document.model_copy(update={"objects": tuple(o.model_copy(update=hours) for o in document.objects[:1])})

    monkeypatch.setattr(Ledger, "manifest", daily)
    hour_detail = read_hour(context, FIRST + 3)
    assert [part.rows for part in hour_detail.partitions] == [4]
    assert sum(o.rows_in(hour_detail.hour) for o in hour_detail.objects) == 4


def test_an_hour_that_nobody_has_looked_at_has_no_proof(context: Context) -> None:
    assert read_hour(context, FIRST + 20).proof is None


def test_the_history_of_a_partition_has_what_each_run_took_and_left(context: Context) -> None:
    plans = last_plans(context.ledger, 3, 24)
    assert [plan.number for plan in plans] == [1, 2, 3]
    assert [plan.number for plan in last_plans(context.ledger, 3, 2)] == [2, 3]
    first, second = histories(plans)
    assert (first.topic, first.partition, second.partition) == ("orders", 0, 1)
    assert [(point.taken, point.left) for point in first.points] == [(3, 0), (1, 0), (1, 0)]
    assert first.rate == pytest.approx(2 / 7200)
    assert histories(plans[:1])[0].rate is None
    assert histories([]) == []
