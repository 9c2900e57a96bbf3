"""The troubles of runs, by what Airflow and the ledger say of them: one test for each trouble."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.context.line import Line, UnsettledPlan
from kafka_archiver.messages.advice import go_on, repair
from kafka_archiver.messages.errors import NOT_RUN
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.manifest import Commit
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.orchestration.dag_run.params import takes_new
from kafka_archiver.state.status.facts import DagRun, Facts, TaskFailure
from kafka_archiver.state.status.running import of_runs
from tests.support.plans import partition, plan

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 22, 9, 20, tzinfo=UTC)
# The last complete interval is [08:00, 09:00): the run that was due at 08:00 has had its hour.
DUE = datetime(2026, 11, 22, 8, tzinfo=UTC)
NOTHING = Line(Progress(archive="orders"), [])
DAG = "archive_orders"


def ago(**time: float) -> datetime:
    return NOW - timedelta(**time)


def run(state: str, due: datetime, **fields: Any) -> DagRun:
    """A run of the schedule, which began when it was due, and took a minute if it has ended."""
    ended = due + timedelta(minutes=1) if state in ("success", "failed") else None
    known = {"run_id": f"scheduled__{due:%H:%M}", "state": state, "forward": True, "date": due, "due": due}
    return DagRun.model_validate({**known, "begun": due, "ended": ended, **fields})


def sound(*runs: DagRun, **fields: Any) -> Facts:
    """An hourly archive that ran at nine, as it should."""
    known: dict[str, Any] = {"dag_id": DAG, "due": DUE, "interval": timedelta(hours=1), "api": "http://airflow"}
    return Facts(**{**known, "runs": runs or (run("success", DUE + timedelta(hours=1)),), **fields})


def troubles(facts: Facts, line: Line | None = NOTHING, lag: int | None = 0) -> list[Finding]:
    return list(of_runs("orders", facts, line, lag, NOW))


def only(facts: Facts, line: Line | None = NOTHING, lag: int | None = 0) -> Finding:
    [trouble] = troubles(facts, line, lag)
    return trouble


def failed(minutes: float = 20, **failure: Any) -> DagRun:
    return run("failed", ago(minutes=minutes), failure=TaskFailure(**{"task": "plan", "attempts": 1, **failure}))


def test_a_sound_archive_has_none() -> None:
    assert troubles(sound(), lag=1000) == []
    assert troubles(sound(run("running", ago(minutes=20), task="archive", task_state="running")), lag=1000) == []


def test_a_database_that_does_not_answer() -> None:
    trouble = only(Facts(dag_id=DAG, silent="no such table: dag"))
    assert (trouble.kind, trouble.severity, trouble.steps) == ("airflow", "problem", ("airflow db check",))
    assert "no such table: dag" in trouble.text


def test_no_dag() -> None:
    trouble = only(sound(known=False))
    assert (trouble.kind, trouble.severity) == ("no dag", "problem")
    assert trouble.steps[:2] == ("airflow dags reserialize", "airflow dags list-import-errors")


@pytest.mark.parametrize(
    ("lag", "severity", "text"),
    [(7, "problem", "and 7 offsets wait"), (0, "warning", "nothing waits"), (None, "warning", "is paused")],
)
def test_a_paused_dag_with_and_without_lag(lag: int | None, severity: str, text: str) -> None:
    trouble = only(sound(run("success", DUE), paused=True), lag=lag)
    assert (trouble.kind, trouble.severity, trouble.steps) == (
        "paused",
        severity,
        ("airflow dags unpause archive_orders",),
    )
    assert text in trouble.text


def test_a_new_archive_may_be_paused_until_the_doctor_is_content() -> None:
    trouble = only(sound(paused=True, runs=()), lag=7)
    assert (trouble.kind, trouble.severity) == ("paused", "warning")
    assert "and 7 offsets wait" in trouble.text
    # It is not new if Airflow is: its database was lost, or the DAG deleted.
    known = only(sound(paused=True, runs=()), Line(Progress(archive="orders", settled=3), []), lag=7)
    assert (known.kind, known.severity) == ("paused", "problem")


def test_no_scheduler() -> None:
    assert (only(sound(scheduler=False)).kind, troubles(sound(scheduler=False, paused=True))[0].kind) == (
        "no scheduler",
        "paused",
    )


@pytest.mark.parametrize(
    ("admins", "login"),
    [
        (True, "curl -fsS http://airflow/auth/token"),
        (
            False,
            "curl -fsS -H 'Content-Type: application/json' "
            """-d '{"username": "USER", "password": "PASSWORD"}' http://airflow/auth/token""",
        ),
    ],
)
def test_a_run_date_in_the_future(admins: bool, login: str) -> None:
    """Airflow calls it running; it is neither at work nor late."""
    in_future = run("running", ago(days=3), date=NOW + timedelta(days=400), run_id="manual__2027-12-27T00:00:00+00:00")
    trouble = only(sound(run("success", DUE), in_future, needs_no_login=admins))
    assert (trouble.kind, trouble.severity) == ("future date", "problem")
    assert "has the date 2027-12-27T09:20:00Z, which is in the future: Airflow calls the run running" in trouble.text
    place = "http://airflow/api/v2/dags/archive_orders/dagRuns/manual__2027-12-27T00%3A00%3A00%2B00%3A00"
    token = f"""TOKEN=$({login} | python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')"""
    curl = 'curl -fsS -H "Authorization: Bearer $TOKEN"'
    fail = f"""{curl} -H 'Content-Type: application/json' -X PATCH -d '{{"state": "failed"}}' {place}"""
    assert trouble.steps == (f"{token} && {fail} && {curl} -X DELETE {place}",)


