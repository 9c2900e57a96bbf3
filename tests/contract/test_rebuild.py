"""A rebuild replaces what it read again, whole, and never loses what only the archive still has."""

import uuid
from datetime import timedelta

import pytest

from kafka_archiver.config.decoding import Decoding
from kafka_archiver.context.history import last_runs
from kafka_archiver.messages.errors import IntegrityError, PermanentError, PolicyError
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.clean_up import clean_up
from kafka_archiver.work.rebuild import rebuild_hour, rebuild_run
from tests.support.lake import HOUR, Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)


@pytest.fixture
def lake() -> Lake:
    """Two settled runs, the second of which has a late record of the first hour."""
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 2)}, policies={"lost_offsets": "record_loss"})
    lake.run(1)
    lake.logs[P0] = Range(0, 4)
    lake.odd[P0, 2] = {"timestamp": lake.brokers.first * HOUR}
    lake.run(3)
    return lake


def test_an_hour_is_rebuilt_with_every_run_that_has_a_part_of_it(lake: Lake) -> None:
    before = {key: lake.store.get(key) for key in lake.stored()}
    old, progress = lake.proof(0), lake.progress
    work = rebuild_hour(lake.context, hour(0).start)
    assert work.runs == (f"{hour(1).id}+r1", f"{hour(3).id}+r1")
    for run in work.archive:
        lake.job().run(run)
    assert before.keys() <= set(lake.stored()), "until the proofs name the new ones, the old ones are there"
    assert lake.proof(0) == old
    lake.finish(work)
    assert {key.replace("+r1", ""): lake.store.get(key) for key in lake.stored()} == before
    assert all("+r1." in key for key in lake.stored())
    proof, after = lake.proof(0), lake.progress
    assert [(c.run, c.late, c.rows) for c in proof.runs] == [(f"{c.run}+r1", c.late, c.rows) for c in old.runs]
    assert (proof.status, proof.complete_as_of, proof.closed_by) == ("complete", old.complete_as_of, old.closed_by)
    assert (after.partitions, after.closed_until) == (progress.partitions, progress.closed_until)
    # The interval's run is the rebuilt one from now on, and the schedule goes on as if nothing had been.
    stored = lake.stored()
    lake.run(1)
    lake.run(4)
    assert lake.stored() == stored
    assert lake.rebuild(hour(1).id) == f"{hour(1).id}+r2"
    replaced = {run.run: run.replaced_by for run in last_runs(lake.ledger, 9)}
    assert replaced[hour(1).id] == replaced[f"{hour(1).id}+r1"] == f"{hour(1).id}+r2"
    assert (replaced[hour(3).id], replaced[f"{hour(3).id}+r1"]) == (f"{hour(3).id}+r1", None)


def test_a_store_that_refuses_to_delete_does_not_stop_the_archive(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(key: str) -> None:
        raise PermanentError(f"access denied to {key}")

    monkeypatch.setattr(lake.store, "delete", refuse)
    lake.rebuild(hour(1).id)
    lake.run(4)
    assert lake.progress.settled == 4
    assert {f.kind for f in lake.audit().findings} == {"superseded-left"}
    monkeypatch.undo()
    clean_up(lake.ledger, lake.now + timedelta(days=2))
    assert lake.audit().findings == ()


def test_what_kafka_does_not_have_any_more_stays_as_it_is(lake: Lake) -> None:
    before = {stat.key: stat.etag for stat in lake.store.list("orders/")}
    work = rebuild_run(lake.context, hour(1).id)
    lake.logs[P0] = Range(1, 4)
    with pytest.raises(PolicyError, match="cannot be rebuilt; its stored objects stay as they are"):
        lake.job().run(work.archive[0])
    with pytest.raises(PolicyError, match="from offset 0, but Kafka has removed everything before 1"):
        lake.rebuild(hour(1).id, keep=True)
    assert {stat.key: stat.etag for stat in lake.store.list("orders/")} == before


def test_records_that_were_compacted_since_are_not_given_up(lake: Lake) -> None:
    before = lake.stored()
    lake.absent.add((P0, 1))
    with pytest.raises(IntegrityError, match=r"lacks 1 records of .* that were archived"):
        lake.rebuild(hour(1).id)
    assert lake.stored() == before


class TestFewer:
    """A rebuild that would take archived records out of the archive, because settings have changed since."""

    @pytest.fixture
    def strict(self) -> Lake:
        """One settled run of four records; two of them are dead letters, now that values are JSON."""
        odd = {(P0, 0): {"value": b"{"}, (P0, 1): {"value": b"{"}, (P0, 2): {"value": b"2"}, (P0, 3): {"value": b"3"}}
        lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 4)}, policies={"bad_record": "dead_letter"}, odd=odd)
        lake.run(3)
        source = lake.archive.source.model_copy(update={"value": Decoding(decode="json")})
        lake.configure(lake.archive.model_copy(update={"source": source}))
        return lake

    def test_it_stops_before_anything_is_visible_and_names_the_way_on(self, strict: Lake) -> None:
        before, run = strict.stored(), hour(3).id
        with pytest.raises(IntegrityError) as caught:
            strict.rebuild(run)
        assert str(caught.value).startswith(
            f"run {run} is not rebuilt: 2 records would be archived in the place of 4 (2 more dead letters). The "
            f"stored objects stay as they are. Correct the settings, or, if fewer are right: `airflow archive rebuild "
            f"{strict.name} --run {run} --fewer`"
        )
        assert strict.stored() == before

    def test_it_is_carried_out_if_that_is_asked_for_also_after_it_was_refused(self, strict: Lake) -> None:
        with pytest.raises(IntegrityError, match="is not rebuilt"):
            strict.rebuild(hour(3).id)
        rebuilt = strict.rebuild(hour(3).id, fewer=True)
        manifest = strict.ledger.manifest(rebuilt)
        assert manifest is not None
        assert (rebuilt, manifest.account["archived"], manifest.account["dead_lettered"]) == (f"{hour(3).id}+r2", 2, 2)

    def test_records_that_are_archived_now_and_were_not_then_are_welcome(self, strict: Lake) -> None:
        strict.rebuild(hour(3).id, fewer=True)
        source = strict.archive.source.model_copy(update={"value": Decoding()})
        strict.configure(strict.archive.model_copy(update={"source": source}))
        manifest = strict.ledger.manifest(strict.rebuild(hour(3).id))
        assert manifest is not None
        assert manifest.account["archived"] == 4

    def test_an_unfinished_rebuild_of_a_release_before_keeps_its_rule(self, strict: Lake) -> None:
        """Its plan says nothing of it."""
        assert "refuses_fewer" not in strict.planned(hour(3).id).model_dump()
        run = strict.rebuild(hour(3).id, until="planned")
        plan = strict.planned(run)
        assert plan.refuses_fewer
        assert "refuses_fewer" not in plan.model_copy(update={"refuses_fewer": False}).model_dump()


def test_a_run_that_is_not_final_is_taken_over_by_its_rebuild(lake: Lake) -> None:
    before = lake.stored()
    lake.logs[P0] = Range(0, 5)
    run = lake.run(4, until="written")
    lake.rebuild(run)
    end = lake.commit(run)
    assert (end.outcome, end.by) == ("replaced", f"{run}+r1")
    # Whoever is still at work on the run that was replaced is harmless.
    lake.run(4)
    [new] = set(lake.stored()) - set(before)
    assert new.endswith("+r1.jsonl.gz")
    assert lake.audit(deep=True).verdict == "clean"
