"""The findings about an archive's runs. Pure."""

import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta
from urllib.parse import quote

from kafka_archiver.context.line import Line
from kafka_archiver.messages.actions import Action, command
from kafka_archiver.messages.advice import (
    acknowledge,
    next_steps,
    plan_anew,
    repair,
    replay_again,
    start_again,
    unpause,
    validate,
)
from kafka_archiver.messages.errors import NOT_RUN, SILENCE
from kafka_archiver.messages.wording import count, span
from kafka_archiver.model.acknowledged import FAILED_REQUEST_NAME
from kafka_archiver.model.findings import Finding, problem, warning
from kafka_archiver.model.object_keys import interval_of
from kafka_archiver.state.status.facts import TASKS, DagRun, Facts, TaskFailure
from kafka_archiver.values.documents import isoformat

# A run is reported as stuck if it takes so many times longer than usual, and at least so long.
TIMES, AT_LEAST = 5, timedelta(minutes=30)
# How far this clock may differ from the clock of the machine that triggered a run.
SKEW = timedelta(minutes=5)
# A run that somebody asked for: a backfill, a rebuild, a replay or a repair.
FAILED_REQUEST = "failed request"


def of_runs(archive: str, facts: Facts, line: Line | None, lag: int | None, moment: datetime) -> Iterator[Finding]:
    """Yield the findings that keep the archive's runs from succeeding.

    :param line: None: the ledger cannot be read.
    :param lag: the number of offsets that wait; None: unknown.
    """
    if facts.silent:
        yield problem("airflow", f"the state of the runs is unknown: {facts.silent}", command("airflow db check"))
    elif not facts.known:
        yield problem(
            "no dag",
            f"Airflow has no DAG {facts.dag_id}: nothing is archived",
            command("airflow dags reserialize"),
            command("airflow dags list-import-errors"),
            validate(archive),
        )
    else:
        yield from _idle(facts, line, lag)
        yield from _future_runs(facts, moment)
        yield from _slow(facts, moment)
        facts = _as_settled(facts, line) if line else facts
        yield from _failed(archive, facts, line, moment)
        yield from _failed_requests(archive, facts)
        yield from _overdue(facts, moment)
    if line:
        yield from _unfinished(archive, facts, line, moment)


def _as_settled(facts: Facts, line: Line) -> Facts:
    """Return the facts, a failed run being a success if its runs are settled since, by whatever run or takeover.

    Not after a failure of `close_hours`: events may be missing, which no other run sends.
    """
    left = {w.plan.interval.id for w in line.waiting if w.outcome != "replaced"}

    def settled(run: DagRun) -> bool:
        early = run.failure is not None and run.failure.task != TASKS[-1]
        # A ledger without plans knows nothing of them: `store.url` was changed, or the store has lost it.
        known = line.last > 0 and bool(run.works) and not run.replays
        return early and known and left.isdisjoint(interval_of(name) for name in run.works)

    runs = (
        run.model_copy(update={"state": "success"}) if run.state == "failed" and settled(run) else run
        for run in facts.runs
    )
    return facts.model_copy(update={"runs": tuple(runs)})


def _idle(facts: Facts, line: Line | None, lag: int | None) -> Iterator[Finding]:
    if facts.paused:
        waiting = "" if lag is None else f", and {lag:,} offsets wait" if lag else "; nothing waits at the moment"
        # A new archive is paused until somebody has looked at what the doctor says. A new Airflow, or one from which
        # the DAG was deleted, knows of no runs; the ledger does.
        has_run = facts.runs or (line is not None and line.last)
        say = problem if lag and has_run else warning
        yield say("paused", f"DAG {facts.dag_id} is paused{waiting}", unpause(facts.dag_id))
    elif not facts.scheduler:
        yield problem("no scheduler", "no scheduler of Airflow is alive: no task starts", command("airflow scheduler"))


def _future_runs(facts: Facts, moment: datetime) -> Iterator[Finding]:
    for run in facts.future_runs(moment + SKEW):
        place = f"{facts.api}/api/v2/dags/{facts.dag_id}/dagRuns/{quote(run.run_id, safe='')}"
        curl = 'curl -fsS -H "Authorization: Bearer $TOKEN"'
        fail = f"""{curl} -H 'Content-Type: application/json' -X PATCH -d '{{"state": "failed"}}' {place}"""
        yield problem(
            "future date",
            f"run {run.run_id} has the date {isoformat(run.date)}, which is in the future: Airflow calls the run "
            f"{run.state}, and starts none of its tasks until then",
            # Airflow does not delete a running run, so set it to failed first.
            command(f"TOKEN=$({_login(facts)}) && {fail} && {curl} -X DELETE {place}"),
        )


