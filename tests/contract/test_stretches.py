"""An archive whose first interval is three years old: empty hours cost nothing, and everybody knows their verdict."""

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kafka_archiver.context.archive_context import Context
from kafka_archiver.model.object_keys import hour_document, progress_document
from kafka_archiver.orchestration.dag_run.figures import figures
from kafka_archiver.state.coverage import ProofHeads, read_coverage, read_hour
from kafka_archiver.state.overview.incomplete import incomplete_hours
from kafka_archiver.state.status.step import last_hours
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_hour
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.repair import derive_documents
from tests.support.growth import Counted
from tests.support.lake import FIRST, Lake, hour

YEARS = 26_000
P0 = TopicPartition("orders", 0)
pytestmark = pytest.mark.timeout(120)


def begun(until: str = "settled", hours: int = YEARS) -> Lake:
    """An archive with records of the hours 0 and 700, whose first run is planned so many hours after its interval."""
    lake = Lake(Counted(MemoryStore(uuid.uuid4().hex)), {P0: Range(0, 2)})  # type: ignore[arg-type]
    lake.odd[P0, 1] = at(lake, 700)
    lake.now = hour(hours).start
    lake.run(0, until=until)
    return lake


def at(lake: Lake, number: int) -> dict[str, int]:
    """The fields of a record of an hour."""
    return {"timestamp": (lake.brokers.first + number) * 3_600_000}


def late(lake: Lake, number: int, until: str = "settled") -> str:
    """Archive one more record, of an earlier hour."""
    offset = lake.logs[P0].end
    lake.odd[P0, offset], lake.logs[P0] = at(lake, number), Range(0, offset + 1)
    return lake.run(YEARS + offset, until=until)


def test_three_years_cost_few_requests_and_less_than_a_fifth_of_a_millisecond_an_hour() -> None:
    lake = begun("committed")
    lake.store.counts.clear()  # type: ignore[attr-defined]
    began = time.process_time()
    closed = close_hours(lake.context, [hour(0).id])
    assert time.process_time() - began < YEARS * 0.0002
    assert sum(lake.store.counts.values()) < 30  # type: ignore[attr-defined]
    assert [h.proof.hour - lake.brokers.first for h in closed.changed if h.proof.hour] == [0, 700]
    [stretch] = closed.stretches
    assert stretch.size == YEARS - 2
    assert figures(lake.context, [hour(0).id], closed).hours_closed == YEARS
    assert close_hours(lake.context, [hour(0).id]) == closed, "the next attempt has the same events"


def test_whoever_asks_for_an_hour_of_a_stretch_has_its_verdict() -> None:
    lake = begun()
    for number in (1, 699, 701, YEARS - 1):
        assert (lake.proof(number).status, lake.proof(number).rows) == ("complete", 0)
        assert lake.store.get(hour_document(lake.name, lake.brokers.first + number)) is None
    assert lake.proof(700).rows == 1
    assert lake.ledger.hour(lake.brokers.first - 1) is None
    end = hour(YEARS).start
    assert {h.status for h in last_hours(lake.context, 100, end - timedelta(hours=1))} == {"complete"}
    cells = read_coverage(lake.context, (FIRST + timedelta(days=29)).date(), 30, ProofHeads()).counts
    assert cells == {"complete": 30 * 24}
    assert read_hour(lake.context, lake.brokers.first + 5).proof == lake.proof(5)
    report = lake.audit()
    assert (report.verdict, report.counts.hours) == ("clean", YEARS)


def test_a_late_record_has_a_proof_and_a_backfill_without_a_record_leaves_the_stretch_alone() -> None:
    lake = begun()
    stretches = lake.progress.stretches
    late(lake, 4000)
    assert (lake.proof(4000).late_rows, lake.proof(4001).rows) == (1, 0)
    lake.run(50, "backfill")
    assert lake.progress.stretches == stretches
    assert lake.audit().verdict == "clean"


