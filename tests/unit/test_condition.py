"""The condition of an archive by the brokers and its ledger: `status` says what the next planner stops at."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.audit.inspection import audit, publish
from kafka_archiver.config import Archive
from kafka_archiver.config.source import Source
from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import group_stamp
from kafka_archiver.kafka.first_records import LogEnd
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import PermanentError, PolicyError, TransientError
from kafka_archiver.model.findings import Finding
from kafka_archiver.planning.survey import OvertakenError
from kafka_archiver.state.doctor.condition import check_condition
from kafka_archiver.state.status import ArchiveStatus, damage, status
from kafka_archiver.state.status.condition import condition, observe, of_transactions, open_findings
from kafka_archiver.state.status.facts import DagRun, Facts
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.acknowledge import accept
from kafka_archiver.work.plan import propose
from tests.support.brokers import Brokers
from tests.support.runs import DAY, P0, P1, hour, run

pytestmark = pytest.mark.unit

QUIET = Facts(dag_id="archive_orders")


class CutBrokers(Brokers):
    """The log was cut by an unclean election, and has grown since."""

    def truncated(self, ends: Any, seconds: float = 10.0) -> dict[TopicPartition, int | None]:
        return dict.fromkeys(ends, 0)

    def high_watermarks(self, names: Any) -> dict[TopicPartition, LogEnd]:
        return {name: LogEnd(self.logs[name].end, 9) for name in names}


def settled(brokers: type[Brokers] = Brokers, source: dict[str, Any] | None = None, **policies: str) -> Context:
    """An archive of two partitions with three records each, whose one run is settled."""
    archive = Archive.model_validate(
        {
            "archive": "orders",
            "source": source or {"topics": ["orders"]},
            "store": {"url": "s3://b/p"},
            "policies": policies,
        }
    )
    store = MemoryStore(uuid.uuid4().hex)
    first = Brokers({P0: Range(0, 3), P1: Range(0, 3)}, first=to_ms(DAY) // 3_600_000)
    context: Any = Context(archive, first, store, Ledger(store, "orders"))  # type: ignore[arg-type]
    run(context, 2)
    accept(context, open_findings(context, QUIET), "never-audited", "ann")
    fields = {name: getattr(first, name) for name in ("logs", "first", "group", "stamps")}
    return replace(context, cluster=brokers(**fields))


def brokers_of(context: Context) -> Brokers:
    assert isinstance(context.cluster, Brokers)
    return context.cluster


def status_now(context: Context) -> ArchiveStatus:
    return status(context, QUIET)


def only(context: Context) -> Finding:
    [trouble] = condition(context, observe(context), QUIET).open
    return trouble


def recreate(context: Context, records: int) -> None:
    """Deleted and made again, with so many records in its first partition."""
    brokers = brokers_of(context)
    brokers.ids["orders"] = "another"
    brokers.logs = {P0: Range(0, records), P1: Range(0, 0)}
    brokers.group.clear()


def test_a_moved_group() -> None:
    context = settled()
    brokers_of(context).group[P1] = 1
    trouble = only(context)
    assert (trouble.kind, trouble.severity) == ("moved group", "problem")
    assert trouble.text.startswith(
        "group archiver-orders stands at 1 in orders[1], but the ledger says it is archived up"
    )
    follow = '{"policies": {"moved_group": "follow_ledger"}}'
    assert trouble.steps[0] == f"airflow dags trigger archive_orders --conf '{follow}'"
    assert trouble.steps[1] == (
        "kafka-consumer-groups --bootstrap-server broker:9092 --group archiver-orders --topic orders:1 "
        "--reset-offsets --to-offset 3 --execute"
    )
    assert '"new_generation"' in trouble.steps[2]
    assert "new_generation: the log is archived anew, beside the old objects" in trouble.text
    assert "follow_ledger: archiving goes on where the ledger ends" in trouble.text


def test_what_waits_before_and_during_the_first_run_begins_at_source_start() -> None:
    source = {"topics": ["orders"], "start": (DAY + timedelta(hours=3)).isoformat()}
    archive = Archive.model_validate({"archive": "orders", "source": source, "store": {"url": "s3://b/p"}})
    store = MemoryStore(uuid.uuid4().hex)
    brokers: Any = Brokers({P0: Range(0, 9), P1: Range(0, 5)}, first=to_ms(DAY) // 3_600_000)
    context = Context(archive, brokers, store, Ledger(store, "orders"))
    assert status_now(context).lag == propose(context, hour(9), "scheduled").count == 8
    run(context, 9, until="planned")
    assert status_now(context).lag == 8


def test_a_recreated_topic_and_what_waits_in_it() -> None:
    """It has fewer records than the old one had; all of them wait."""
    context = settled()
    recreate(context, 2)
    state = status_now(context)
    [trouble] = state.troubles
    assert (trouble.kind, trouble.severity) == ("recreated topic", "problem")
    assert "deleted and made again: the ledger knows it as id-of-orders, the brokers as another" in trouble.text
    assert '"recreated_topic": "new_generation"' in trouble.steps[0]
    assert (state.lag, state.oldest_unarchived) == (2, DAY)


def test_a_recreated_topic_that_a_run_has_begun_to_archive_counts_from_its_beginning() -> None:
    context = settled(recreated_topic="new_generation")
    recreate(context, 2)
    [trouble] = status_now(context).troubles
    assert (trouble.kind, trouble.severity) == ("recreated topic", "warning")
    assert status_now(context).lag == 2
    run(context, 3, until="planned")
    assert [trouble.kind for trouble in status_now(context).troubles] == ["unfinished run"]
    assert status_now(context).lag == 2


def test_a_cut_log() -> None:
    context = settled(CutBrokers)
    brokers_of(context).logs = {P0: Range(0, 4), P1: Range(0, 4)}
    state = status_now(context)
    assert [trouble.kind for trouble in state.troubles] == ["recreated topic"] * 2
    assert "An unclean leader election cut the log" in state.troubles[0].text
    assert state.lag == 8


def test_a_truncated_log() -> None:
    context = settled()
    brokers_of(context).logs[P0] = Range(0, 1)
    trouble = only(context)
    assert trouble.kind == "recreated topic"
    assert "stands at 3, past the end of the log at 1" in trouble.text
    assert status_now(context).lag == 1


def test_retention_behind_the_archive() -> None:
    context = settled()
    brokers_of(context).logs[P0] = Range(5, 9)
    trouble = only(context)
    assert (trouble.kind, trouble.severity) == ("lost offsets", "problem")
    assert "2 offsets of orders[0] are gone" in trouble.text
    assert '"lost_offsets": "record_loss"' in trouble.steps[0]


def test_a_group_whose_offsets_are_gone() -> None:
    context = settled(missing_group="fail")
    del brokers_of(context).group[P0]
    trouble = only(context)
    assert (trouble.kind, trouble.severity) == ("missing group", "problem")
    assert '"missing_group": "resume_from_ledger"' in trouble.steps[0]


class HoldingBrokers(Brokers):
    """A transaction is open since offset 3."""

    def log_ends(self, names: Any, isolation: str) -> dict[TopicPartition, int]:
        ends = super().log_ends(names, isolation)
        return {**ends, P1: min(3, ends[P1])} if isolation == "read_committed" else ends


def test_a_transaction_that_nobody_ends() -> None:
    context = settled(HoldingBrokers, {"topics": ["orders"], "settle": 0})
    brokers_of(context).logs = {P0: Range(0, 5), P1: Range(0, 6)}
    # Nobody knows how long it is open.
    assert status_now(context).troubles == ()
    run(context, 3)
    observed, moment = observe(context), hour(3).end + timedelta(minutes=5)
    assert not list(of_transactions(observed.partitions, observed.expected.marks, moment + timedelta(minutes=59)))
    trouble = only(context)
    assert (trouble.kind, trouble.severity) == ("open transaction", "problem")
    assert "open at 2026-11-20T04:05:00Z still holds back 3 offsets of orders[1] from 3 on" in trouble.text
    asked = "kafka-transactions --bootstrap-server broker:9092"
    assert trouble.steps == (
        f"{asked} describe-producers --topic orders --partition 1",
        f"{asked} abort --topic orders --partition 1 --start-offset 3",
    )
    # It has ended; what it held back is archived by the next run.
    plain = replace(context, cluster=Brokers(**vars(brokers_of(context))))
    assert status_now(plain).troubles == ()
    run(plain, 4)
    assert status_now(context).troubles == ()


def test_a_group_with_live_members() -> None:
    context = settled()
    brokers_of(context).live = ["nosy@10.0.0.1"]
    trouble = only(context)
    assert (trouble.kind, trouble.severity) == ("group in use", "problem")
    assert "live members: nosy@10.0.0.1" in trouble.text
    assert trouble.steps == (
        "kafka-consumer-groups --bootstrap-server broker:9092 --describe --group archiver-orders --members",
    )


def test_a_topic_that_a_pattern_does_not_see_any_more() -> None:
    context = settled(source={"pattern": "o.*"})
    brokers_of(context).logs = {TopicPartition("others", 0): Range(0, 1)}
    trouble = only(context)
    assert (trouble.kind, trouble.severity) == ("topic gone", "problem")
    assert "topics orders match source.pattern and were archived before" in trouble.text
    assert trouble.steps == ("kafka-topics --bootstrap-server broker:9092 --list",)


@pytest.mark.parametrize("source", [{"topics": ["others"]}, {"pattern": "other.*"}])
def test_a_topic_that_the_yaml_names_no_longer_warns_while_records_of_it_are_not_archived(
    source: dict[str, Any],
) -> None:
    context = settled()
    brokers = brokers_of(context)
    brokers.logs |= {TopicPartition("others", 0): Range(0, 1)}
    archive = context.archive.model_copy(update={"source": Source.model_validate(source)})
    others = replace(context, archive=archive)
    # All of it is archived.
    assert status_now(others).troubles == ()
    brokers.logs |= {P0: Range(4, 6), P1: Range(0, 4), TopicPartition("orders", 2): Range(0, 5)}
    trouble = only(others)
    assert (trouble.kind, trouble.severity, trouble.name) == ("topic not read", "warning", "topic-not-read:orders:6")
    key = f"source.{next(iter(source))}"
    assert trouble.text == (
        f"{key} names topic orders no longer, and 9 offsets of it were never archived, 1 of which Kafka has removed"
    )
    assert trouble.steps == (
        f"put orders back into {key}, at least until a run has archived the rest",
        "if this is accepted: airflow archive acknowledge orders topic-not-read:orders:6",
    )
    assert [c.kind for c in check_condition(others, QUIET, True) if c.severity == "warning"] == ["topic not read"]
    # Whoever reads the topic again, and then no longer, decides anew.
    accept(others, open_findings(others, QUIET), "topic-not-read:orders:6", "ann")
    state = status_now(others)
    assert (state.troubles, [f.kind for f in state.accepted]) == ((), ["never audited", "topic not read"])
    brokers.logs[P0] = Range(3, 6)
    run(context, 3)
    assert status_now(others).troubles == ()
    brokers.logs[P0] = Range(3, 7)
    assert only(others).name == "topic-not-read:orders:15"
    # Made again: nobody has read the new log.
    brokers.ids["orders"] = "another"
    brokers.logs |= {P0: Range(0, 2), P1: Range(0, 0), TopicPartition("orders", 2): Range(0, 0)}
    assert "2 offsets of it were never archived" in only(others).text
    brokers.logs = {TopicPartition("others", 0): Range(0, 1)}
    assert status_now(others).troubles == ()


def test_a_topic_that_the_yaml_names_no_longer_and_the_brokers_do_not_show() -> None:
    """Its rights may be gone with it: `status` answers all the same."""

    class Silent(Brokers):
        failing: type[Exception] = PermanentError

        def topic_ids(self, names: Any) -> dict[str, str | None]:
            if "orders" in names:
                raise self.failing("describe topic orders: not allowed")
            return super().topic_ids(names)

    context = settled(Silent)
    brokers_of(context).logs |= {TopicPartition("others", 0): Range(0, 1)}
    archive = context.archive.model_copy(update={"source": Source.model_validate({"topics": ["others"]})})
    others = replace(context, archive=archive)
    assert only(others).text.endswith(
        "how many of its offsets were never archived is unknown: describe topic orders: not allowed"
    )
    # `acknowledge` then shows what the ledger knows.
    Silent.failing = TransientError
    assert open_findings(others, QUIET) == ()


def test_other_brokers() -> None:
    context = settled()

    class Elsewhere(Brokers):
        def cluster_id(self) -> str:
            return "another-cluster"

    brokers = brokers_of(context)
    moved = Elsewhere(brokers.logs, brokers.first, brokers.group, brokers.stamps)
    trouble = only(replace(context, cluster=moved))  # type: ignore[arg-type]
    assert (trouble.kind, trouble.severity, trouble.steps) == (
        "other cluster",
        "warning",
        ("airflow connections get kafka_default",),
    )


def test_damage_that_the_last_audit_found_until_an_audit_finds_none() -> None:
    context = settled()
    # Nobody has written the objects of this run.
    report = audit(context.archive, context.store, DAY)
    publish(context.store, report)
    trouble = only(context)
    assert (trouble.kind, trouble.severity) == ("damaged", "problem")
    assert trouble.text == (
        "the audit at 2026-11-20T00:00:00Z found the archive damaged: 2 objects are missing: "
        f"{report.damage[0].subject} and others"
    )
    assert trouble.steps == ("airflow archive repair orders", "airflow dags trigger audit_orders")
    publish(context.store, report.model_copy(update={"deep": True}))
    assert only(context).steps == (
        "airflow archive repair orders --deep",
        "airflow dags trigger audit_orders --conf '{\"deep\": true}'",
    )
    # The present state of the group is asked from the brokers.
    moved = report.damage[0].model_copy(update={"kind": "group-moved"})
    for later in {"findings": (moved,)}, {"findings": (), "verdict": "clean"}:
        publish(context.store, report.model_copy(update=later))
        assert status_now(context).troubles == ()


def test_only_the_beginning_of_a_long_report_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    context = settled()
    key = publish(context.store, audit(context.archive, context.store, DAY))
    kinds = []
    for length in range(1, len(context.store.get(key) or b"")):
        monkeypatch.setattr(damage, "HEAD", length)
        [trouble] = damage.of_audit(context.ledger, 1)
        kinds.append((trouble.kind, trouble.severity))
    unknown = kinds.count(("no report", "warning"))
    assert unknown < 400, "the verdict comes first"
    assert kinds[unknown:] == [("damaged", "problem")] * (len(kinds) - unknown)
    assert "2 or more objects are missing: orders/o+0+0" in trouble.text


def test_offsets_that_kafka_removed_before_a_run_took_them_are_counted_by_partition() -> None:
    context = settled()
    brokers: Any = context.cluster
    brokers.logs[P0] = Range(brokers.logs[P0].end + 5, brokers.logs[P0].end + 7)
    partitions = {(p.topic, p.partition): p for p in status_now(context).partitions}
    assert {name: p.gone for name, p in partitions.items() if p.gone} == {P0: 5}


@pytest.mark.parametrize(
    ("policy", "choice", "change"),
    [
        ("moved_group", "follow_ledger", lambda b: b.group.update({P1: 1})),
        ("missing_group", "resume_from_ledger", lambda b: b.group.clear()),
        ("lost_offsets", "record_loss", lambda b: b.logs.update({P0: Range(5, 9)})),
    ],
)
def test_what_a_policy_decides_is_a_warning(policy: str, choice: str, change: Callable[[Brokers], None]) -> None:
    context = settled(**{policy: choice})
    change(brokers_of(context))
    for trouble in condition(context, observe(context), QUIET).open:
        assert (trouble.kind, trouble.severity) == (policy.replace("_", " "), "warning")
        assert choice in trouble.text


def test_what_stops_the_archive_comes_first() -> None:
    context = settled()
    brokers_of(context).logs[P0] = Range(0, 5)
    brokers_of(context).group.clear()
    ran = DagRun(
        run_id="manual", state="success", date=hour(0).start, due=hour(0).start, begun=hour(0).start, forward=True
    )
    troubles = status(context, Facts(dag_id="archive_orders", paused=True, runs=(ran,))).troubles
    assert [trouble.kind for trouble in troubles] == ["paused", "missing group", "missing group"]


def test_a_run_that_goes_on_while_we_look_is_looked_at_again() -> None:
    context = settled()

    class Busy(Brokers):
        """A run has put the group there, when it is asked for the first time, that the ledger had not yet."""

        asked = 0

        def positions(self, group: str, names: Any) -> Any:
            self.asked += 1
            positions = super().positions(group, names)
            return {
                name: place._replace(stamp=group_stamp("orders", 7)) for name, place in positions.items() if place
            } | (positions if self.asked > 1 else {})

    brokers = brokers_of(context)
    busy = Busy(brokers.logs, brokers.first, brokers.group, brokers.stamps)
    assert status_now(replace(context, cluster=busy)).troubles == ()  # type: ignore[arg-type]
    assert busy.asked == 2


def test_a_ledger_that_is_older_than_the_group_is_named() -> None:
    context = settled()
    brokers_of(context).move_group("archiver-orders", {P0: 3}, group_stamp("orders", 7))
    delete = "`kafka-consumer-groups --bootstrap-server broker:9092 --delete --group archiver-orders`"
    with pytest.raises(OvertakenError, match=f"the ledger is older than the group: .* Then {delete}"):
        observe(context)


def test_nobody_waits_for_open_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a minute, by default, for each archive."""
    context = settled()

    def refuse(_: float) -> None:
        raise AssertionError("somebody waits")

    monkeypatch.setattr("time.sleep", refuse)

    class Open(Brokers):
        """A transaction is open, always."""

        def log_ends(self, names: Any, isolation: str) -> dict[TopicPartition, int]:
            return {name: self.logs[name].end - (isolation == "read_committed") for name in names}

    brokers = brokers_of(context)
    logs = {name: Range(0, 5) for name in brokers.logs}
    waiting = replace(context, cluster=Open(logs, brokers.first, brokers.group, brokers.stamps))  # type: ignore[arg-type]
    assert [state.log_end for state in observe(waiting).partitions] == [4, 4]


