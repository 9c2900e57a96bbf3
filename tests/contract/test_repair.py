"""Repairs on any store: never more than there is to do."""

import contextlib
import json
import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kafka_archiver.audit.inspection import publish
from kafka_archiver.audit.report import Mended, Report
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, DocumentError, IntegrityError, PermanentError
from kafka_archiver.model.object_keys import (
    audit_document,
    hour_document,
    line_document,
    progress_document,
    run_document,
)
from kafka_archiver.model.plan import Plan
from kafka_archiver.orchestration.dag_run.figures import figures
from kafka_archiver.orchestration.dag_run.note import succeeded
from kafka_archiver.state.status.damage import of_audit
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.clean_up import clean_up
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.rebuild import rebuild_run
from kafka_archiver.work.repair import (
    Repairs,
    derive_documents,
    find_repairs,
    recheck_objects,
    record_lost,
    restore_document,
    write_again,
)
from kafka_archiver.work.verify import verify
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)


def lake_of_six(**options: Any) -> Lake:
    """Six records in as many hours, in objects of one run."""
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 6)}, **options)
    lake.run(2)
    return lake


def status(lake: Lake, filed: int) -> tuple[str, str | None, int]:
    proof = lake.ledger.hour(filed)
    assert proof is not None
    return proof.status, proof.reason, proof.lost_rows


class Stopped:
    """A store that takes so many writes, and no more."""

    def __init__(self, inner: MemoryStore, writes: int) -> None:
        self._inner, self._left, self.writes, self.bytes = inner, writes, 0, 0

    def __getattr__(self, name: str) -> Any:
        answer = getattr(self._inner, name)
        if name not in ("put", "create", "replace", "delete"):
            return answer

        def write(*arguments: Any) -> Any:
            if self.writes == self._left:
                raise InterruptedError
            self.writes += 1
            self.bytes += sum(len(data) for data in arguments[1:2])
            return answer(*arguments)

        return write


@pytest.mark.parametrize("checksums", [True, False], ids=["the store knows checksums", "the store knows none"])
def test_what_was_copied_with_its_bytes_is_neither_written_again_nor_given_up(checksums: bool) -> None:
    """Under SSE-KMS a copy of the bucket has another ETag for every object; Kafka has long removed the records."""
    store = MemoryStore(uuid.uuid4().hex, foreign_etags=True, checksums=checksums)
    lake = Lake(store, {P0: Range(0, 6)})
    lake.run(2)
    kept, changed, *_ = lake.stored()
    for key in lake.stored():
        data = store.get(key) or b""
        store.put(key, data if key != changed else data[:-1] + b"?")
    lake.logs[P0] = Range(6, 6)
    report = lake.audit()
    assert {kept, changed} & {f.subject for f in report.damage} == {changed}
    damage = find_repairs(lake.context, report)
    assert [entry.key for entries in damage.lost.values() for entry in entries] == [changed]
    assert not damage.to_rewrite


def test_an_hour_whose_lost_records_a_rebuild_has_read_again_is_judged_like_any_other() -> None:
    lake = lake_of_six()
    key = lake.stored()[0]
    lake.store.delete(key)
    record_lost(lake.context, hour(2).id, [key])
    filed = lake.brokers.first
    assert status(lake, filed) == ("incomplete", "objects with 1 rows are gone for good", 1)
    lake.rebuild(hour(2).id)
    assert status(lake, filed) == ("complete", None, 0)
    assert lake.audit(deep=True).findings == ()


def test_a_run_that_an_hour_names_twice_is_found_and_computed_again() -> None:
    lake = lake_of_six()
    key = hour_document(lake.name, lake.brokers.first)
    proof = json.loads(lake.store.get(key) or b"")
    lake.store.put(key, json.dumps({**proof, "runs": proof["runs"] * 2}).encode())
    damage = find_repairs(lake.context, lake.audit())
    assert damage.to_derive == (key,)
    assert derive_documents(lake.ledger) == [key]
    assert lake.audit().findings == ()