def test_the_incomplete_hours_of_a_stretch_are_named_with_their_reason() -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(3, 5)})
    lake.now = hour(1000).start
    lake.run(0)
    assert lake.proof(500).status == "incomplete"
    assert "began at offset 3" in (lake.proof(500).reason or "")
    named = incomplete_hours(lake.ledger, lake.progress)
    assert len(named) == 72
    assert lake.audit().verdict == "clean"


@pytest.mark.parametrize("what", ["verdict", "moment", "end", "gone"])
def test_an_audit_finds_a_stretch_that_is_wrong_and_a_repair_computes_it_again(what: str) -> None:
    lake = begun()
    right = lake.progress
    [stretch] = right.stretches
    changes: dict[str, Any] = {
        "verdict": {"status": "incomplete"},
        "moment": {"complete_as_of": stretch.until},
        "end": {"until": stretch.until - timedelta(hours=1)},
    }
    wrong = [stretch.model_copy(update=changes[what])] if what in changes else []
    lake.store.put(progress_document(lake.name), right.model_copy(update={"stretches": tuple(wrong)}).to_json())
    assert [f.kind for f in lake.audit().damage] == ["progress-wrong"]
    derive_documents(lake.ledger)
    assert lake.progress == right
    assert lake.audit().verdict == "clean"


def test_a_proof_inside_a_stretch_that_is_deleted_is_missed_and_computed_again() -> None:
    lake = begun()
    late(lake, 4000)
    lake.store.delete(hour_document(lake.name, lake.brokers.first + 4000))
    assert [f.kind for f in lake.audit().damage] == ["proof-missing"]
    derive_documents(lake.ledger)
    assert (lake.proof(4000).late_rows, lake.audit().verdict) == (1, "clean")


class Paused:
    """A store that lets something happen before the first request of a kind."""

    def __init__(self, inner: Any, method: str, key: str, meanwhile: Callable[[], object]) -> None:
        self._inner, self._method, self._key, self._meanwhile = inner, method, key, meanwhile
        self.paused = False

    def __getattr__(self, name: str) -> Any:
        def ask(key: str, *more: Any, **named: Any) -> Any:
            if name == self._method and self._key in key and not self.paused:
                self.paused = True
                self._meanwhile()
            return getattr(self._inner, name)(key, *more, **named)

        return ask if callable(getattr(self._inner, name)) else getattr(self._inner, name)


def paused(lake: Lake, method: str, key: str, meanwhile: Callable[[], object]) -> tuple[Context, Paused]:
    store = Paused(lake.store, method, key, meanwhile)
    ledger = replace(lake.ledger, store=store)  # type: ignore[arg-type]
    return replace(lake.context, store=store, ledger=ledger), store  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "key"),
    [("version", "/hours/"), ("list", "/hours"), ("create", "/hours/"), ("create", "settled"), ("create", "progress")],
)
def test_a_close_hours_that_wakes_up_after_later_runs_changes_nothing(method: str, key: str) -> None:
    lake = begun("committed")

    def meanwhile() -> None:
        close_hours(lake.context, [hour(0).id])
        late(lake, 4000)
        late(lake, 4010)

    context, store = paused(lake, method, key, meanwhile)
    before: list[Any] = []
    store._meanwhile = lambda: (meanwhile(), before.append({s.key: s.etag for s in lake.store.list("")}))
    close_hours(context, [hour(0).id])
    assert store.paused
    assert {s.key: s.etag for s in lake.store.list("")} == before[0]
    assert lake.audit().verdict == "clean"


def test_who_asks_while_a_run_closes_a_stretch_never_reads_that_an_hour_with_records_has_none() -> None:
    lake = begun("committed")
    context, store = paused(lake, "version", "progress", lambda: close_hours(lake.context, [hour(0).id]))
    proof = context.ledger.hour(to_hour(hour(700).start))
    assert store.paused
    assert proof
    assert proof.rows == 1
