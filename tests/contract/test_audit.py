"""The audit on a store: clean is clean, and each planted damage is found and named."""

import json
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kafka_archiver.audit.inspection import listing, publish
from kafka_archiver.messages.errors import ColdObjectError, IntegrityError
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.leftovers import place_of
from kafka_archiver.model.object_keys import (
    claim_document,
    hour_document,
    line_document,
    progress_document,
    run_document,
)
from kafka_archiver.store import Store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.repair import derive_documents, record_lost
from tests.contract.conftest import OpenStore
from tests.support.lake import HOUR, Lake, hour

pytestmark = pytest.mark.contract

IN_MEMORY = pytest.mark.parametrize("open_below", ["memory"], indirect=True)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
RECORDS = {"format": "jsonl", "content": "record"}


def lake_of(store: Store, **options: Any) -> Lake:
    return Lake(store, {P0: Range(0, 3), P1: Range(0, 3)}, **options)


def grown(lake: Lake, number: int, end: int) -> str:
    """Both logs go on to `end`; the run of that hour."""
    lake.logs.update({P0: Range(lake.logs[P0].start, end), P1: Range(lake.logs[P1].start, end)})
    return lake.run(number)


@pytest.fixture
def lake(store: Store) -> Lake:
    """Three scheduled runs."""
    lake = lake_of(store, settings=RECORDS)
    lake.run(2)
    grown(lake, 5, 6)
    grown(lake, 6, 7)
    return lake


