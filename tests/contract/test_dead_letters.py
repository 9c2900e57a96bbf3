"""Dead letters come back: archived by today's settings, once, as a revision of their run; on any store."""

import uuid
from datetime import timedelta
from typing import Any

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import IntegrityError, PermanentError
from kafka_archiver.model.object_keys import is_dead_letter
from kafka_archiver.orchestration.dag_run.figures import figures
from kafka_archiver.state.coverage import read_hour
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_hour, to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.clean_up import clean_up
from kafka_archiver.work.close_hours import ClosedHours
from kafka_archiver.work.dead_letters import HourRange, forecast_replay, replay_letters, runs_with_letters
from kafka_archiver.work.repair import derive_documents, find_repairs, record_lost, restore_document, write_again
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
RUN = hour(2).id
BAD, LARGE, TEXT = b"two\nlines", b'"%s"' % (b"x" * 50), b"no json"


@pytest.fixture
def lake() -> Lake:
    """A settled run of four chunks. Of its eight records, three became dead letters; Kafka has lost all since."""
    lake = lake_with({1: BAD, 2: LARGE, 5: TEXT})
    lake.logs[P0] = Range(8, 8)
    return lake


def lake_with(values: dict[int, bytes]) -> Lake:
    odd = {(P0, offset): {"value": value} for offset, value in values.items()}
    # An object of dead letters in the middle of the chunk's hours, and one in two hours of one chunk.
    odd[P0, 4] = {"timestamp": 0, "value": b"also\nbad"} if 4 in values else {}
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 8)}, policies={"bad_record": "dead_letter"}, odd=odd)
    configure(lake, decode="json", max_value_bytes=20)
    lake.run(2)
    return lake


def configure(lake: Lake, decode: str = "bytes", max_value_bytes: int | None = None, **store: Any) -> None:
    """Edit the YAML."""
    archive = lake.archive
    source = archive.source.model_copy(
        update={
            "value": archive.source.value.model_copy(update={"decode": decode}),
            "max_value_bytes": max_value_bytes,
        }
    )
    lake.configure(archive.model_copy(update={"source": source, "store": archive.store.model_copy(update=store)}))


def letters(lake: Lake, run: str) -> set[int]:
    return {o.first_offset for o in lake.manifest(run).dead_letters}


def test_an_hour_in_full_has_the_dead_letters_and_objects_that_are_there_now(lake: Lake) -> None:
    filed = {hour for o in lake.manifest(RUN).dead_letters for hour in o.hours if hour is not None}
    hours = [hour for hour in sorted(filed) if read_hour(lake.context, hour).dead_letters]
    assert hours
    configure(lake)
    lake.replay()
    details = [read_hour(lake.context, hour) for hour in hours]
    assert [detail.dead_letters for detail in details] == [0] * len(hours)
    assert {o.key for detail in details for o in detail.objects} <= set(lake.stored())


def test_an_hour_in_full_has_letters_of_a_run_that_has_no_other_record_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_archiver.state.coverage.dead_letters.SOUGHT_PLANS", 1)
    lake, late, first = lake_with({9: BAD}), hour(10).id, to_hour(hour(1).start)
    MemoryStore(lake.store.url.removeprefix("memory://"), clock=lambda: lake.now)
    lake.odd[P0, 9]["timestamp"] = to_ms(hour(1).start)
    for number in (9, 10, 11, 12):
        lake.logs[P0] = Range(8, number)
        lake.run(number)
    assert (lake.proof(1).status, [c.run for c in lake.proof(1).runs]) == ("complete", [RUN])
    detail = read_hour(lake.context, first)
    assert (detail.dead_letters, detail.more_letters, len(detail.reasons)) == (1, 0, 1)
    assert [(part.run, part.rows) for part in detail.runs] == [(late, 0), (RUN, 1)]
    lake.logs[P0] = Range(0, 12)
    lake.rebuild(RUN)
    lake.rebuild(late)
    detail = read_hour(lake.context, first)
    assert {o.key for o in detail.objects} == {o.key for c in lake.proof(1).runs for o in c.objects}
    assert [(part.run, part.rows) for part in detail.runs] == [(f"{late}+r1", 0), (f"{RUN}+r1", 1)]
    assert detail.dead_letters == 1