def test_a_proof_with_pages_is_whole_wherever_its_computing_again_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild has replaced what is in a page: computed again, the pages have other runs."""
    monkeypatch.setattr("kafka_archiver.model.proof.PAGE", 1)
    for stop in range(20):
        lake = lake_of_six(odd={(P0, offset): {"timestamp": to_ms(hour(0).start)} for offset in range(12)})
        for number in range(3, 6):
            lake.logs[P0] = Range(0, 2 * number)
            lake.run(number)
        lake.rebuild(hour(2).id)
        filed = lake.brokers.first
        proof = lake.ledger.hour(filed)
        assert proof is not None
        assert len(proof.pages) > 1
        lake.store.delete(hour_document(lake.name, filed, 1))
        stopped = Stopped(lake.store, stop)  # type: ignore[arg-type]
        with contextlib.suppress(InterruptedError):
            derive_documents(Ledger(stopped, lake.name))  # type: ignore[arg-type]
        if stop:
            assert lake.audit().findings == ()
        # Whatever a repair has left of pages, the next runs go on with it.
        derive_documents(lake.ledger)
        lake.logs[P0] = Range(0, 12)
        lake.run(6)
        assert lake.audit().findings == ()
        if stopped.writes < stop:
            break
    assert 2 < stop < 19


@pytest.fixture
def paged_lake(monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Three runs of one hour, the first of them in a page of its proof."""
    monkeypatch.setattr("kafka_archiver.model.proof.PAGE", 1)
    lake = lake_of_six(odd={(P0, offset): {"timestamp": to_ms(hour(0).start)} for offset in range(60)})
    for number in range(3, 5):
        lake.logs[P0] = Range(0, 2 * number + 2)
        lake.run(number)
    return lake


def test_a_proof_with_pages_that_is_gone_is_missed_and_computed_again(paged_lake: Lake) -> None:
    key = hour_document(paged_lake.name, paged_lake.brokers.first)
    paged_lake.store.delete(key)
    assert [(f.kind, f.subject) for f in paged_lake.audit().damage] == [("proof-missing", key)]
    assert repaired(paged_lake).to_derive == (key,)
    assert paged_lake.audit().findings == ()


def test_a_page_that_is_gone_stops_each_run_that_needs_it_with_what_mends_it(paged_lake: Lake) -> None:
    paged_lake.store.delete(hour_document(paged_lake.name, paged_lake.brokers.first, 0))
    message = rf"00\+000000.json is gone. `airflow archive repair {paged_lake.name}` computes it again"
    with pytest.raises(IntegrityError, match=message):
        paged_lake.rebuild(hour(2).id)
    assert repaired(paged_lake).to_derive
    paged_lake.logs[P0] = Range(0, 11)
    paged_lake.run(6)
    assert paged_lake.audit(deep=True).findings == ()


def test_what_computing_a_proof_with_pages_again_writes_grows_as_the_proof_does(paged_lake: Lake) -> None:
    for number in range(5, 24):
        paged_lake.logs[P0] = Range(0, 2 * number + 2)
        paged_lake.run(number)
    folder = f"_ledger/{paged_lake.name}/hours/2026-11-20/00"
    stats = list(paged_lake.store.list(folder))
    assert len(stats) > 20
    paged_lake.store.delete(hour_document(paged_lake.name, paged_lake.brokers.first))
    counted = Stopped(paged_lake.store, 1000)  # type: ignore[arg-type]
    derive_documents(Ledger(counted, paged_lake.name))  # type: ignore[arg-type]
    # Once whole, once in pages.
    assert counted.bytes < 2.5 * sum(stat.size for stat in stats)
    assert paged_lake.audit(deep=True).findings == ()


def of_one_run(lake: Lake) -> tuple[str, list[str]]:
    """The key of its manifest, and its objects in the order of its chunks."""
    return run_document(lake.name, hour(2).id, "manifest"), lake.stored()


def edit(lake: Lake, key: str, **fields: Any) -> bytes:
    """Change a document by hand. Returns what it was."""
    before = lake.store.get(key) or b""
    lake.store.put(key, json.dumps({**json.loads(before), **fields}).encode())
    return before