@given(
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.dictionaries(st.sampled_from([P0, P1]), st.integers(0, 9)),
    st.booleans(),
    st.booleans(),
    st.sampled_from([{}, {"moved_group": "follow_ledger"}, {"lost_offsets": "record_loss"},
                     {"missing_group": "resume_from_ledger"}, {"recreated_topic": "new_generation"}]),
)  # fmt: skip
def test_a_planner_stops_exactly_where_a_problem_is_shown(
    offsets: tuple[int, int],
    other: tuple[int, int],
    group: dict[TopicPartition, int],
    moved: bool,
    recreated: bool,
    policies: dict[str, str],
) -> None:
    context = settled(**policies)
    brokers = brokers_of(context)
    brokers.logs = {P0: Range(*sorted(offsets)), P1: Range(*sorted(other))}
    if moved:
        brokers.group = group
    if recreated:
        brokers.ids["orders"] = "another"
    state = status_now(context)
    shown = [trouble for trouble in state.troubles if trouble.severity == "problem"]
    if shown:
        with pytest.raises(PolicyError) as stopped:
            propose(context, hour(3), "scheduled")
        # A planner names all of them at once.
        assert any(trouble.text.partition(". Choices: ")[0] in stopped.value.message for trouble in shown)
    else:
        assert state.lag == sum(p.count for p in propose(context, hour(3), "scheduled").partitions)
