"""The judgement of a restore's target: a refusal names all reasons at once, each with its remedy."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.model.restore import RestoreOptions
from kafka_archiver.model.snapshots import TopicSnapshot
from kafka_archiver.model.target_facts import TargetFacts, TopicDemand, TopicFacts
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.restore.preflight import SAFE, creation, judge, require

PRESENT = datetime(2026, 11, 25, tzinfo=UTC)
EMPTY, EXACT = Range(5, 5), RestoreOptions()
DEMAND = TopicDemand("orders", 1, frozenset({0}), to_ms(PRESENT - timedelta(days=30)), to_ms(PRESENT), 1_000_000)


def facts(settings: dict[str, str] | None, log: Range = EMPTY, **more: object) -> TargetFacts:
    topic = TopicFacts("orders", "id", 3, (log,), settings, frozenset({"WRITE", "READ"}))
    target = TargetFacts("c", 3, KafkaTools("b:9092"), {"orders": topic}, "g", "ids-", frozenset({"READ"}))
    return target._replace(**more)  # type: ignore[arg-type]


def kinds(target: TargetFacts, options: RestoreOptions = EXACT) -> list[str]:
    return [finding.kind for finding in judge([DEMAND], target, options, PRESENT)]


def test_a_target_that_fits_has_no_findings() -> None:
    assert kinds(facts({})) == kinds(facts(SAFE)) == []
    # Behind what was removed already, a log is empty, too.
    assert kinds(facts(SAFE, Range(7, 8))) == ["target not empty"]


def test_all_reasons_are_named_at_once_with_one_command_for_all_settings() -> None:
    settings = {"retention.ms": "604800000", "max.message.bytes": "1000", "message.timestamp.before.max.ms": "5"}
    findings = judge([DEMAND], facts(settings, Range(0, 3)), RestoreOptions(), PRESENT)
    with pytest.raises(PolicyError) as caught:
        require(findings)
    message = str(caught.value)
    assert "not ready for this restore, for 4 reasons" in message
    assert "retention.ms is 604800000, expected -1" in message
    assert "remove records as old as 2026-10-26T00:00:00Z at once" in message
    commands = [action.command for action in caught.value.actions if action.command.startswith("kafka-configs")]
    assert commands == [
        "kafka-configs --bootstrap-server b:9092 --entity-type topics --entity-name orders --alter --add-config "
        f"message.timestamp.before.max.ms={2**63 - 1},retention.ms=-1,max.message.bytes=1000000"
    ]
    require([finding for finding in findings if finding.severity != "problem"])


def test_the_callers_options_allow_what_they_say() -> None:
    append_time = facts({"message.timestamp.type": "LogAppendTime", "retention.ms": "1"}, Range(0, 9))
    assert kinds(append_time) == ["target not empty", "broker's timestamps"]
    assert kinds(append_time, RestoreOptions(append=True, allow=("timestamps",))) == []


def test_settings_that_nobody_may_see_are_a_warning() -> None:
    [finding] = judge([DEMAND], facts(None), RestoreOptions(), PRESENT)
    assert (finding.kind, finding.severity) == ("settings unknown", "warning")


@given(
    st.dictionaries(st.sampled_from([*SAFE, "segment.ms", "min.insync.replicas"]), st.sampled_from(["1", "2"])),
    st.integers(1, 5),
    st.integers(1, 9),
)
def test_a_created_topic_is_fit_for_the_restore_and_gets_the_sources_settings_later(
    own: dict[str, str], brokers: int, partitions: int
) -> None:
    source = TopicSnapshot(topic="orders", topic_id="x", partitions=partitions, replication=3, settings=own)
    planned = creation(DEMAND._replace(snapshot=source), brokers)
    topic = TopicFacts("orders", "id", planned.replication, (Range(0, 0),) * planned.partitions, planned.settings)
    assert kinds(facts({}, topics={"orders": topic})) == []
    later = {**planned.settings, **{name: value for name, value in planned.later.items() if value is not None}}
    for name in [name for name, value in planned.later.items() if value is None]:
        del later[name]
    same = {name: value for name, value in own.items() if name != "min.insync.replicas"}
    assert {name: value for name, value in later.items() if name in same} == same
    assert set(later) <= set(own)
    assert planned.replication <= brokers