def repaired(lake: Lake, *given_up: str) -> Repairs:
    """Repair as the command does; its DAG runs happen here."""
    damage = find_repairs(lake.context, lake.audit(), given_up)
    for key in damage.to_restore:
        restore_document(lake.ledger, key)
    if damage.to_derive:
        derive_documents(lake.ledger)
    for run, entries in damage.lost.items():
        record_lost(lake.context, run, [entry.key for entry in entries])
    for run in damage.to_replan:
        lake.finish(rebuild_run(lake.context, run))
    if damage.to_rewrite:
        lake.finish(write_again(lake.context, list(damage.to_rewrite)))
    return damage


def bytes_of(lake: Lake) -> dict[str, bytes | None]:
    """Everything that is stored."""
    return {stat.key: lake.store.get(stat.key) for stat in lake.store.list("")}


def test_what_kafka_has_is_written_again_and_what_it_does_not_have_is_lost_by_name() -> None:
    lake, run = lake_of_six(), hour(2).id
    objects = {key: lake.store.get(key) for key in lake.stored()}
    gone, *_, damaged = objects
    lake.store.delete(gone)
    lake.store.put(damaged, b"somebody's")
    lake.logs[P0] = Range(2, 6)
    before = bytes_of(lake)
    find_repairs(lake.context, lake.audit())
    assert bytes_of(lake) == before, "to look changes nothing"
    damage = repaired(lake)
    assert ([e.key for e in damage.lost[run]], [e.key for e in damage.to_rewrite[run]]) == ([gone], [damaged])
    del objects[gone]
    assert {key: lake.store.get(key) for key in lake.stored()} == objects
    manifest = lake.manifest(f"{run}+r1")
    assert {fate: count for fate, count in manifest.account.items() if count} == {"archived": 5, "lost": 1}
    assert [entry.key for entry in manifest.lost_objects] == [gone]
    assert not repaired(lake), "once is enough"
    # The archive goes on, and says for ever what it lacks.
    lake.logs[P0] = Range(2, 7)
    lake.run(6)
    report = lake.audit(deep=True)
    assert [(f.kind, f.severity) for f in report.findings] == [("lost", "warning")]
    assert lake.progress.lost == report.counts.lost == 1


def wrong(lake: Lake) -> list[str]:
    """The objects that the published report calls wrong."""
    report = Report.from_json(lake.store.get(audit_document(lake.name)) or b"", "audit.json")
    assert report.verdict == ("damaged" if report.damage else "clean")
    return sorted(finding.subject for finding in report.damage)


def test_what_a_repair_has_written_and_read_again_leaves_the_report_and_nothing_else_does() -> None:
    lake, run = lake_of_six(), hour(2).id
    assert recheck_objects(lake.context, [run]) is None
    gone, changed, *_ = lake.stored()
    lake.logs[P0] = Range(0, 8)
    lake.run(6)
    other = next(key for key in lake.stored() if key.endswith("00000006.jsonl.gz"))
    data, other_report = (lake.store.get(key) or b"" for key in (changed, other))
    for key in gone, other:
        lake.store.delete(key)
    lake.store.put(changed, data[:-1] + b"?")
    publish(lake.store, before := lake.audit())
    assert wrong(lake) == sorted([gone, changed, other])
    # A run that has written nothing takes nothing out.
    assert recheck_objects(lake.context, [run]) == (before, 0)
    work = write_again(lake.context, [run])
    lake.finish(work)
    # Since the repair, one of them is wrong again: only its end. The other run's object is not looked at.
    lake.store.put(changed, data + b"!")
    lake.store.put(other, other_report)
    looked = recheck_objects(lake.context, work.runs)
    assert looked is not None
    after, mended = looked
    done = figures(lake.context, work.runs, close_hours(lake.context, work.runs), final=work.final, mended=mended)
    assert done.final == (run,)
    assert succeeded(done) == "0 records, 1 object repaired; hours are closed until 2026-11-20 07:00 UTC"
    assert wrong(lake) == sorted(f.subject for f in after.damage) == sorted([changed, other])
    assert after.mended == Mended(at=lake.now, objects=1)
    assert (after.audited_at, after.counts) == (before.audited_at, before.counts)
    assert "1 object repaired since" in next(of_audit(lake.ledger, 1)).observed
    lake.store.put(changed, data)
    recheck_objects(lake.context, work.runs)
    assert wrong(lake) == [other]