def test_a_clock_that_is_a_little_behind_makes_no_future_run_date() -> None:
    assert troubles(sound(run("running", NOW, date=NOW + timedelta(seconds=30)), run("success", DUE))) == []


@pytest.mark.parametrize(("minutes", "severity"), [(29, None), (31, "warning"), (61, "problem")])
def test_a_run_that_takes_much_longer_than_usual(minutes: float, severity: str | None) -> None:
    slow = run("running", ago(minutes=minutes), task="archive", task_state="queued")
    slow_troubles = troubles(sound(slow, run("success", DUE + timedelta(hours=1))))
    assert [trouble.severity for trouble in slow_troubles] == ([severity] if severity else [])
    for trouble in slow_troubles:
        assert (trouble.kind, trouble.steps) == (
            "stuck",
            (f"airflow tasks states-for-dag-run archive_orders {slow.run_id}",),
        )
        assert "usually a run takes 60 seconds. Its task archive is queued" in trouble.text


def test_a_run_that_nobody_begins_is_stuck_but_not_one_that_waits_for_another() -> None:
    queued = run("queued", ago(hours=2), begun=None, task="plan")
    assert "stuck" in [trouble.kind for trouble in troubles(sound(queued, run("success", DUE)))]
    # A backfill's run is due long before it is queued, and its runs take turns.
    old = queued.model_copy(update={"queued": ago(minutes=20)})
    assert troubles(sound(old, run("success", DUE + timedelta(hours=1)))) == []
    assert (
        troubles(sound(queued, run("success", ago(minutes=5), forward=False), run("success", DUE), due=ago(hours=3)))
        == []
    )
    planning = run("running", ago(minutes=5), task="plan", task_state="running")
    assert troubles(sound(planning, queued, run("success", DUE))) == []
    at_work = run("running", ago(minutes=5), task="archive", task_state="running")
    assert troubles(sound(at_work, queued, run("success", DUE))) == []
    waiting = run("running", ago(hours=2), task="plan", task_state="up_for_reschedule")
    assert troubles(sound(at_work, waiting, run("success", DUE))) == []
    assert [trouble.kind for trouble in troubles(sound(queued, run("success", DUE), paused=True))] == ["paused"]
    # Two that are past their plan wait for nobody.
    queued_runs = [run("running", ago(hours=hours), run_id=f"r{hours}", task="archive") for hours in (2, 3)]
    assert [trouble.kind for trouble in troubles(sound(*queued_runs, run("success", DUE)))] == ["stuck", "stuck"]


def test_a_task_that_is_tried_again_says_why() -> None:
    again = run(
        "running", ago(minutes=5), task="archive", task_state="up_for_retry",
        failure=TaskFailure(task="archive", attempts=2, cause="no answer from the brokers"),
    )  # fmt: skip
    trouble = only(sound(again, run("success", DUE)))
    assert (trouble.kind, trouble.severity) == ("tried again", "warning")
    assert "task archive failed 2 times and is tried again: no answer from the brokers" in trouble.text