class TestClean:
    def test_normal_runs(self, lake: Lake) -> None:
        report = lake.audit()
        assert report.findings == ()
        assert report.verdict == "clean"
        counts = report.counts.model_dump()
        # Hours 0 to 6, each with a row of both partitions.
        assert (counts["runs"], counts["rows"], counts["hours"], counts["lost"]) == (3, 14, 7, 0)
        assert counts["objects"] == len(lake.stored()) == 14
        assert counts["bytes"] == sum(s.size for s in lake.store.list("orders/"))

    @IN_MEMORY
    def test_every_format_read_by_others(self, store: Store) -> None:
        for number, settings in enumerate(
            [
                {"format": "jsonl", "content": "value"},
                {"format": "jsonl", "content": "value", "codec": "zstd"},
                {"format": "jsonl", "content": "record", "codec": "none"},
                {"format": "jsonl", "content": "record", "codec": "zstd"},
                {"format": "avro", "content": "record", "codec": "none"},
                {"format": "avro", "content": "record", "codec": "gzip"},
                {"format": "avro", "content": "record", "codec": "zstd"},
                {"format": "parquet", "content": "record"},
                {"format": "block_gzip", "content": "value"},
                {"format": "block_gzip", "content": "record"},
                {"format": "mak", "content": "record"},
                {"format": "mak", "content": "record", "codec": "zstd", "options": {"version": 2}},
            ]
        ):
            topic = TopicPartition(f"t{number}", 0)
            odd = {
                (topic, 1): {"timestamp": -1},
                (topic, 3): {"timestamp": 2**62},
                (topic, 2): {"value": b"\xff", "key": None},
                (topic, 4): {"value": None},
            }
            lake = Lake(store, {topic: Range(0, 5)}, settings=settings, odd=odd)
            lake.run(4)
            report = lake.audit(deep=True)
            assert (report.findings, report.counts.read) == ((), len(lake.stored())), settings

    @IN_MEMORY
    def test_backfills_late_records_and_several_archives_in_one_store(self, store: Store) -> None:
        first = lake_of(store, settings=RECORDS)
        first.run(1, origin="backfill")
        first.run(2)
        first.odd[P0, 3] = {"timestamp": (first.brokers.first + 1) * HOUR}
        grown(first, 3, 4)
        assert first.proof(1).late_rows == 1
        # Of the same topic, whose first archive was given up, and of another one.
        store.delete("_ledger/_topics/orders.json")
        second = Lake(store, {P0: Range(0, 7), P1: Range(0, 5)}, settings=RECORDS)
        second.ledger.claim("orders")
        second.brokers.group.update({P0: 4, P1: 4})
        second.run(6)
        other = Lake(store, {TopicPartition("payments", 0): Range(0, 2)})
        other.run(1)
        for lake in second, other:
            assert lake.audit(deep=True).findings == ()
        assert kinds_of_findings(first, deep=True) == {"claim-foreign": ["_ledger/_topics/orders.json"]}

    @pytest.mark.parametrize("place", ["orders", "orders/inner", "orders/date=2026-11-20"])
    def test_an_archive_whose_place_is_below_a_topic_of_this_one(self, open_below: OpenStore, place: str) -> None:
        lake, nested = lake_of(open_below("")), lake_of(open_below(place))
        lake.run(2)
        nested.run(2)
        assert lake.audit().findings == nested.audit().findings == ()
        # It does not hide what is wrong with this one's own.
        key = next(filter(place_of, lake.stored()))
        stranger = "orders/date=2026-11-20/hour=00/orders+0+00000000000000000777.jsonl"
        lake.store.put(key, b"other bytes of another size")
        lake.store.put(stranger, b"{}")
        assert kinds_of_findings(lake) == {"object-changed": [key], "unexplained": [stranger]}
        assert nested.audit().findings == ()

    @IN_MEMORY
    @pytest.mark.parametrize(("first", "second"), [(False, False), (False, True), (True, False), (True, True)])
    def test_rebuilds_each_of_which_may_keep_what_it_replaces(self, lake: Lake, first: bool, second: bool) -> None:
        run = lake.rebuild(hour(5).id, first)
        again = lake.rebuild(run, second)
        lake.rebuild(hour(2).id, keep=True)
        assert again.endswith("+r2")
        report = lake.audit(deep=True)
        assert report.findings == ()
        assert (report.counts.runs, report.counts.rows, report.counts.read) == (3, 14, 14)
        assert len(lake.stored()) > 14

    @IN_MEMORY
    def test_a_rebuilt_backfill_of_hours_before_the_archive_began(self, store: Store) -> None:
        lake = Lake(store, {P0: Range(0, 9)})
        lake.brokers.group[P0] = 6
        lake.run(8)
        lake.run(1, origin="backfill")
        lake.rebuild(hour(1).id)
        assert lake.audit().findings == ()

    @IN_MEMORY
    def test_a_backfill_that_comes_late_to_an_hour_that_a_later_interval_closed(self, store: Store) -> None:
        lake = Lake(store, {P0: Range(0, 6)}, odd={(P0, 2): {"timestamp": to_ms(hour(4).start)}})
        lake.brokers.group[P0] = 3
        lake.run(5)
        lake.run(2, origin="backfill")
        assert lake.proof(4).late_rows == 1
        assert lake.audit().findings == ()

    @IN_MEMORY
    @pytest.mark.parametrize("until", ["planned", "written", "committed"])
    def test_an_unfinished_rebuild(self, lake: Lake, until: str) -> None:
        run = lake.rebuild(hour(5).id, until=until)
        report = lake.audit(deep=True)
        assert report.findings == ()
        assert report.unfinished == (run,)

    @IN_MEMORY
    def test_a_rebuild_between_the_commit_of_another_run_and_its_hours(self, lake: Lake) -> None:
        lake.logs[P0] = Range(0, 9)
        lake.run(8, until="committed")
        lake.rebuild(hour(5).id)
        assert lake.audit().findings == ()
        lake.run(9)
        assert lake.audit().damage == ()

    @IN_MEMORY
    def test_a_run_that_was_stopped_between_its_hours_and_the_progress(
        self, lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: object) -> None:
            raise InterruptedError

        lake.logs[P0] = Range(0, 9)
        monkeypatch.setattr("kafka_archiver.ledger.ledger.Ledger.put_progress", stop)
        with pytest.raises(InterruptedError):
            lake.run(8)
        assert lake.proof(8)
        assert lake.audit().findings == ()
        # The same of a first run ever.
        first = Lake(lake.store, {TopicPartition("new", 0): Range(0, 3)})
        with pytest.raises(InterruptedError):
            first.run(3)
        assert first.ledger.progress() is None
        assert first.audit().findings == ()

    @IN_MEMORY
    def test_dead_letters_and_tombstones(self, store: Store) -> None:
        odd: dict[Any, dict[str, Any]] = {(P0, 1): {"value": b"no\njson"}, (P1, 2): {"value": None}}
        lake = lake_of(store, policies={"bad_record": "dead_letter", "null_value": "skip"}, odd=odd)
        lake.run(2)
        assert len([key for key in lake.stored() if key.startswith("_dead_letter/")]) == 1
        report = lake.audit(deep=True)
        assert (report.findings, report.counts.read) == ((), 5)

    @IN_MEMORY
    def test_an_archive_that_never_ran(self, store: Store) -> None:
        assert lake_of(store).audit(deep=True).findings == ()

    @IN_MEMORY
    def test_lost_offsets_are_shown_for_ever_and_are_no_damage(self, store: Store) -> None:
        lake = lake_of(store, policies={"lost_offsets": "record_loss"})
        lake.run(2)
        lake.logs.update({P0: Range(5, 8), P1: Range(0, 4)})
        lake.run(8)
        grown(lake, 9, 9)
        report = lake.audit()
        assert [(f.kind, f.severity, f.subject) for f in report.findings] == [("lost", "warning", "orders[0] [3, 5)")]
        assert (report.verdict, report.counts.lost) == ("clean", 2)
        assert "2 offsets lost for ever" in report.summary
        # The reasons are text: another release may have other words.
        edit(store, progress_document(lake.name), lambda d: d["unsure"].update(reason="other words"))
        proof = next(
            s.key for s in store.list("_ledger/") if b'"reason": "' in (store.get(s.key) or b"") and "/hours/" in s.key
        )
        edit(store, proof, lambda d: d.update(reason="other words"))
        assert lake.audit().verdict == "clean"