def _login(facts: Facts) -> str:
    """Return the command that prints a token of Airflow's API."""
    body = """-H 'Content-Type: application/json' -d '{"username": "USER", "password": "PASSWORD"}' """
    token = """python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])'"""
    return f"curl -fsS {'' if facts.needs_no_login else body}{facts.api}/auth/token | {token}"


def _slow(facts: Facts, moment: datetime) -> Iterator[Finding]:
    usual_duration, interval = facts.usual_duration, facts.interval or timedelta(hours=1)
    noted = max(usual_duration * TIMES, AT_LEAST) if usual_duration else interval
    working = facts.at_work(moment)
    # Queued runs take turns: each waits since the last one has ended.
    last = next((run.ended for run in facts.ended), None)
    for run in working:
        if run.failure:
            yield warning(
                "tried again",
                f"run {run.run_id}: task {run.failure.task} failed {count(run.failure.attempts, 'time')} and is tried "
                f"again: {run.failure.cause or f'its {SILENCE}'}",
                _look(facts, run),
            )
        if _waits(run, working) or (facts.paused and run.state == "queued"):
            continue
        since = run.begun or run.queued or run.due
        waited = moment - (since if run.begun or not last else max(since, last))
        if waited <= noted:
            continue
        observed = (
            f"run {run.run_id} has been {run.state} since {isoformat(since)} ({span(moment - since)}); "
            + (f"usually a run takes {span(usual_duration)}. " if usual_duration else "")
            + f"Its task {run.task} is {run.task_state or 'not begun'}"
        )
        say = problem if waited > max(noted, interval) else warning
        yield say("stuck", observed, _look(facts, run))


def _waits(run: DagRun, working: list[DagRun]) -> bool:
    """Return True if the run waits until another run ends, as it should."""
    other_runs = [other for other in working if other is not run]
    begun = [other for other in other_runs if other.state == "running"]
    past_plan = any(other.task != "plan" for other in begun)
    return bool(begun) if run.state == "queued" else past_plan and run.task == "plan"


def _failed(archive: str, facts: Facts, line: Line | None, moment: datetime) -> Iterator[Finding]:
    failing = facts.failing
    if not failing:
        return
    run, failure = failing[0], failing[0].failure
    subject = f"the last {len(failing)} runs failed, {run.run_id}" if len(failing) > 1 else f"run {run.run_id} failed"
    again = start_again(facts.dag_id)
    if failure is None:
        means = (
            "Tasks behind one that had failed did not run again (it was cleared without them), or a person marked the "
            "run. The next run finishes its work"
        )
        yield problem("failed", f"{subject}, although none of its tasks did", again, _look(facts, run), means=means)
        return
    where, cause = f"{subject}{' last,' if len(failing) > 1 else ''} in task {failure.task}", _cause(failure)
    brief = f"task {failure.task} failed: {cause}"
    fields = {"subject": where, "brief": brief, "causes": failure.kinds}
    later = _passed(facts, run, failure.task, moment)
    if later:
        means = f"Run {later.run_id} is at work and has passed this task"
        yield warning("failed", cause, _look(facts, later), means=means, **fields)
    elif failure.permanent and NOT_RUN not in failure.kinds:
        unfinished = [p.run for p in line.unfinished if p.supersedes is None][:1] if line else []
        means = "Until this is corrected, every run fails the same way"
        steps = next_steps(failure.actions, again, again.after("correct the cause, then"))
        rebuilds = (plan_anew(archive, name) for name in unfinished)
        named = {action.command for action in failure.actions}
        yield problem(
            "failed for good",
            cause,
            *steps,
            *(action for action in rebuilds if action.command not in named),
            means=means,
            **{**fields, "brief": f"{brief}. {means}"},
        )
    else:
        fields["subject"] = f"{where} after {count(failure.attempts, 'attempt')}"
        means = "The next run goes on where this run stopped"
        yield problem("failed", cause, again, _look(facts, run), means=means, **fields)