def test_a_permanent_failure_says_the_cause_and_the_way_out() -> None:
    stopped = plan(1, partition(0, 5))
    line = Line(Progress(archive="orders"), [UnsettledPlan(stopped, None)])
    trouble = only(sound(failed(permanent=True, cause="2 objects are missing"), run("success", DUE)), line)
    assert (trouble.kind, trouble.severity) == ("failed for good", "problem")
    assert trouble.text.startswith("run scheduled__09:00 failed in task plan: 2 objects are missing. Until this is")
    assert trouble.steps == (
        "correct the cause, then: airflow dags trigger archive_orders",
        f"airflow archive rebuild orders --run {stopped.run}",
    )
    row = (failed(20, permanent=True, cause="new"), failed(80, permanent=True, cause="old"), run("success", DUE))
    assert only(sound(*row)).text.startswith("the last 2 runs failed, scheduled__09:00 last, in task plan: new")


def test_a_run_that_failed_for_its_own_parameters_is_not_every_run() -> None:
    mistyped = failed(permanent=True, cause="`polices` is not a key").model_copy(update={"forward": False})
    trouble = only(sound(mistyped))
    assert (trouble.kind, trouble.severity) == ("failed request", "warning")
    assert "`polices` is not a key. Another run with these parameters fails the same way" in trouble.text
    repair = run("success", ago(minutes=5), forward=False)
    assert troubles(sound(mistyped, repair, run("success", DUE))) == []
    assert takes_new({"policies": {}, "max_records": 5})
    refused = {"polices": {}}, {"policies": {"lost_offsets": "maybe"}}, {"policies.nothing": "fail"}
    assert not any(map(takes_new, (*refused, {"repair": ["20261121T050000Z"]})))


def test_a_failure_that_may_pass() -> None:
    trouble = only(sound(failed(attempts=4, cause="no answer from the brokers")))
    assert (trouble.kind, trouble.severity, trouble.steps[0]) == (
        "failed",
        "problem",
        "airflow dags trigger archive_orders",
    )
    assert "in task plan after 4 attempts: no answer from the brokers. The next run goes on" in trouble.text
    silent = only(sound(failed())).text
    assert "its process ended without reporting an error" in silent
    assert "or Airflow could not store its result" in silent
    # Why it is late is said by that.
    assert only(sound(failed(), run("success", DUE - timedelta(hours=5)))).kind == "failed"
    cleared_alone = only(sound(run("failed", ago(minutes=20))))
    assert "although none of its tasks did. Tasks behind one that had failed did not run again" in cleared_alone.text
    assert cleared_alone.steps[0] == "airflow dags trigger archive_orders"


TAKEOVER = plan(2, start=0, revision=1, supersedes=plan(1).run, origin="rebuild", takes_over=True)


def ended(of: Plan, outcome: Any, by: str | None = None) -> UnsettledPlan:
    digest = "d" if outcome == "committed" else None
    commit = Commit(archive="orders", run=of.run, revision=of.revision, outcome=outcome, by=by, plan_digest=of.digest,
                  manifest_digest=digest, committed_at=NOW)  # fmt: skip
    return UnsettledPlan(of, commit)


@pytest.mark.parametrize(
    ("settled", "waiting", "task", "names"),
    [
        # Settled, by whatever run.
        (1, [], "archive", []),
        (1, [], "close_hours", ["failed for good"]),
        (0, [ended(plan(1), "replaced", TAKEOVER.run)], "archive", []),
        (0, [ended(plan(1), "replaced", TAKEOVER.run), UnsettledPlan(TAKEOVER, None)], "archive", ["failed for good"]),
        (0, [ended(plan(1), "committed")], "archive", ["failed for good"]),
        (0, [UnsettledPlan(plan(1), None)], "archive", ["failed for good"]),
        # Another run's plan.
        (1, [UnsettledPlan(plan(2), None)], "archive", ["unfinished run"]),
    ],
)
def test_a_failure_is_over_when_its_runs_are_settled(
    settled: int, waiting: list[UnsettledPlan], task: str, names: list[str]
) -> None:
    stopped = failed(task=task, permanent=True, cause="x").model_copy(update={"works": (plan(1).run,)})
    line = Line(Progress(archive="orders", settled=settled), waiting)
    # Nor is the run of that interval overdue.
    facts = sound(stopped, due=stopped.due - timedelta(minutes=5))
    assert [trouble.kind for trouble in troubles(facts, line)] == names
    # Nor by a ledger without plans, that of another `store.url`.
    assert "failed for good" in [trouble.kind for trouble in troubles(facts, NOTHING)]
    # A run that never was planned is settled by nobody.
    unplanned = sound(stopped.model_copy(update={"works": ()}))
    assert "failed for good" in [trouble.kind for trouble in troubles(unplanned, line)]