def edit(store: Store, key: str, change: Callable[[dict[str, Any]], None]) -> None:
    data = store.get(key)
    assert data is not None
    document = json.loads(data)
    # As 1.0.0 wrote it: with the digest it would not be read.
    document.pop("content_digest", None)
    change(document)
    store.put(key, json.dumps(document, indent=2).encode() + b"\n")


def kinds_of_findings(lake: Lake, **options: Any) -> dict[str, list[str]]:
    """The errors: where, by kind."""
    report = lake.audit(**options)
    assert report.verdict == ("damaged" if report.damage else "clean")
    kinds: dict[str, list[str]] = {}
    for finding in report.damage:
        kinds.setdefault(finding.kind, []).append(finding.subject)
        assert finding.observed
        assert finding.advice
    return kinds


class TestObjects:
    @pytest.mark.parametrize(("left", "kind"), [(None, "object-missing"), (-1, "object-changed")])
    def test_a_deleted_and_a_truncated_object(self, lake: Lake, left: int | None, kind: str) -> None:
        key = lake.stored()[3]
        data = lake.store.get(key) or b""
        lake.store.delete(key) if left is None else lake.store.put(key, data[:left])
        assert kinds_of_findings(lake) == kinds_of_findings(lake, deep=True) == {kind: [key]}

    def test_a_flipped_bit(self, lake: Lake) -> None:
        key = lake.stored()[3]
        data = bytearray(lake.store.get(key) or b"")
        data[len(data) // 2] ^= 1
        lake.store.put(key, bytes(data))
        assert kinds_of_findings(lake) == {"object-rewritten": [key]}
        stat = lake.store.head(key)
        [finding] = lake.audit(deep=True).findings
        assert (finding.kind, finding.subject) == ("content-wrong", key)
        assert stat is not None
        assert finding.observed.endswith(f"; another ETag: {stat.size} bytes with ETag {stat.etag}")

    def test_what_a_deep_audit_called_wrong_is_read_until_it_is_right(self, lake: Lake) -> None:
        key = lake.stored()[3]
        data = lake.store.get(key) or b""
        lake.store.put(key, data[:-1] + bytes([data[-1] ^ 1]))
        publish(lake.store, lake.audit(deep=True))
        report = lake.audit()
        assert [(f.kind, f.subject) for f in report.findings] == [("content-wrong", key)]
        assert report.counts.read == 1
        lake.store.put(key, data)
        publish(lake.store, report)
        assert kinds_of_findings(lake) == {}
        publish(lake.store, lake.audit())
        assert lake.audit().counts.read == 0

    def test_a_flipped_bit_that_no_reader_stumbles_over(self, store: Store) -> None:
        lake = lake_of(store, settings={"codec": "none"})
        lake.run(2)
        [key, *_] = lake.stored()
        lake.store.put(key, (lake.store.get(key) or b"").replace(b"n", b"o"))
        assert kinds_of_findings(lake, deep=True) == {"content-wrong": [key]}

    def test_the_same_bytes_under_another_etag_are_no_damage(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        for key in lake.stored():
            lake.store.put(key, lake.store.get(key) or b"")
        assert kinds_of_findings(lake) == {}
        if all(stat.checksum for stat in map(lake.store.head, lake.stored()) if stat):
            return
        # Where the store says nothing of their bytes, only so many are read.
        monkeypatch.setattr(listing, "REREAD", 2)
        assert kinds_of_findings(lake) == {"object-rewritten": lake.stored()[2:]}
        report = lake.audit(deep=True)
        assert {f.severity for f in report.findings} == {"warning"}
        assert (report.verdict, len(report.findings)) == ("clean", 12)

    @pytest.mark.parametrize(
        "key",
        [
            "orders/date=2026-11-20/hour=05/orders+0+00000000000000000004.jsonl.gz",
            "orders/date=2026-11-20/hour=05/orders+0+00000000000000000003+r1.jsonl.gz",
            "orders/date=2026-11-20/hour=05/orders+0+00000000000000000003+g1.jsonl.gz",
            "orders/date=2026-11-20/hour=05/part-0.parquet",
            "orders/notes.txt",
            "_dead_letter/orders/date=2026-11-20/hour=05/orders+0+00000000000000000000.jsonl.gz",
            "_dead_letter/others/x",
            "_ledger/{}/notes.txt",
            "_ledger/{}/runs/20261120T020000Z/draft.json",
        ],
    )
    def test_an_extra_object(self, lake: Lake, key: str) -> None:
        key = key.format(lake.name)
        lake.store.put(key, b"{}\n")
        assert kinds_of_findings(lake) == {"unexplained": [key]}

    def test_what_is_beside_the_archive_is_nobodys_business(self, lake: Lake) -> None:
        for key in "notes.txt", "orders2/x", "_ledger/other/notes.txt":
            lake.store.put(key, b"x")
        assert kinds_of_findings(lake) == {}

    def test_a_half_removed_revision(self, lake: Lake) -> None:
        old = {key: lake.store.get(key) for key in lake.stored()}
        lake.rebuild(hour(5).id)
        [left, *_] = sorted(old.keys() - set(lake.stored()))
        lake.store.put(left, old[left] or b"")
        assert kinds_of_findings(lake) == {"superseded-left": [left]}

    def test_a_dead_letter_that_is_gone(self, store: Store) -> None:
        lake = lake_of(store, policies={"bad_record": "dead_letter"}, odd={(P0, 1): {"value": b"no\njson"}})
        lake.run(2)
        [key] = [key for key in lake.stored() if key.startswith("_dead_letter/")]
        lake.store.delete(key)
        assert kinds_of_findings(lake) == {"object-missing": [key]}

    def test_an_object_of_no_unfinished_chunk(self, lake: Lake) -> None:
        lake.logs[P0] = Range(0, 9)
        lake.run(8, until="planned")
        name = "orders/date=2026-11-20/hour=08/orders+0+0000000000000000000{}.jsonl.gz"
        lake.store.put(name.format(7), b"of the plan")
        assert kinds_of_findings(lake) == {}
        # In the middle of a chunk; of another generation; of a rebuild.
        strange = [name.format(place) for place in ("7+g1", "7+r1", "8")]
        for key in strange:
            lake.store.put(key, b"x")
        assert kinds_of_findings(lake) == {"unexplained": strange}


@IN_MEMORY
class TestDocuments:
    @pytest.mark.parametrize("name", ["plan", "manifest", "commit"])
    def test_a_removed_document(self, lake: Lake, name: str) -> None:
        key = run_document(lake.name, hour(5).id, name)
        lake.store.delete(key)
        assert kinds_of_findings(lake, deep=True) == {f"{name}-missing": [key]}

    def test_a_removed_place_in_the_line(self, lake: Lake) -> None:
        key = line_document(lake.name, 2)
        lake.store.delete(key)
        kinds = kinds_of_findings(lake)
        assert kinds.pop("line-broken") == [key]
        assert kinds.pop("gap") == ["orders[0] [3, 6)", "orders[1] [3, 6)"]
        assert len(kinds.pop("unexplained")) == 6
        assert kinds == {}

    @pytest.mark.parametrize("until", ["planned", "written"])
    def test_a_run_whose_place_in_the_line_another_one_has(self, lake: Lake, until: str) -> None:
        lake.logs[P0] = Range(0, 9)
        ghost = lake.run(8, until=until)
        lake.store.delete(line_document(lake.name, 4))
        lake.logs[P0] = Range(0, 10)
        lake.run(9)
        assert kinds_of_findings(lake, deep=True) == {"plan-displaced": [run_document(lake.name, ghost, "plan")]}
        # What the other run has, no rebuild takes away.
        with pytest.raises(IntegrityError, match=f"has run {hour(9).id}, and not {ghost}"):
            lake.rebuild(ghost)
        self.move_away(lake, ghost)
        assert kinds_of_findings(lake, deep=True) == {}

    def move_away(self, lake: Lake, run: str) -> None:
        """Move a document away as the audit advises."""
        [advice] = [f.advice for f in lake.audit().damage if f.kind == "plan-displaced"]
        folder = f"_ledger/{lake.name}/runs/{run}/"
        assert folder in advice
        for stat in list(lake.store.list(folder)):
            lake.store.delete(stat.key)

    def test_a_takeover_whose_place_another_one_has(self, lake: Lake) -> None:
        """Older code left such a takeover: nobody has the offsets."""
        lake.logs[P0] = Range(0, 9)
        given_up = lake.run(8, until="planned")
        ghost = lake.rebuild(given_up, until="planned")
        commit = run_document(lake.name, given_up, "commit")
        ended = lake.store.get(commit) or b""
        for key in commit, line_document(lake.name, 5):
            lake.store.delete(key)
        lake.logs[P0] = Range(0, 10)
        lake.run(9, until="planned")
        lake.store.put(commit, ended)
        lake.run(9)
        displaced = {"plan-displaced": [run_document(lake.name, ghost, "plan")]}
        assert kinds_of_findings(lake) == {"gap": ["orders[0] [7, 9)"], **displaced}
        [advice] = {f.advice for f in lake.audit().damage if f.kind == "gap"}
        assert f"`airflow archive rebuild {lake.name} --run RUN` reads the offsets again" in advice
        lake.rebuild(given_up)
        assert kinds_of_findings(lake, deep=True) == displaced
        self.move_away(lake, ghost)
        assert kinds_of_findings(lake, deep=True) == {}

    def test_a_repair_whose_place_another_one_has_replaces_nothing(self, lake: Lake) -> None:
        key = lake.stored()[0]
        record_lost(lake.context, hour(2).id, [key], [key])
        ghost = f"{hour(2).id}+r1"
        lake.store.delete(run_document(lake.name, ghost, "settled"))
        for place in line_document(lake.name, 4), progress_document(lake.name):
            lake.store.delete(place)
        lake.logs[P0] = Range(0, 9)
        derive_documents(lake.ledger)
        lake.run(8)
        derive_documents(lake.ledger)
        kinds = kinds_of_findings(lake)
        assert kinds.pop("plan-displaced") == [run_document(lake.name, ghost, "plan")]
        assert kinds == {"object-missing": [key]}

    def test_a_removed_run(self, lake: Lake) -> None:
        for name in "plan", "intent", "manifest", "commit", "settled":
            lake.store.delete(run_document(lake.name, hour(5).id, name))
        assert sorted(kinds_of_findings(lake)) == ["commit-missing", "plan-missing"]

    @pytest.mark.parametrize("name", ["settled", "intent"])
    def test_what_is_computed_again_or_not_needed_any_more(self, lake: Lake, name: str) -> None:
        key = run_document(lake.name, hour(5).id, name)
        lake.store.delete(key)
        assert kinds_of_findings(lake) == ({"settled-wrong": [key]} if name == "settled" else {})

    def test_an_edited_intent(self, lake: Lake) -> None:
        key = run_document(lake.name, hour(5).id, "intent")
        edit(lake.store, key, lambda d: d["keys"].pop())
        assert kinds_of_findings(lake) == {"intent-changed": [key]}

    def test_a_claim_that_is_gone_damaged_or_somebody_else_s(self, lake: Lake) -> None:
        key = claim_document("orders")
        data = lake.store.get(key) or b""
        lake.store.delete(key)
        assert [(f.kind, f.severity, f.subject) for f in lake.audit().findings] == [("claim-missing", "warning", key)]
        lake.store.put(key, data[:-9])
        assert kinds_of_findings(lake) == {"unreadable": [key]}
        lake.store.put(key, data.replace(lake.name.encode(), b"another"))
        assert kinds_of_findings(lake) == {"claim-foreign": [key]}

    def test_an_edited_count(self, lake: Lake) -> None:
        key = run_document(lake.name, hour(5).id, "manifest")
        edit(lake.store, key, lambda d: d["objects"][0].update(rows=7))
        kinds = kinds_of_findings(lake)
        assert kinds == {"account-wrong": [key], "manifest-changed": [key]}
        [finding] = [f for f in lake.audit().damage if f.kind == "account-wrong"]
        assert finding.observed == "orders[0] [3, 5): 2 offsets archived, its objects hold 8 rows"

    def test_an_edited_plan(self, lake: Lake) -> None:
        key = run_document(lake.name, hour(5).id, "plan")
        edit(lake.store, key, lambda d: d.update(group="another"))
        assert kinds_of_findings(lake) == {"plan-changed": [key]}
        lake.store.delete(key)
        line = line_document(lake.name, 2)
        edit(lake.store, line, lambda d: d.update(group="another"))
        kinds = kinds_of_findings(lake)
        assert kinds.pop("plan-missing") == [key]
        assert kinds == {"plan-changed": [line], "account-wrong": [run_document(lake.name, hour(5).id, "manifest")]}

    def test_a_damaged_document(self, lake: Lake) -> None:
        keys = [hour_document(lake.name, lake.brokers.first + 3), run_document(lake.name, hour(5).id, "intent")]
        for key in keys:
            lake.store.put(key, b"{")
        assert kinds_of_findings(lake) == {"unreadable": keys}
        lake.store.put(progress_document(lake.name), b"[]")
        assert progress_document(lake.name) in kinds_of_findings(lake)["unreadable"]

    def test_a_document_in_another_ones_place(self, lake: Lake) -> None:
        wrong, right = (run_document(lake.name, hour(n).id, "commit") for n in (6, 5))
        lake.store.put(wrong, lake.store.get(right) or b"")
        kinds = kinds_of_findings(lake)
        assert kinds["unreadable"] == [wrong]

    @pytest.mark.parametrize("committed", [False, True])
    def test_an_overlapping_plan(self, lake: Lake, committed: bool) -> None:
        plan = lake.planned(hour(5).id)
        copy = plan.model_copy(update={"interval": hour(7), "planned_at": hour(8).start, "number": 4})
        lake.ledger.append(copy)
        lake.ledger.file_plan(copy)
        places = ["orders[0] [3, 6)", "orders[1] [3, 6)"]
        if not committed:
            assert kinds_of_findings(lake) == {"overlap": places}
            return
        commit = lake.commit(hour(5).id)
        manifest = lake.manifest(hour(5).id).model_copy(update={"run": copy.run, "plan_digest": copy.digest})
        lake.ledger.create_manifest(manifest)
        lake.ledger.create_commit(
            commit.model_copy(update={"run": copy.run, "plan_digest": copy.digest, "manifest_digest": manifest.digest})
        )
        kinds = kinds_of_findings(lake)
        assert kinds.pop("overlap") == places
        assert len(kinds.pop("promised-twice")) == 6
        assert kinds == {}


@IN_MEMORY
class TestDerived:
    @pytest.mark.parametrize(
        "change",
        [
            lambda d: d.update(rows=d["rows"] + 1),
            lambda d: d.update(bytes=1),
            lambda d: d.update(status="open"),
            lambda d: d.update(late_rows=1),
            lambda d: d["runs"][0].update(rows=1),
            lambda d: d["runs"][0]["objects"].pop(),
            lambda d: d["runs"][0]["objects"][0].update(checksum="0-1"),
            lambda d: d["runs"][0].update(run="20261120T060000Z"),
            lambda d: d["runs"].clear(),
            lambda d: d.update(closed_by="20261120T060000Z"),
            lambda d: d.update(complete_as_of="2026-11-20T09:00:00Z"),
        ],
    )
    def test_an_edited_proof(self, lake: Lake, change: Callable[[dict[str, Any]], None]) -> None:
        key = hour_document(lake.name, lake.brokers.first + 3)
        edit(lake.store, key, change)
        assert kinds_of_findings(lake) == {"proof-wrong": [key]}

    def test_a_removed_proof_and_one_too_many(self, lake: Lake) -> None:
        key, other = (hour_document(lake.name, lake.brokers.first + n) for n in (3, 20))
        proof = json.loads(lake.store.get(key) or b"")
        lake.store.delete(key)
        proof.update(hour_start=(hour(20).start.isoformat().replace("+00:00", "Z")))
        lake.store.put(other, json.dumps(proof).encode())
        assert kinds_of_findings(lake) == {"proof-missing": [key], "proof-wrong": [other]}

    @pytest.mark.parametrize(
        "change",
        [
            lambda d: d.update(as_of="2026-11-20T09:00:00Z"),
            lambda d: d.update(unsure={"until": "2026-11-20T09:00:00Z", "reason": ""}),
            lambda d: d.update(lost=1),
            lambda d: d.update(begun="2026-11-20T09:00:00Z"),
            lambda d: d["partitions"][0].update(covered=[[0, 5]]),
            lambda d: d["partitions"][0].update(topic_id="another"),
            lambda d: d["partitions"].pop(),
        ],
    )
    def test_an_edited_progress(self, lake: Lake, change: Callable[[dict[str, Any]], None]) -> None:
        edit(lake.store, progress_document(lake.name), change)
        assert kinds_of_findings(lake) == {"progress-wrong": [progress_document(lake.name)]}

    def test_progress_that_has_gone_too_far(self, lake: Lake) -> None:
        edit(lake.store, progress_document(lake.name), lambda d: d["partitions"][1].update(next=9))
        assert kinds_of_findings(lake) == {"progress-wrong": [progress_document(lake.name)]}

    def test_progress_that_is_gone(self, lake: Lake) -> None:
        lake.store.delete(progress_document(lake.name))
        assert kinds_of_findings(lake) == {"progress-missing": [progress_document(lake.name)]}

    def test_progress_that_is_gone_after_a_run_without_records(self, store: Store) -> None:
        lake = lake_of(store)
        lake.run(2)
        lake.run(3)
        lake.store.delete(progress_document(lake.name))
        assert kinds_of_findings(lake) == {"progress-missing": [progress_document(lake.name)]}


@IN_MEMORY
class TestDeep:
    def test_an_object_that_is_not_what_its_manifest_says(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        """A writer at fault: the ledger is consistent, and says so itself."""
        key = lake.stored()[0]
        real = type(lake.store).read

        def read_other(self: Store, wanted_key: str, start: int, length: int) -> bytes | None:
            return real(self, lake.stored()[1] if wanted_key == key else wanted_key, start, length)

        monkeypatch.setattr(type(lake.store), "read", read_other)
        assert kinds_of_findings(lake, deep=True) == {"content-wrong": [key]}

    def test_damage_on_the_way_only_is_none(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        real, bad = type(lake.store).read, set(lake.stored())

        def once(self: Store, key: str, start: int, length: int) -> bytes | None:
            data = real(self, key, start, length) or b""
            if key in bad:
                bad.discard(key)
                return data[:-1] + b"?"
            return data

        monkeypatch.setattr(type(lake.store), "read", once)
        assert kinds_of_findings(lake, deep=True) == {}
        assert bad == set()


def by_kind(findings: tuple[Finding, ...]) -> dict[str, tuple[str, str]]:
    return {f.kind: (f.severity, f.subject) for f in findings}


@IN_MEMORY
class TestLive:
    def live(self, lake: Lake) -> dict[str, tuple[str, str]]:
        return by_kind(lake.audit(cluster=lake.brokers).findings)

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            (lambda lake: None, {}),
            (lambda lake: lake.logs.update({P0: Range(0, 200)}), {}),
            (lambda lake: lake.brokers.ids.update(orders="new"), {"topic-recreated": ("problem", "orders[0]")}),
            (lambda lake: lake.logs.update({P0: Range(0, 5)}), {"topic-recreated": ("problem", "orders[0]")}),
            (lambda lake: lake.logs.clear(), {"topic-gone": ("warning", "orders[1]")}),
        ],
    )
    def test_the_logs(self, lake: Lake, change: Callable[[Lake], None], expected: dict[str, tuple[str, str]]) -> None:
        change(lake)
        assert self.live(lake) == expected

    def test_a_group_that_was_moved_or_is_gone(self, lake: Lake) -> None:
        lake.brokers.group = {P0: 1}
        assert self.live(lake) == {"group-moved": ("problem", "orders[0]"), "group-missing": ("warning", "orders[1]")}

    def test_an_open_transaction_is_no_end_of_the_log(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        ends = {"read_committed": {P0: 5, P1: 5}, "read_uncommitted": {P0: 7, P1: 7}}
        monkeypatch.setattr(lake.brokers, "log_ends", lambda names, isolation: {n: ends[isolation][n] for n in names})
        assert self.live(lake) == {}

    def test_retention(self, lake: Lake) -> None:
        lake.logs[P0] = Range(6, 200)
        assert self.live(lake) == {"retention-near": ("warning", "orders[0] [7, 200)")}
        lake.logs[P0] = Range(9, 200)
        assert self.live(lake) == {"retention-passed": ("problem", "orders[0]")}

    def advice(self, lake: Lake) -> dict[str, str]:
        return {f.kind: f.advice for f in lake.audit(cluster=lake.brokers).findings}

    def follow(self, lake: Lake, advice: str) -> None:
        """Do as the command says: a run with its policies."""
        [conf] = re.findall(rf"`airflow dags trigger archive_{lake.name} --conf '([^']*)'`", advice)
        lake.choose(**json.loads(conf)["policies"])
        lake.run(20)

    def test_its_advice_about_one_trouble_is_a_command_that_goes_on(self, lake: Lake) -> None:
        lake.logs[P0] = Range(9, 200)
        advice = self.advice(lake)
        self.follow(lake, advice["retention-passed"])
        assert "retention-passed" not in self.live(lake)

    def test_its_advice_about_two_troubles_is_one_command_that_goes_on(self, lake: Lake) -> None:
        lake.logs[P0] = Range(9, 200)
        lake.brokers.group[P1] = 1
        lake.brokers.stamps.pop(P1, None)
        report = lake.audit(cluster=lake.brokers)
        assert {f.kind for f in report.stops} == {"retention-passed", "group-moved"}
        assert (report.verdict, report.damage) == ("clean", ())
        assert report.summary.startswith(f"{lake.name}: clean, but the next run stops: 2 errors")
        [advice] = {f.advice for f in report.stops}
        assert "dags trigger" not in "".join(f.observed for f in report.findings)
        self.follow(lake, advice)
        assert not {"retention-passed", "group-moved"} & set(self.live(lake))

    def test_what_stops_every_run_stands_before_all_advice_to_run_one(self, lake: Lake) -> None:
        lake.logs[P0] = Range(6, 200)
        lake.brokers.live = ["other@10.0.0.7"]
        assert self.live(lake)["group-busy"] == ("warning", lake.archive.group)
        advice = self.advice(lake)
        assert advice["retention-near"].startswith("No run continues before `group-busy` is solved. Then: start a run")
        lake.logs[P0] = Range(9, 200)
        assert "No run continues before `group-busy` is solved. Then: to " in self.advice(lake)["retention-passed"]

    def test_a_topic_that_is_gone_stands_before_it_too_and_its_advice_is_about_what_names_it(self, lake: Lake) -> None:
        other = TopicPartition("payments", 0)
        wide = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 9), other: Range(0, 9)})
        wide.run(5)
        wide.logs[P0] = Range(9, 12)
        del wide.logs[other]
        advice = self.advice(wide)
        assert "remove it from source.topics" in advice["topic-gone"]
        assert advice["retention-near"].startswith("No run continues before `topic-gone` is solved.")
        source = wide.archive.source.model_copy(update={"topics": None, "pattern": "orders|pay.*"})
        wide.configure(wide.archive.model_copy(update={"source": source}))
        assert "exclude it in source.pattern" in self.advice(wide)["topic-gone"]

    def test_a_run_that_policies_stop_is_no_advice_against_retention(self, lake: Lake) -> None:
        lake.logs[P0] = Range(6, 200)
        lake.brokers.group[P1] = 1
        lake.brokers.stamps.pop(P1, None)
        assert self.advice(lake)["retention-near"].startswith("No run continues before `group-moved` is solved. Then: ")


