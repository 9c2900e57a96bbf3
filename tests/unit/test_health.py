"""The facts of an archive that make it unhealthy."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.messages.actions import words
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.findings import Finding, Severity, problem, warning
from kafka_archiver.state.health import VERDICTS, HealthCheck, judge, verdict_of
from kafka_archiver.state.health.judge import STALE, TOO_OLD, _loaded, plugin_checks
from kafka_archiver.state.overview import LastAudit, Snapshot
from kafka_archiver.state.status import ArchiveStatus
from kafka_archiver.state.status.step import PartitionStatus

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 20, 12, 5, tzinfo=UTC)
MINIMAL = "archive: orders\nsource: {topics: [orders]}\nstore: {url: 's3://bucket/lake'}\n"
HOUR = timedelta(hours=1)


def archive(more: str = "") -> Archive:
    return parse_archive(MINIMAL + more, "orders.yaml")


def snapshot(lag: int = 0, **more: Any) -> Snapshot:
    """An archive in the best of states."""
    partition = PartitionStatus(
        topic="orders", partition=0, committed=9, archived_to=9, log_start=0, log_end=9 + lag, lag=lag,
        oldest_unarchived=None,
    )  # fmt: skip
    state = ArchiveStatus(partitions=(partition,), last_commit=None)
    well: dict[str, Any] = {
        "taken_at": NOW,
        "interval": HOUR,
        "begun": NOW - timedelta(days=30),
        "closed_until": NOW.replace(minute=0),
        "audit": LastAudit(at=NOW - HOUR, deep=False, verdict="clean", errors=0, counts=None),
        "state": state,
        "incomplete": (),
    }
    return Snapshot(archive="orders", **{**well, **more})


def verdicts(state: Snapshot | None, more: str = "") -> dict[str, str]:
    return {check.kind: VERDICTS[check.severity] for check in judge(archive(more), state, NOW)}


def test_an_archive_in_order_is_ok() -> None:
    assert set(verdicts(snapshot()).values()) == {"ok"}
    assert list(verdicts(snapshot())) == [
        *("answers", "lag", "age", "hours", "records", "runs", "plans", "brokers", "audit")
    ]


def test_an_archive_that_nobody_has_looked_at_is_not_called_healthy() -> None:
    assert verdicts(None) == {"answers": "unknown"}


@given(st.integers(0, 100), st.integers(0, 100))
def test_the_lag_fails_only_beyond_the_limit(lag: int, most: int) -> None:
    shown = verdicts(snapshot(lag), f"health: {{max_lag_records: {most}}}")
    assert shown["lag"] == ("failing" if lag > most else "ok")
    assert verdicts(snapshot(lag))["lag"] == "ok"


@pytest.mark.parametrize(
    ("at_work", "command"), [(True, "airflow archive runs orders"), (False, "airflow dags trigger")]
)
def test_nobody_is_told_to_start_a_run_while_one_is_at_work(at_work: bool, command: str) -> None:
    checks = judge(archive("health: {max_lag_records: 1}"), snapshot(5, at_work=at_work), NOW)
    [lag] = [check for check in checks if check.kind == "lag"]
    assert lag.steps[0].startswith(command)


@pytest.mark.parametrize(
    ("hours", "more", "expected"),
    [
        (3, "", "ok"),
        (4, "", "failing"),
        (4, "health: {max_age: 5h}", "ok"),
        (3, "health: {max_age: 90m}", "failing"),
    ],
)
def test_the_age_of_the_last_complete_hour_fails_beyond_two_intervals_and_an_hour(
    hours: int, more: str, expected: str
) -> None:
    closed = NOW - timedelta(hours=hours)
    assert verdicts(snapshot(closed_until=closed), more)["age"] == expected
    # An archive that began as long ago and has no complete hour at all is not better.
    assert verdicts(snapshot(closed_until=None, begun=closed), more)["age"] == expected


def test_an_archive_without_a_schedule_has_no_age_unless_a_limit_is_given() -> None:
    state = snapshot(closed_until=NOW - timedelta(days=9), interval=None)
    assert verdicts(state)["age"] == "ok"
    assert verdicts(state, "health: {max_age: 2d}")["age"] == "failing"


def test_stale_answers_are_a_warning_then_unknown() -> None:
    assert verdicts(snapshot(taken_at=NOW - STALE))["answers"] == "ok"
    assert verdicts(snapshot(taken_at=NOW - STALE - HOUR / 60))["answers"] == "warning"
    assert verdicts(snapshot(taken_at=NOW - TOO_OLD - HOUR / 60))["answers"] == "unknown"


def test_brokers_that_do_not_answer_fail_with_the_reason_and_leave_the_lag_unknown() -> None:
    checks = {c.kind: c for c in judge(archive(), snapshot(state=None, error="no broker answers"), NOW)}
    assert (VERDICTS[checks["answers"].severity], checks["answers"].observed) == ("failing", "no broker answers")
    assert checks["answers"].steps == ("airflow archive doctor orders",)
    unknown = {name: check.observed for name, check in checks.items() if VERDICTS[check.severity] == "unknown"}
    assert unknown == dict.fromkeys(("lag", "brokers"), "unknown until the brokers answer")


def test_without_the_store_what_the_ledger_has_is_unknown_and_not_ok() -> None:
    state = Snapshot(archive="orders", taken_at=NOW, interval=HOUR, error="there is no such bucket")
    names = {"lag", "age", "hours", "records", "plans", "brokers", "audit"}
    assert {
        check.kind: check.observed for check in judge(archive(), state, NOW) if VERDICTS[check.severity] == "unknown"
    } == (dict.fromkeys(names, "unknown until the store answers"))


@pytest.mark.parametrize(
    ("name", "check"),
    [
        *[(name, "runs") for name in ("failed", "failed for good", "stuck", "overdue", "paused", "no dag")],
        ("unfinished run", "plans"),
        ("incomplete hours", "hours"),
        ("damaged", "audit"),
        ("lost offsets", "brokers"),
        ("recorded loss", "records"),
        ("dead letters", "records"),
        ("never audited", "audit"),
        ("failed request", "runs"),
        ("a trouble of tomorrow", "brokers"),
    ],
)
def test_a_trouble_shows_in_its_check_with_its_commands(name: str, check: str) -> None:
    for make, expected in ((problem, "failing"), (warning, "warning")):
        state = snapshot(troubles=(make(name, "what was found", words("airflow do")),))
        [failed_check] = [c for c in judge(archive(), state, NOW) if VERDICTS[c.severity] != "ok"]
        assert (failed_check.kind, VERDICTS[failed_check.severity], failed_check.steps) == (
            check,
            expected,
            ("airflow do",),
        )
        assert failed_check.observed == f"{name}: what was found"


def test_of_several_troubles_the_worst_is_told_first() -> None:
    state = snapshot(troubles=(warning("stuck", "slow"), problem("failed", "broken", words("repair it"))))
    [check] = [c for c in judge(archive(), state, NOW) if c.kind == "runs"]
    assert (check.severity, check.observed, check.steps) == ("problem", "failed: broken (and 1 more)", ("repair it",))


def test_an_audit_that_is_too_long_ago_is_a_warning() -> None:
    old = LastAudit(at=NOW - timedelta(days=4), deep=False, verdict="clean", errors=0, counts=None)
    assert verdicts(snapshot(audit=old))["audit"] == "warning"
    assert verdicts(snapshot(audit=old), "health: {max_audit_age: 5d}")["audit"] == "ok"
    assert verdicts(snapshot(audit=old), "health: {max_audit_age: null}")["audit"] == "ok"
    assert verdicts(snapshot(audit=None))["audit"] == "warning"
    assert verdicts(snapshot(audit=None, begun=NOW - HOUR))["audit"] == "ok"
    [paused] = [c for c in judge(archive(), snapshot(audit=None, audit_paused=True), NOW) if c.kind == "audit"]
    assert paused.observed.startswith("there was no audit yet, and DAG audit_orders is paused; ")
    assert paused.steps == ("airflow dags unpause audit_orders", "airflow dags trigger audit_orders")


def test_ignored_checks_do_not_count() -> None:
    assert "age" not in verdicts(snapshot(closed_until=NOW - timedelta(days=9)), "health: {ignore: [age]}")


@pytest.mark.parametrize("value", ["90", "0h", "-1h", "3", "soon", "[1h]", "1.5h"])
def test_a_wrong_limit_is_an_error_of_the_yaml(value: str) -> None:
    with pytest.raises(ConfigError, match=r"orders.yaml: `health.max_age`: expected a time like 90m, 12h or 2d"):
        archive(f"health: {{max_age: {value}}}")


def test_checks_of_other_distributions_count_and_cannot_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(watched: Archive, at: Snapshot, at_time: datetime) -> list[Finding]:
        return [HealthCheck(name="quota", verdict="failing", found=f"{watched.archive} is full at {at_time:%H:%M}")]

    def broken(*_: Any) -> list[Finding]:
        raise ZeroDivisionError("by zero")

    def absent() -> Any:
        raise ImportError("no module")

    points = [
        SimpleNamespace(name="quota", value="a:full", load=lambda: full),
        SimpleNamespace(name="broken", value="a:broken", load=lambda: broken),
        SimpleNamespace(name="absent", value="a:absent", load=absent),
    ]
    # The package has the function `judge` in the place of its module.
    names = plugin_checks.__globals__
    monkeypatch.setitem(names, "entry_points", lambda group: points if group == "kafka_archiver.checks" else [])
    _loaded.cache_clear()
    try:
        own_findings = plugin_checks(archive(), snapshot(), NOW)
        assert {(c.kind, VERDICTS[c.severity], c.observed) for c in own_findings} == {
            ("quota", "failing", "orders is full at 12:05"),
            ("broken", "unknown", "zero division error: by zero"),
            ("absent", "unknown", "a:absent cannot be loaded: no module"),
        }
        ignoring = archive("health: {ignore: [quota, broken]}")
        assert [c.kind for c in plugin_checks(ignoring, snapshot(), NOW)] == ["absent"]
    finally:
        _loaded.cache_clear()


def test_the_worst_verdict_counts() -> None:
    def verdict(*severities: Severity) -> str:
        return verdict_of(Finding(kind="x", severity=severity, observed="y") for severity in severities)

    assert verdict() == "ok"
    assert verdict("ok", "warning") == "warning"
    assert verdict("unknown", "warning", "ok") == "unknown"
    assert verdict("unknown", "problem", "ok") == "failing"