@pytest.mark.parametrize(
    ("later", "task", "severity"),
    [
        ({"task": "archive"}, "plan", "warning"),
        ({"task": None}, "plan", "warning"),
        ({"task": "plan"}, "plan", "problem"),
        ({"task": "archive"}, "archive", "problem"),
        ({"task": "archive", "begun": ago(minutes=25)}, "plan", "problem"),
        # Rebuilds and backfills plan otherwise, but they finish the same runs.
        ({"task": "verify", "forward": False}, "plan", "problem"),
        ({"task": "verify", "forward": False}, "archive", "warning"),
    ],
)
def test_a_later_run_that_has_passed_the_failed_task_shows_that_not_every_run_fails(
    later: dict[str, Any], task: str, severity: str
) -> None:
    at_work = run("running", ago(minutes=5), run_id="later", **later)
    trouble = only(sound(at_work, failed(task=task, permanent=True, cause="the group has moved"), run("success", DUE)))
    assert (trouble.severity, "the group has moved" in trouble.text) == (severity, True)
    assert ("Run later is at work and has passed this task" in trouble.text) == (severity == "warning")
    assert ("every run fails the same way" in trouble.text) == (severity == "problem")


def test_what_a_person_marked_as_done_is_done_by_the_next_run() -> None:
    """Nothing has to be corrected first, and nothing planned anew."""
    marked = failed(task="verify", permanent=True, cause="x", actions=go_on("orders", "r").actions, kinds=(NOT_RUN,))
    trouble = only(sound(marked, run("success", DUE)))
    assert trouble.kind == "failed"
    assert trouble.text.endswith("The next run goes on where this run stopped")
    assert trouble.steps[0] == "airflow dags trigger archive_orders"
    # Nor does a backfill fail the same way again.
    for kinds in (), (NOT_RUN,):
        stopped = failed(task="verify", permanent=True, cause="x", kinds=kinds).model_copy(update={"forward": False})
        trouble = only(sound(run("success", DUE), stopped))
        assert ("fails the same way" in trouble.text) == (not kinds)


@pytest.mark.parametrize(("forward", "names"), [(True, []), (False, ["failed"])])
def test_a_backfill_that_succeeds_is_no_cure_for_the_schedule(forward: bool, names: list[str]) -> None:
    later = run("success", ago(minutes=10), forward=forward)
    assert [trouble.kind for trouble in troubles(sound(later, failed(20, cause="x")))] == names


@pytest.mark.parametrize("replays", [True, False])
def test_a_replay_or_rebuild_that_failed_is_a_warning_of_its_own_until_one_succeeds(replays: bool) -> None:
    """The archive itself stays as healthy as it was: its runs go on."""
    settled = Line(Progress(archive="orders", settled=1), [])
    choice = repair("orders")
    stopped = failed(10, task="archive", permanent=True, cause="2 objects are gone", actions=(choice,)).model_copy(
        update={"forward": replays, "replays": replays, "works": (plan(1).run,) if replays else ()}
    )
    for earlier in (run("success", ago(minutes=30)), run("success", ago(minutes=5))):
        trouble = only(sound(earlier, stopped), settled)
        assert (trouble.kind, trouble.severity, trouble.actions[0]) == ("failed request", "warning", choice)
        assert trouble.text.startswith(f"run {stopped.run_id} failed in task archive: 2 objects are gone. ")
        assert trouble.name == f"failed-request:{stopped.run_id}"
    again = run("success", ago(minutes=5), forward=False)
    assert troubles(sound(again, stopped, run("success", ago(minutes=30))), settled) == []