@IN_MEMORY
class TestAtWork:
    def test_a_run_at_work_is_no_damage(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run settles between the listing of the ledger and that of the objects."""
        lake.logs[P0] = Range(0, 9)
        real, begun = type(lake.store).list, []

        def meanwhile(self: Store, prefix: str) -> Any:
            if prefix == "orders/" and not begun:
                begun.append(prefix)
                lake.run(8)
            return real(self, prefix)

        calls: list[str] = []
        monkeypatch.setattr(type(lake.store), "list", meanwhile)
        report = lake.audit(tell=calls.append)
        assert (report.findings, report.counts.runs) == ((), 4)
        assert any("looking again" in line for line in calls)

    def test_what_goes_while_we_look_is_no_finding(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        """Somebody cleans up: the ledger does not change by that."""
        key = "orders/date=2026-11-20/hour=05/left"
        lake.store.put(key, b"x")
        real = type(lake.store).list

        def listed_then_gone(self: Store, prefix: str) -> Any:
            yield from list(real(self, prefix))
            lake.store.delete(key)

        monkeypatch.setattr(
            type(lake.store), "list", lambda s, p: listed_then_gone(s, p) if p == "orders/" else real(s, p)
        )
        assert kinds_of_findings(lake) == {}

    def test_a_run_that_is_rebuilt_while_it_is_read(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        real, begun = type(lake.store).read, []

        def meanwhile(self: Store, key: str, start: int, length: int) -> bytes | None:
            if not begun:
                begun.append(key)
                lake.rebuild(hour(5).id)
                lake.rebuild(hour(2).id)
            return real(self, key, start, length)

        monkeypatch.setattr(type(lake.store), "read", meanwhile)
        assert kinds_of_findings(lake, deep=True) == {}
        assert begun


@IN_MEMORY
def test_an_audit_that_slept_hides_nothing_of_what_a_later_one_has_found(lake: Lake) -> None:
    slept = lake.audit()
    lake.store.delete(lake.stored()[0])
    later = lake.audit()
    for report in later, slept:
        key = publish(lake.store, report)
    assert lake.store.get(key) == later.to_json()
    # Whatever else is there gives way.
    lake.store.put(key, b"{")
    publish(lake.store, slept)
    assert lake.store.get(key) == slept.to_json()


@IN_MEMORY
def test_a_cold_object_hides_no_damage_of_others_and_stays_wrong_if_it_was(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold, damaged = lake.stored()[0], lake.stored()[-1]
    real = type(lake.store).read
    unreadable = {cold}

    def read(self: Store, key: str, start: int, length: int) -> bytes | None:
        if key in unreadable:
            raise ColdObjectError(f"{key} must be restored")
        return real(self, key, start, length)

    monkeypatch.setattr(type(lake.store), "read", read)
    report = lake.audit(deep=True)
    assert (report.verdict, [(f.kind, f.subject) for f in report.findings]) == ("clean", [("content-cold", cold)])
    data = lake.store.get(damaged) or b""
    lake.store.put(damaged, bytes([data[0] ^ 1]) + data[1:])
    report = lake.audit(deep=True)
    assert {f.subject: f.kind for f in report.findings} == {cold: "content-cold", damaged: "content-wrong"}
    publish(lake.store, report)
    unreadable.add(damaged)
    for deep in False, True:
        assert ("content-wrong", damaged) in {(f.kind, f.subject) for f in lake.audit(deep=deep).findings}