def test_each_cause_is_mended_by_another_setting_and_every_record_is_archived_once(lake: Lake) -> None:
    before = {key: lake.store.get(key) for key in lake.stored() if not is_dead_letter(key)}
    progress = lake.progress
    assert letters(lake, RUN) == {1, 2, 5}
    # A higher limit, and then other decoding, and then another content and format; a further chunk size is no matter.
    for revision, options, left in (
        (1, {"decode": "json", "max_value_bytes": 100}, {1, 5}),
        (2, {"decode": "bytes", "chunk_records": 5}, {1}),
        (3, {"content": "record", "format": "parquet", "codec": "zstd"}, set()),
    ):
        configure(lake, **options)  # type: ignore[arg-type]
        assert lake.replay() == f"{RUN}+r{revision}"
        manifest = lake.manifest(f"{RUN}+r{revision}")
        assert letters(lake, manifest.run) == left
        done = figures(lake.context, [manifest.run], ClosedHours())
        assert (done.records, done.objects - len(left), done.dead_letters) == (1, 1, len(left))
        assert manifest.account == {
            **dict.fromkeys(manifest.account, 0),
            "archived": 8 - len(left),
            "dead_lettered": len(left),
        }
        assert set(lake.stored()) == {o.key for o in manifest.stored}
        assert lake.audit(deep=True).findings == ()
    assert {key: lake.store.get(key) for key in before} == before, "the other objects of the run are as they were"
    assert [o.key.rpartition("+")[2] for o in manifest.objects if o.key not in before] == [
        "r3.parquet", "r1.jsonl.gz", "r2.jsonl.gz",
    ]  # fmt: skip
    assert sum(lake.proof(n).rows for n in range(8)) == 8
    assert all(c.run == f"{RUN}+r3" for n in range(8) for c in lake.proof(n).runs)
    assert (lake.progress.closed_until, lake.progress.lost) == (progress.closed_until, 0)
    # The schedule goes on, and a cleared run replays what there is.
    assert lake.replay() == f"{RUN}+r3", "there is nothing to replay any more"
    lake.run(2)
    lake.logs[P0] = Range(8, 9)
    lake.run(9)
    assert lake.audit(deep=True).findings == ()


def test_what_still_fails_goes_by_the_policy(lake: Lake) -> None:
    stored = lake.stored()
    lake.choose(bad_record="fail")
    configure(lake, decode="json", max_value_bytes=100)
    with pytest.raises(PermanentError, match=r"offset 1: .*Nothing has changed.*replay-dead-letters \w+ 2026\w+`"):
        lake.replay()
    assert lake.stored() == stored
    # Another policy, and it goes on with the same plan.
    lake.choose(bad_record="skip")
    replayed = lake.replay()
    assert replayed == f"{RUN}+r1"
    assert lake.manifest(replayed).account["filtered"] == 2
    assert not [key for key in lake.stored() if is_dead_letter(key)]
    assert lake.audit(deep=True).findings == ()


def test_a_dry_run_says_what_would_become_of_them_and_why(lake: Lake) -> None:
    configure(lake, decode="json", max_value_bytes=100)
    stored = {s.key: s.etag for s in lake.store.list("")}
    [letters_of_run] = runs_with_letters(lake.context, None)
    forecast = forecast_replay(lake.context, letters_of_run)
    assert (forecast.run, forecast.letters, forecast.archived, forecast.filtered, forecast.rejected) == (
        RUN,
        3,
        1,
        0,
        2,
    )
    assert [reason.split(";")[0] for reason in forecast.reasons] == [
        "`source.value.decode` is json, but the value is not one JSON document"
    ]
    assert {s.key: s.etag for s in lake.store.list("")} == stored


def test_runs_are_found_by_name_and_by_the_hours_of_their_letters(lake: Lake) -> None:
    lake.logs[P0] = Range(8, 10)
    lake.run(9)

    def runs_of(selection: Any) -> list[str]:
        return [letters.plan.run for letters in runs_with_letters(lake.context, selection)]

    assert runs_of(None) == runs_of([RUN]) == [RUN]
    assert runs_of(HourRange(hour(3).start, hour(5).start)) == [RUN]
    assert runs_of(HourRange(hour(3).start, hour(4).start)) == []
    assert runs_of([hour(9).id]) == []


@pytest.mark.parametrize("until", ["planned", "written", "committed"])
def test_two_replays_at_once_or_beside_a_rebuild_archive_each_record_once(until: str) -> None:
    lake = lake_with({1: BAD, 4: b""})
    configure(lake, content="record")
    first = lake.replay(until=until)
    if until == "committed":
        assert lake.replay() == first, "the second one finds nothing to do, and settles the first"
    else:
        # With other settings, so that it does not go on with the first one.
        configure(lake, content="record", format="avro", codec="none")
        second = lake.replay(until=until)
        assert lake.commit(first).outcome == "given_up"
        assert lake.rebuild(RUN) == f"{RUN}+r3"
        assert lake.commit(second).outcome == "given_up"
        clean_up(lake.ledger, lake.now.replace(year=2030))
    last = lake.ledger.last_committed(RUN)
    assert last
    assert lake.manifest(last).account["archived"] == 8
    assert set(lake.stored()) == {o.key for o in lake.manifest(last).stored}
    assert lake.audit(deep=True).findings == ()