def test_an_overdue_run() -> None:
    trouble = only(sound(run("success", DUE - timedelta(hours=5))))
    assert (trouble.kind, trouble.severity, trouble.steps[0]) == (
        "overdue",
        "problem",
        "airflow dags trigger archive_orders",
    )
    assert (
        "due at 2026-11-22T08:00:00Z, 80 minutes ago, has not succeeded; the last successful run was due"
        in trouble.text
    )


def test_what_is_not_overdue() -> None:
    old = run("success", DUE - timedelta(hours=5))
    under_way = run("running", DUE + timedelta(minutes=5), task="archive", task_state="running")
    assert "overdue" not in [trouble.kind for trouble in troubles(sound(old, under_way))]
    by_hand = run("success", DUE + timedelta(minutes=7), run_id="manual__x")
    assert troubles(sound(old, by_hand)) == []
    assert troubles(sound(old, due=None)) == []
    # It has just been made: the scheduler means to begin in a moment.
    assert troubles(sound(runs=(), next_due=DUE + timedelta(hours=1))) == []
    assert only(sound(runs=(), next_due=DUE - timedelta(hours=3))).kind == "overdue"


def test_nobody_is_told_to_start_a_run_while_the_first_one_is_at_work() -> None:
    begun = DUE - timedelta(minutes=2)
    start_troubles = troubles(sound(run("running", begun, task="archive", task_state="running"), next_due=begun))
    assert [(trouble.kind, trouble.severity) for trouble in start_troubles] == [
        ("stuck", "problem"),
        ("overdue", "warning"),
    ]
    assert "is at work; the next one follows" in start_troubles[1].text
    assert not any("trigger" in command for trouble in start_troubles for command in trouble.steps)
    assert troubles(sound(run("queued", ago(minutes=20), begun=None), next_due=begun)) == []


@pytest.mark.parametrize("forward", [True, False])
def test_a_backfill_does_not_stand_for_the_schedule(forward: bool) -> None:
    old, other = run("success", DUE - timedelta(hours=5)), run("success", DUE, run_id="backfill__x", forward=forward)
    assert [trouble.kind for trouble in troubles(sound(old, other))] == ([] if forward else ["overdue"])
    # Airflow makes a run of the schedule that a backfill runs again a backfill's.
    again = run("success", DUE, forward=False)
    assert troubles(sound(old, again)) == []


def rebuilding(**fields: Any) -> Plan:
    return plan(2, partition(0, 5), start=0, revision=1, supersedes=plan(1).run, origin="rebuild", **fields)


def test_unfinished_runs_that_nobody_is_at_work_on() -> None:
    first = plan(1, partition(0, 5))
    line = Line(Progress(archive="orders"), [UnsettledPlan(first, None)])
    trouble = only(sound(), line)
    assert (trouble.kind, trouble.severity) == ("unfinished run", "warning")
    assert first.run in trouble.text
    at_work = sound(run("running", ago(minutes=3), task="archive"), run("success", DUE))
    assert troubles(at_work, line) == []
    rebuild = only(sound(), Line(Progress(archive="orders", settled=1), [UnsettledPlan(rebuilding(), None)]))
    assert (rebuild.kind, rebuild.steps) == (
        "unfinished rebuild",
        (f"airflow archive rebuild orders --run {first.run}",),
    )
    assert "the next run gives the rebuild up" in rebuild.text
    taken_over = Line(Progress(archive="orders", settled=1), [UnsettledPlan(rebuilding(takes_over=True), None)])
    assert only(sound(), taken_over).kind == "unfinished run"


@given(
    st.lists(
        st.builds(
            run,
            st.sampled_from(["queued", "running", "success", "failed"]),
            st.integers(-3000, 3000).map(lambda minutes: ago(minutes=minutes)),
            forward=st.booleans(),
            task=st.sampled_from([None, "plan", "archive"]),
            failure=st.none()
            | st.builds(TaskFailure, task=st.just("plan"), attempts=st.just(1), permanent=st.booleans()),
        ),
        max_size=5,
    ),
    st.booleans(),
    st.none() | st.integers(0, 3),
)
def test_whatever_airflow_says_each_trouble_has_a_sentence_and_a_command(
    runs: list[DagRun], paused: bool, lag: int | None
) -> None:
    for trouble in troubles(sound(runs=tuple(runs), paused=paused), lag=lag):
        assert trouble.text
        assert trouble.steps
        assert all("airflow " in command or "curl " in command for command in trouble.steps)