def _failed_requests(archive: str, facts: Facts) -> Iterator[Finding]:
    """Yield the warning about the last backfill, rebuild, replay or repair: runs of the schedule go on without it."""
    failing = facts.failed_requests
    if not failing:
        return
    run, failure = failing[0], failing[0].failure
    in_a_row = f" ({len(failing)} failed in a row)" if len(failing) > 1 else ""
    means = "What is archived stays as it is, and the runs of the schedule go on"
    name = f"{FAILED_REQUEST_NAME}{run.run_id}"
    accept = acknowledge(archive, name)
    if failure is None:
        observed = f"run {run.run_id} failed, although none of its tasks did{in_a_row}"
        yield warning(FAILED_REQUEST, observed, _look(facts, run), accept, means=means, name=name)
        return
    cause = _cause(failure)
    if failure.permanent and NOT_RUN not in failure.kinds:
        means = f"Another run with these parameters fails the same way. {means}"
    yield warning(
        FAILED_REQUEST,
        cause,
        *failure.actions,
        _look(facts, run),
        accept,
        subject=f"run {run.run_id} failed in task {failure.task}{in_a_row}",
        means=means,
        brief=f"task {failure.task} failed: {cause}",
        causes=failure.kinds,
        name=name,
    )


def _cause(failure: TaskFailure) -> str:
    return (failure.cause or f"its {SILENCE}").rstrip(".")


def _passed(facts: Facts, failed: DagRun, task: str, moment: datetime) -> DagRun | None:
    """Return a later run at work that got past the task. Only forward runs plan as the next run will."""
    for run in facts.at_work(moment):
        later = run.begun and failed.begun and run.begun > failed.begun
        if later and run.has_passed(task) and (run.forward or task != "plan"):
            return run
    return None


def _overdue(facts: Facts, moment: datetime) -> Iterator[Finding]:
    due = facts.due
    # If runs fail, `_failed` has reported them already.
    if due is None or facts.paused or facts.failing:
        return
    forward = [run for run in facts.runs if run.forward or run.is_of_schedule]
    succeeded = [run.due for run in forward if run.state == "success" or run.replays]
    at_work = [run for run in facts.at_work(moment) if run.forward]
    # A run that has not begun plans later.
    under_way = [run for run in at_work if run.begun is None or run.begun >= due]
    if under_way or any(due_before >= due for due_before in succeeded):
        return
    if not succeeded and (facts.next_due is None or facts.next_due > due):
        # The archive is new.
        return
    last = f"the last successful run was due at {isoformat(max(succeeded))}" if succeeded else "no run ever succeeded"
    observed = f"the run that was due at {isoformat(due)}, {span(moment - due)} ago, has not succeeded; {last}"
    if at_work:
        before = at_work[0]
        yield warning(
            "overdue", f"{observed}. Run {before.run_id} is at work; the next one follows", _look(facts, before)
        )
        return
    yield problem(
        "overdue",
        observed,
        start_again(facts.dag_id),
        command(f"airflow dags list-runs {facts.dag_id}"),
    )


def _unfinished(archive: str, facts: Facts, line: Line, moment: datetime) -> Iterator[Finding]:
    if facts.at_work(moment):
        return
    for pending in line.waiting:
        plan = pending.plan
        if pending.outcome not in (None, "committed") or (facts.failing and pending.is_open):
            continue
        if pending.is_open:
            yield warning(
                "unfinished run",
                f"run {plan.run}, planned at {isoformat(plan.planned_at)}, is not finished, and no DAG run is at work "
                "on it; the next run finishes it first",
                start_again(f"archive_{archive}"),
            )
        else:
            replaced = str(plan.supersedes)
            again = plan_anew(archive, replaced)
            if plan.keeps:
                again = repair(archive) if plan.origin == "repair" else replay_again(archive, replaced)
            yield warning(
                "unfinished rebuild",
                f"{plan.run} was begun at {isoformat(plan.planned_at)}, is not final, and no DAG run is at work on it; "
                "the run that it would replace still counts, and the next run gives the rebuild up",
                again,
            )


def _look(facts: Facts, run: DagRun) -> Action:
    return command(f"airflow tasks states-for-dag-run {facts.dag_id} {shlex.quote(run.run_id)}")