def test_bytes_that_only_reading_shows_to_be_wrong_stay_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, run = lake_of_six(), hour(2).id
    key, read = lake.stored()[0], MemoryStore.read
    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "read", lambda *of: b"?" + (read(*of) or b"")[1:] if of[1] == key else read(*of))
        publish(lake.store, lake.audit(deep=True))
        assert wrong(lake) == [key]
        recheck_objects(lake.context, [run])
        assert wrong(lake) == [key]
    recheck_objects(lake.context, [run])
    assert wrong(lake) == []


def test_what_a_rebuild_has_replaced_leaves_the_report_once_it_is_gone() -> None:
    lake, run = lake_of_six(), hour(2).id
    gone, changed, *_ = lake.stored()
    lake.store.delete(gone)
    lake.store.put(changed, b"somebody's")
    publish(lake.store, lake.audit())
    rebuilt = lake.rebuild(run)
    lake.store.put(changed, b"somebody's")
    recheck_objects(lake.context, [rebuilt])
    assert wrong(lake) == [changed]
    lake.store.delete(changed)
    recheck_objects(lake.context, [rebuilt])
    assert wrong(lake) == []


def test_a_report_of_a_later_audit_is_not_replaced_by_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit ends while a repair looks again."""
    lake, run = lake_of_six(), hour(2).id
    gone, *_, other = lake.stored()
    lake.store.delete(gone)
    publish(lake.store, lake.audit())
    lake.finish(write_again(lake.context, [run]))
    replace = MemoryStore.replace

    def audited_meanwhile(store: MemoryStore, *arguments: Any) -> bool:
        monkeypatch.undo()
        lake.store.delete(other)
        publish(lake.store, lake.audit())
        return replace(store, *arguments)

    monkeypatch.setattr(MemoryStore, "replace", audited_meanwhile)
    recheck_objects(lake.context, [run])
    assert wrong(lake) == [other]


@pytest.mark.parametrize(
    ("settings", "message"), [({"format": "papyrus"}, "papyrus"), ({"encoding": 1}, "planned for encoding 1")]
)
def test_a_run_in_a_format_or_encoding_that_this_release_does_not_write_is_planned_anew(
    settings: dict[str, Any], message: str
) -> None:
    lake = lake_of_six()
    lake.logs[P0] = Range(0, 7)
    run = lake.run(6, until="planned")
    plan = lake.planned(run)
    other = plan.model_copy(update={"settings": plan.settings.model_copy(update=settings)})
    for key in line_document(lake.name, plan.number), run_document(lake.name, run, "plan"):
        lake.store.put(key, other.to_json())
    with pytest.raises((PermanentError, ConfigError), match=message) as stopped:
        lake.run(7)
    assert f"`airflow archive rebuild {lake.name} --run {run}`" in str(stopped.value)
    damage = repaired(lake)
    assert list(damage.to_replan) == [run]
    assert message in damage.to_replan[run]
    lake.run(7)
    assert lake.audit(deep=True).findings == ()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lake: lake.brokers.ids.update(orders="another"), "topic orders was deleted since, perhaps made again"),
        (lambda lake: lake.logs.update({P0: Range(0, 1)}), r"offsets up to 5, the log of orders\[0\] now ends at 1"),
    ],
)
def test_why_the_records_of_an_object_are_lost(change: Callable[[Lake], None], why: str) -> None:
    lake = lake_of_six()
    *_, key = lake.stored()
    lake.store.delete(key)
    change(lake)
    damage = find_repairs(lake.context, lake.audit())
    assert damage.why_lost.keys() == {key}
    assert re.search(why, damage.why_lost[key])


def test_a_run_that_said_what_it_wrote_and_lost_it_before_it_was_final_ends_with_the_loss_on_record() -> None:
    lake = lake_of_six()
    before = lake.stored()
    lake.logs[P0] = Range(0, 10)
    # Two records of one object.
    lake.odd[P0, 7] = {"timestamp": to_ms(hour(6).start)}
    run = lake.run(9, until="written")
    gone, *kept = (key for key in lake.stored() if key not in before)
    lake.store.delete(gone)
    lake.logs[P0] = Range(7, 10)
    with pytest.raises(IntegrityError, match="is not what its manifest says"):
        verify(lake.context, [run])
    with pytest.raises(IntegrityError, match=r"give other bytes now \(Kafka has removed records since") as failure:
        lake.run(10)
    assert f"`airflow archive repair {lake.name} --lost {gone}`" in str(failure.value)
    assert [entry.key for entry in repaired(lake).lost[run]] == [gone]
    lake.run(10)
    assert lake.stored() == sorted([*before, *kept])
    report, end = lake.audit(deep=True), lake.commit(run)
    assert (report.verdict, report.counts.lost) == ("clean", 2)
    assert (end.outcome, end.by) == ("replaced", f"{run}+r1")
    # Whoever is still at work on it is harmless.
    commit(lake.context, [run])
    assert lake.commit(run) == end


def test_what_is_read_again_with_other_bytes_is_given_up_by_name_alone() -> None:
    lake = lake_of_six()
    first, second, *_ = before = lake.stored()
    lake.store.delete(first)
    # Its offset is in the log; the record is not.
    lake.absent.add((P0, 0))
    with pytest.raises(IntegrityError, match="Kafka does not have its records any more") as failure:
        repaired(lake)
    assert f"`airflow archive repair {lake.name} --lost {first}`" in str(failure.value)
    with pytest.raises(ConfigError, match="is neither missing nor damaged"):
        repaired(lake, second)
    assert [entry.key for entry in repaired(lake, first).lost[hour(2).id]] == [first]
    assert lake.stored() == before[1:]
    assert lake.audit(deep=True).verdict == "clean"


@pytest.mark.parametrize("intent", [True, False], ids=["which the intent gives", "which nothing gives"])
def test_by_a_manifest_that_was_damaged_nothing_is_lost_and_nothing_removed(intent: bool) -> None:
    lake = lake_of_six()
    manifest, (gone, *others_of_run) = of_one_run(lake)
    entries = json.loads(lake.store.get(manifest) or b"")["objects"]
    good = edit(lake, manifest, objects=[entry for entry in entries if entry["key"] != others_of_run[-1]])
    if not intent:
        edit(lake, run_document(lake.name, hour(2).id, "intent"), done=False)
    lake.store.delete(gone)
    lake.logs[P0] = Range(6, 6)
    assert clean_up(lake.ledger, lake.now + timedelta(days=9)) == []
    with pytest.raises(IntegrityError, match=r"is not the one that was committed \(\w+\)\. `airflow archive repair "):
        record_lost(lake.context, hour(2).id, [gone])
    damage = repaired(lake)
    assert (damage.to_rewrite, damage.lost, damage.to_restore) == ({}, {}, (manifest,) * intent)
    assert gone in {f.subject for f in damage.unrepairable}
    assert lake.stored() == others_of_run
    lake.store.put(manifest, good)
    assert list(repaired(lake).lost) == [hour(2).id]
    assert lake.stored() == others_of_run
    assert lake.audit(deep=True).damage == ()


@pytest.mark.parametrize("how", ["gone", "changed", "garbage"])
@pytest.mark.parametrize("foreign", [False, True], ids=["MD5s", "foreign ETags"])
def test_a_manifest_is_restored_from_the_intent_and_that_of_a_repair_from_what_it_repairs(
    how: str, foreign: bool
) -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex, foreign_etags=foreign), {P0: Range(0, 6)})
    lake.run(2, until="committed")
    plain = run_document(lake.name, hour(2).id, "manifest")
    for key in plain, run_document(lake.name, f"{hour(2).id}+r1", "manifest"):
        before = lake.store.get(key) or b""
        if how == "gone":
            lake.store.delete(key)
        elif how == "changed":
            edit(lake, key, rows=7)
        else:
            lake.store.put(key, b"{")
        damage = repaired(lake)
        assert damage.to_restore == (key,)
        assert lake.store.get(key) == before
        assert find_repairs(lake.context, lake.audit()).unrepairable == ()
        close_hours(lake.context, [hour(2).id])
        if key == plain:
            record_lost(lake.context, hour(2).id, lost_keys := lake.stored()[:2], lost_keys)
    assert lake.audit(deep=True).damage == ()


@pytest.mark.parametrize("intent", [True, False])
def test_a_manifest_that_is_gone_stops_each_run_with_what_can_be_done(intent: bool) -> None:
    lake = lake_of_six()
    lake.logs[P0] = Range(0, 7)
    lake.run(6, until="committed")
    lake.store.delete(run_document(lake.name, hour(6).id, "manifest"))
    if not intent:
        lake.store.delete(run_document(lake.name, hour(6).id, "intent"))
    with pytest.raises(IntegrityError, match=r"is gone \(\w+\)\. `airflow archive repair .* else restore it "):
        lake.run(7)
    damage = repaired(lake)
    assert [f.kind for f in damage.unrepairable] == ([] if intent else ["manifest-missing"])
    if intent:
        lake.run(7)
        assert lake.audit(deep=True).damage == ()


@pytest.mark.parametrize("how", ["gone", "garbage"])
@pytest.mark.parametrize("name", ["commit", "plan", "manifest"])
def test_what_a_rebuild_has_replaced_is_not_lost_for_a_document_of_the_rebuild(name: str, how: str) -> None:
    lake = lake_of_six()
    key = run_document(lake.name, lake.rebuild(hour(2).id), name)
    before, objects = lake.store.get(key) or b"", lake.stored()
    lake.logs[P0] = Range(6, 6)
    if how == "gone":
        lake.store.delete(key)
    else:
        lake.store.put(key, b"{")
    # Of a plan alone nothing else looks wrong.
    wrong = {f.subject for f in lake.audit().damage}
    assert wrong == {key} or name == "commit"
    damage = repaired(lake)
    assert (damage.to_rewrite, damage.lost) == ({}, {})
    assert damage.to_restore == (() if name == "commit" else (key,))
    # Of a commit nobody else has the time: it is restored from a version.
    lake.store.put(key, before)
    assert lake.stored() == objects
    assert lake.audit(deep=True).findings == ()


@pytest.mark.parametrize("until", ["planned", "committed", "settled"])
@pytest.mark.parametrize("how", ["gone", "changed", "garbage"])
@pytest.mark.parametrize("which", ["line", "plan"])
def test_a_plan_is_restored_from_the_line_and_a_place_of_the_line_from_the_plan(
    which: str, how: str, until: str
) -> None:
    lake = lake_of_six()
    lake.logs[P0] = Range(0, 7)
    lake.run(6, until=until)
    key = line_document(lake.name, 2) if which == "line" else run_document(lake.name, hour(6).id, "plan")
    before = lake.store.get(key) or b""
    if how == "gone":
        lake.store.delete(key)
    elif how == "garbage":
        lake.store.put(key, b"{}")
    else:
        lake.store.put(key, Plan.from_json(before, key).model_copy(update={"group": "another"}).to_json())
    # A copy that is gone is written by whoever goes on; of two plans, neither committed, that of the line counts.
    missing = () if (which, how, until) == ("plan", "gone", "planned") else (key,)
    if (which, how, until) == ("line", "changed", "planned"):
        missing = (run_document(lake.name, hour(6).id, "plan"),)
    assert repaired(lake).to_restore == missing
    if missing == (key,):
        assert lake.store.get(key) == before
    assert find_repairs(lake.context, lake.audit()).unrepairable == ()
    lake.run(7)
    assert lake.audit(deep=True).damage == ()


def test_a_progress_beyond_the_end_of_the_line_is_computed_again() -> None:
    lake = lake_of_six()
    before = edit(lake, progress_document(lake.name), settled=9)
    damage = repaired(lake)
    assert (damage.to_derive, damage.unrepairable) == ((progress_document(lake.name),), ())
    assert lake.store.get(progress_document(lake.name)) == before
    assert lake.audit().findings == ()


def as_of_1_0(progress: bytes) -> bytes:
    """The progress without the digest of its content, as 1.0.0 wrote it."""
    return re.sub(rb',\s*"content_digest": "\w{64}"', b"", progress)


@pytest.mark.parametrize(
    "change", [(b'"next": 6', b'"next": 7'), (b'"next": 6', b'"next": 5'), (b"id-of-orders", b"id-of-others")]
)
def test_a_progress_that_was_changed_makes_no_plan_and_is_computed_again(change: tuple[bytes, bytes]) -> None:
    """By its `next`, a run would leave out an offset, and close the hour as complete."""
    lake = lake_of_six(policies={"recreated_topic": "new_generation"})
    key = progress_document(lake.name)
    before = lake.store.get(key) or b""
    assert change[0] in before
    lake.store.put(key, as_of_1_0(before).replace(*change))
    lake.logs[P0] = Range(0, 8)
    for origin in ("scheduled", "backfill"):
        with pytest.raises(
            IntegrityError, match=r"the progress .* was changed: by run \w+, .* starts at 6 in generation 0"
        ):
            lake.run(7, origin)
    assert repaired(lake).to_derive == (key,)
    assert lake.store.get(key) == before
    lake.run(7)
    assert lake.manifest(hour(7).id).account["archived"] == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p["partitions"][0].update(covered=[[2, 11]]), r"orders\[0\] ended at 10 when .* up to 11"),
        (lambda p: p["partitions"][0].update(earlier=[[10, 11]]), "found offsets up to 11"),
        (lambda p: p["partitions"][0].update(covered=[[2, 9]]), r"run 20261120T\w+ has offset 9 of orders\[0\],"),
        (lambda p: p["partitions"][0].update(covered=[[2, 6], [8, 10]]), "run .* has offsets 6–7"),
        (lambda p: p.update(as_of="2099-01-01T00:00:00Z"), "by `as_of`, hours up to 2099-01-01"),
        (lambda p: p.update(as_of="2026-11-20T05:00:00Z"), "and the last plan is of 2026-11-20 04:05:00"),
        (lambda p: p["partitions"].append(p["partitions"][0]), "a partition is listed twice"),
        (lambda p: p.update(marks=[{"number": 2, "as_of": p["as_of"], "high": [["orders", 0, 0, 12]]}]), "by `marks`"),
        (lambda p: p.update(unsure=None), "by `unsure_by`, hours before 2026-11-20 05:00"),
        (lambda p: p["unsure"].update(until="2026-11-20T02:00:00Z"), "by `unsure` those before 2026-11-20 02:00"),
        (lambda p: p["unsure_by"].pop(0), "hours before 2026-11-20 04:00"),
        (lambda p: p.update(unsure=None, unsure_by=[]), r"the log of orders\[0\] began at 2"),
    ],
    ids=["end", "earlier", "planned", "lost", "as_of", "hour", "twice", "marks", "unsure", "until", "cause", "begun"],
)
def test_a_progress_that_contradicts_the_last_plan_or_itself_makes_no_plan(
    change: Callable[[dict[str, Any]], None], message: str
) -> None:
    """A run would leave out what no run has, or a backfill take again what one has; or hours would be complete that are
    not.
    """
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(2, 6)}, policies={"lost_offsets": "record_loss"})
    lake.run(2)
    lake.logs[P0] = Range(8, 10)
    lake.run(3)
    key = progress_document(lake.name)
    before = lake.store.get(key) or b""
    document = json.loads(as_of_1_0(before))
    change(document)
    lake.store.put(key, json.dumps(document).encode())
    lake.logs[P0] = Range(8, 12)
    for origin in ("scheduled", "backfill"):
        with pytest.raises(IntegrityError, match=message):
            lake.run(7, origin)
    assert repaired(lake).to_derive == (key,)
    assert lake.store.get(key) == before
    lake.run(7)
    assert lake.manifest(hour(7).id).account["archived"] == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p["unsure"].update(until="2026-11-20T01:00:00Z"),
        lambda p: p["partitions"][0].update(next=7),
        lambda p: p["partitions"][0].update(covered=[[2, 7]]),
    ],
    ids=["unsure", "next", "covered"],
)
@pytest.mark.parametrize("indent", [2, None])
def test_a_progress_that_was_changed_behind_a_backfill_makes_no_plan(
    change: Callable[[dict[str, Any]], None], indent: int | None
) -> None:
    """Neither the last plan nor the rest of the progress says otherwise: no run has recorded this loss, and a backfill
    does not know where the next run starts.
    """
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(2, 6)})
    lake.run(2)
    lake.logs[P0] = Range(2, 8)
    lake.run(3, "backfill")
    key = progress_document(lake.name)
    before = lake.store.get(key) or b""
    document = json.loads(before)
    change(document)
    lake.store.put(key, json.dumps(document, indent=indent).encode() + b"\n")
    for origin in ("scheduled", "backfill"):
        with pytest.raises(DocumentError, match=r"its content was changed.*airflow archive repair .*computes it"):
            lake.run(7, origin)
    assert repaired(lake).to_derive == (key,)
    assert lake.store.get(key) == before
    lake.run(7)
    assert lake.manifest(hour(7).id).account["archived"] == 2


def test_a_repair_that_slept_before_it_deletes_a_stray_proof_keeps_the_proof_of_a_later_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = lake_of_six()
    stray = hour_document(lake.name, lake.brokers.first + 20)
    proof = json.loads(lake.store.get(hour_document(lake.name, lake.brokers.first)) or b"")
    lake.store.put(stray, json.dumps({**proof, "hour_start": f"{hour(20).start:%Y-%m-%dT%H:%M:%SZ}"}).encode())
    lake.logs[P0], lake.odd[P0, 6] = Range(0, 7), {"timestamp": to_ms(hour(20).start)}
    proofs, delete = [], type(lake.store).delete_version

    def asleep(store: MemoryStore, key: str, etag: str) -> bool:
        if key == stray and not proofs:
            lake.run(7)
            proofs.append(lake.store.get(stray))
        return delete(store, key, etag)

    monkeypatch.setattr(type(lake.store), "delete_version", asleep)
    assert stray not in derive_documents(lake.ledger)
    assert [lake.store.get(stray)] == proofs
    repaired(lake)
    assert lake.audit(deep=True).findings == ()


@pytest.mark.parametrize("back", [1, 2, 3])
def test_a_progress_that_was_put_back_is_computed_again(back: int) -> None:
    lake = lake_of_six()
    key, known = progress_document(lake.name), []
    for number in range(6, 9):
        known.append(lake.store.get(key) or b"")
        # Each adds to hours that the others have, too.
        lake.logs[P0] = Range(0, number + 1)
        lake.odd[P0, number] = {"timestamp": to_ms(hour(0).start)}
        lake.run(number)
    lake.store.put(key, known[-back])
    # One run behind is where a run stands that was stopped in the middle: the next one goes on.
    wrong = [("progress-wrong", key)] if back > 1 else []
    assert [(f.kind, f.subject) for f in lake.audit().damage] == wrong
    assert repaired(lake).to_derive == tuple(where for _, where in wrong)
    assert lake.audit().findings == ()
    lake.run(9)
    assert lake.audit(deep=True).findings == ()


def test_a_line_that_ends_before_what_is_settled_is_not_taken_for_all_of_it() -> None:
    lake = lake_of_six()
    lake.logs[P0] = Range(0, 7)
    lake.run(6)
    lake.store.delete(line_document(lake.name, 2))
    lake.store.delete(run_document(lake.name, hour(6).id, "plan"))
    assert "line-broken" in {f.kind for f in repaired(lake).unrepairable}
    with pytest.raises(IntegrityError, match=r"place 2 of the line .* is gone"):
        derive_documents(lake.ledger)