def test_missing_objects_are_written_again_by_the_plan_that_wrote_each_or_given_up_by_name() -> None:
    """The limit of 20 bytes rejects three records, decoding two of them. The third replay takes what is left."""
    lake = lake_with({1: BAD, 2: LARGE, 5: TEXT})
    configure(lake, decode="json", max_value_bytes=100)
    lake.replay()
    configure(lake, decode="bytes")
    lake.replay()
    configure(lake, content="record")
    run = lake.replay(until="committed")
    assert run == f"{RUN}+r3"
    bytes_ = {o.key: lake.store.get(o.key) for o in lake.manifest(run).objects}
    assert len(bytes_) == 8
    for until in ("committed", "settled"):
        # From the dead letters until the revision is settled, then from Kafka.
        log = lake.logs[P0]
        if until == "committed":
            lake.logs[P0] = Range(8, 8)
        gone = [key for key in bytes_ if until == "settled" or "+r3." in key]
        for key in gone:
            lake.store.delete(key)
        assert {e.key for e in find_repairs(lake.context, lake.audit()).to_rewrite[run]} == set(gone)
        lake.finish(write_again(lake.context, [run]))
        assert {key: lake.store.get(key) for key in bytes_} == bytes_
        lake.logs[P0] = log
    assert lake.audit(deep=True).findings == ()
    last = next(key for key in bytes_ if "+r3." in key)
    lake.store.delete(last)
    lake.logs[P0] = Range(2, 8)
    with pytest.raises(IntegrityError, match=rf"repair {lake.name} --lost {last.replace('+', '[+]')}"):
        lake.job().run(run)
    assert [e.key for e in find_repairs(lake.context, lake.audit()).lost[run]] == [last]
    record_lost(lake.context, run, [last])
    first = next(key for key in bytes_ if "+r1." in key)
    lake.store.delete(first)
    lake.job().run(f"{RUN}+r4")
    assert lake.store.get(first) == bytes_[first]
    assert lake.manifest(f"{RUN}+r4").account["lost"] == 1
    assert lake.audit(deep=True).damage == ()


def test_dead_letters_that_are_not_what_the_manifest_says_are_not_archived(lake: Lake) -> None:
    configure(lake, content="record")
    key = next(key for key in lake.stored() if is_dead_letter(key))
    data = lake.store.get(key) or b""
    lake.store.put(key, data[:-1] + b"?")
    with pytest.raises(IntegrityError, match=r"is missing or not what the manifest says"):
        lake.replay()
    lake.store.put(key, data)
    assert lake.replay([RUN]) == f"{RUN}+r1"


def test_a_manifest_of_a_replay_is_restored_from_the_other_documents(lake: Lake) -> None:
    configure(lake, content="record")
    run = lake.replay()
    key = f"_ledger/{lake.name}/runs/{run}/manifest.json"
    data = lake.store.get(key)
    lake.store.delete(key)
    damage = find_repairs(lake.context, lake.audit())
    assert damage.to_restore == (key,)
    restore_document(lake.ledger, key)
    assert lake.store.get(key) == data
    assert derive_documents(lake.ledger) == []


def test_a_run_that_is_not_final_has_no_letters_to_replay() -> None:
    lake = lake_with({1: BAD})
    lake.logs[P0] = Range(0, 9)
    lake.odd[P0, 8] = {"value": BAD}
    lake.run(9, until="written")
    with pytest.raises(PermanentError, match="is not final yet"):
        replay_letters(lake.context, [hour(9).id])


@pytest.mark.parametrize("what", ["rebuild", "replay"])
def test_a_revision_keeps_the_wall_clock_s_time_of_the_run_whatever_revisions_came_between(what: str) -> None:
    lake = lake_with({1: BAD})
    configure(lake, decode="json")
    lake.now += timedelta(days=3)
    lake.replay()
    lake.now += timedelta(days=3)
    document = lake.archive.model_dump(by_alias=True, exclude_defaults=True)
    lake.configure(Archive.model_validate({**document, "timestamp": {"from": "wallclock"}}))
    last = lake.planned(lake.rebuild(RUN) if what == "rebuild" else lake.replay())
    assert last.revision == 2
    assert last.settings.time.at == to_ms(lake.planned(RUN).planned_at)
