"""Losses, records set aside and hours never audited are warnings until a person accepts them by name, on record."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.audit.documents import is_known
from kafka_archiver.audit.inspection import publish
from kafka_archiver.config import parse_archive
from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.model.acknowledged import Acknowledgement, checked_name
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.object_keys import acknowledged_document, acknowledged_prefix, split_acknowledged_document
from kafka_archiver.state.doctor.condition import check_condition
from kafka_archiver.state.health import judge
from kafka_archiver.state.overview import Snapshot, take_snapshot
from kafka_archiver.state.status.condition import open_findings
from kafka_archiver.state.status.facts import DagRun, Facts, TaskFailure
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.acknowledge import accept, take_back
from tests.support.lake import FIRST, Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
QUIET = Facts(dag_id="archive_orders")


@pytest.fixture
def lake() -> Lake:
    """Two of eight records are dead letters, and no audit ever ran."""
    odd = {(P0, offset): {"value": b"two\nlines"} for offset in (1, 5)}
    lake = Lake(
        MemoryStore(uuid.uuid4().hex),
        {P0: Range(0, 8)},
        policies={"bad_record": "dead_letter", "lost_offsets": "record_loss"},
        odd=odd,
    )
    lake.run(2)
    return lake


def audited(lake: Lake) -> None:
    publish(lake.store, lake.audit())


def snapshot_of(lake: Lake) -> Snapshot:
    return take_snapshot(lake.context, QUIET)


def names(lake: Lake) -> list[str]:
    return [finding.name for finding in snapshot_of(lake).troubles if finding.name]


def verdicts(lake: Lake) -> dict[str, str]:
    archive = parse_archive("archive: orders\nsource: {topics: [orders]}\nstore: {url: 's3://b/l'}\n", "orders.yaml")
    return {check.kind: check.severity for check in judge(archive, snapshot_of(lake), lake.now)}


def checks(lake: Lake) -> dict[str, Finding]:
    return {check.kind: check for check in check_condition(lake.context, QUIET, True)}


def test_an_archive_that_was_never_audited_is_not_green(lake: Lake) -> None:
    assert "never-audited" in names(lake)
    assert verdicts(lake)["audit"] == "warning"
    paused = QUIET.model_copy(update={"audit_paused": True})
    [finding] = (f for f in take_snapshot(lake.context, paused).troubles if f.kind == "never audited")
    assert finding.observed.endswith(f"and DAG audit_{lake.name} is paused")
    assert finding.steps[0] == f"airflow dags unpause audit_{lake.name}"
    accept(lake.context, open_findings(lake.context, QUIET), "never-audited", "ann")
    assert (verdicts(lake)["audit"], checks(lake)["never audited"].severity) == ("ok", "ok")
    take_back(lake.context, "never-audited", "bob")
    assert "never-audited" in names(lake)
    audited(lake)
    assert "never-audited" not in names(lake)


def test_dead_letters_warn_until_they_are_accepted_by_name_and_one_more_warns_again(lake: Lake) -> None:
    audited(lake)
    assert names(lake) == ["dead-letters:1"]
    [finding] = (f for f in snapshot_of(lake).troubles if f.name)
    assert finding.severity == "warning"
    assert finding.text.startswith("2 records could not be archived and are stored as dead letters, last by run ")
    assert finding.steps[1] == f"if this is accepted: airflow archive acknowledge {lake.name} dead-letters:1"
    assert verdicts(lake)["records"] == "warning"
    decision = accept(lake.context, open_findings(lake.context, QUIET), "dead-letters:1", "ann", "known since Monday")
    [accepted] = snapshot_of(lake).accepted
    assert (names(lake), verdicts(lake)["records"], accepted.severity) == ([], "ok", "ok")
    assert accepted.text.endswith(f"Accepted by {decision.who}")
    assert "ann at 2026-11-20T0" in decision.who
    assert decision.who.endswith(": known since Monday")
    assert checks(lake)["dead letters"].observed == accepted.text
    # The same run again changes nothing; another dead letter is another finding.
    lake.run(2)
    assert names(lake) == []
    lake.logs[P0] = Range(0, 9)
    lake.run(3)
    assert names(lake) == []
    lake.logs[P0], lake.odd[P0, 9] = Range(0, 10), {"value": b"x\ny"}
    lake.run(4)
    assert names(lake) == ["dead-letters:3"]
    with pytest.raises(ConfigError, match=r"no finding dead-letters:4 to accept now; expected one of dead-letters:3"):
        accept(lake.context, open_findings(lake.context, QUIET), "dead-letters:4", "ann")


def test_dead_letters_that_take_the_place_of_accepted_ones_warn_again(lake: Lake) -> None:
    audited(lake)
    lake.odd[P0, 6] = {"value": b"1" * 40}
    accept(lake.context, open_findings(lake.context, QUIET), "dead-letters:1", "ann")
    # The same letters again are the accepted ones.
    run = lake.rebuild(hour(2).id)
    assert names(lake) == []
    # As many records are archived as before, and others are dead letters.
    source = lake.archive.source.model_copy(update={"max_value_bytes": 30})
    store = lake.archive.store.model_copy(update={"content": "record"})
    lake.odd[P0, 7] = {"value": b"2" * 40}
    lake.configure(lake.archive.model_copy(update={"source": source, "store": store}))
    run = lake.rebuild(run.partition("+")[0])
    assert lake.manifest(run).account["dead_lettered"] == 2
    assert names(lake) == ["dead-letters:3"]


def test_a_decision_that_is_damaged_accepts_nothing_and_hides_nothing(lake: Lake) -> None:
    accept(lake.context, open_findings(lake.context, QUIET), "dead-letters:1", "ann")
    lake.store.put(acknowledged_document(lake.name, "dead-letters:1", 1), b"{")
    assert set(names(lake)) == {"dead-letters:1", "never-audited"}
    [finding] = (f for f in snapshot_of(lake).troubles if f.name == "dead-letters:1")
    assert "000001.json is not a readable acknowledgement document" in finding.means
    assert finding.means.endswith("or delete the document, and accept it again")


def test_dead_letters_that_are_archived_later_need_nobody(lake: Lake) -> None:
    audited(lake)
    accept(lake.context, open_findings(lake.context, QUIET), "dead-letters:1", "ann")
    store = lake.archive.store.model_copy(update={"content": "record"})
    lake.configure(lake.archive.model_copy(update={"store": store}))
    lake.replay()
    assert (names(lake), snapshot_of(lake).accepted, snapshot_of(lake).dead_letters) == ([], (), 0)
    # Those that come after it are new, although there were as many before.
    values = lake.archive.store.model_copy(update={"content": "value"})
    lake.configure(lake.archive.model_copy(update={"store": values}))
    lake.logs[P0], lake.odd[P0, 9] = Range(0, 10), {"value": b"x\ny"}
    lake.run(3)
    assert names(lake) == ["dead-letters:3"]


def test_a_recorded_loss_warns_until_it_is_accepted_and_a_new_one_warns_again(lake: Lake) -> None:
    audited(lake)
    lake.logs[P0] = Range(10, 12)
    lake.run(11)
    assert "lost-offsets:2" in names(lake)
    assert (verdicts(lake)["records"], verdicts(lake)["hours"]) == ("warning", "warning")
    before = snapshot_of(lake).incomplete
    accept(lake.context, open_findings(lake.context, QUIET), "lost-offsets:2", "ann")
    assert "lost-offsets:2" not in names(lake)
    # The hours that lack nothing else are accepted with it, and stay incomplete.
    assert verdicts(lake)["hours"] == "ok"
    snapshot = snapshot_of(lake)
    assert [(hour.hour_start, hour.accepted) for hour in snapshot.incomplete or ()] == [
        (hour.hour_start, True) for hour in before or ()
    ]
    assert "incomplete hours" in [finding.kind for finding in snapshot.accepted]
    lake.logs[P0] = Range(20, 22)
    lake.run(12)
    assert "lost-offsets:3" in names(lake)
    assert checks(lake)["recorded loss"].severity == "warning"
    assert verdicts(lake)["hours"] == "warning"
    accept(lake.context, open_findings(lake.context, QUIET), "lost-offsets:3", "ann")
    take_back(lake.context, "lost-offsets:3", "ann")
    assert verdicts(lake)["hours"] == "warning"


def test_a_failed_request_is_accepted_by_its_run(lake: Lake) -> None:
    audited(lake)
    failure = TaskFailure(task="plan", attempts=1, permanent=True, cause="Kafka has removed it")
    run = DagRun(
        run_id="manual__2026-11-20T05:00:00+00:00", state="failed", forward=False, date=FIRST, due=FIRST, ended=FIRST,
        failure=failure,
    )  # fmt: skip
    facts = Facts(dag_id="archive_orders", runs=(run,))
    name = f"failed-request:{run.run_id}"
    assert name in [finding.name for finding in open_findings(lake.context, facts)]
    first = accept(lake.context, open_findings(lake.context, facts), name, "ann")
    assert name not in [finding.name for finding in open_findings(lake.context, facts)]
    # It is cleared, and fails again for another reason.
    other = run.model_copy(update={"failure": failure.model_copy(update={"cause": "the disk is full"})})
    facts = facts.model_copy(update={"runs": (other,)})
    assert name in [finding.name for finding in open_findings(lake.context, facts)]
    assert accept(lake.context, open_findings(lake.context, facts), name, "ann").number == first.number + 1
    assert name not in [finding.name for finding in open_findings(lake.context, facts)]


def test_every_decision_stays_on_record_and_the_last_one_counts(lake: Lake) -> None:
    name = "dead-letters:1"
    first = accept(lake.context, open_findings(lake.context, QUIET), name, "ann")
    assert accept(lake.context, open_findings(lake.context, QUIET), name, "bob") == first
    back = take_back(lake.context, name, "bob", "too many")
    with pytest.raises(ConfigError, match=r"nobody has accepted dead-letters:1"):
        take_back(lake.context, name, "bob")
    again = accept(lake.context, open_findings(lake.context, QUIET), name, "cid")
    assert [d.number for d in (first, back, again)] == [1, 2, 3]
    assert len(list(lake.store.list(acknowledged_prefix(lake.name)))) == 3
    assert lake.ledger.acknowledgements() == [again]
    # They are no strangers to an audit.
    assert lake.audit().damage == ()
    # Two at once: one wins, and the other is told.
    assert not lake.ledger.acknowledge(again.model_copy(update={"by": "dan"}))


def test_two_that_decide_at_once_do_not_overwrite_each_other(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    accept(lake.context, open_findings(lake.context, QUIET), "dead-letters:1", "ann")
    monkeypatch.setattr(type(lake.ledger), "acknowledgement", lambda *_: None)
    with pytest.raises(TransientError, match="somebody else has decided about dead-letters:1 meanwhile"):
        accept(lake.context, open_findings(lake.context, QUIET), "dead-letters:1", "bob")


@pytest.mark.parametrize("name", ["", "--list", "a b", "Dead", "dead-letters:", "x:a\nb", "x:" + "y" * 301])
def test_a_name_that_no_finding_has_is_refused(lake: Lake, name: str) -> None:
    with pytest.raises(ConfigError, match="is not the name of a finding"):
        accept(lake.context, open_findings(lake.context, QUIET), name, "ann")


@given(st.from_regex(r"[a-z][a-z-]*(:[^\x00-\x1f\x7f]{1,30})?", fullmatch=True), st.integers(1, 999_999))
def test_each_decision_has_a_key_that_tells_it(name: str, number: int) -> None:
    key = acknowledged_document("orders", checked_name(name), number)
    assert split_acknowledged_document("orders", key) == (name, number)
    assert is_known("orders", key)
    assert not is_known("others", key)


@given(st.builds(dict, by=st.text(min_size=1, max_size=50), note=st.text(max_size=50), observed=st.text(max_size=50)))
def test_a_decision_is_read_as_it_was_written(texts: dict[str, Any]) -> None:
    decision = Acknowledgement(
        archive="orders",
        finding="dead-letters:1",
        number=1,
        accepted=True,
        at=hour(1).end,
        kind="dead letters",
        **texts,
    )
    assert Acknowledgement.from_json(decision.to_json(), "x") == decision
