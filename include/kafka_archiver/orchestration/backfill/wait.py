"""Follow a backfill until Airflow's scheduler has finished it."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from airflow.models import DagRun
from airflow.models.backfill import Backfill, BackfillDagRun
from airflow.utils.session import create_session
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from kafka_archiver.orchestration.metadata.database import FOLLOWING_SECONDS, UNFINISHED, retry_while_down
from kafka_archiver.orchestration.metadata.start import obstacles, report_failures
from kafka_archiver.values.documents import isoformat

_POLL_SECONDS = 3
# After so many polls without news, print the counts.
_QUIET_POLLS = 20


def wait(backfill_id: int, say: Callable[[str], None], pause: Callable[[float], None] = time.sleep) -> Counter[str]:
    """Report each run that ends, until all have ended, and what keeps runs from going on.

    :returns: the number of runs in each state.
    """
    reported: dict[int, str] = {}
    notes: set[str] = set()
    quiet = 0
    while True:
        runs, blocks = retry_while_down(lambda: _look(backfill_id), FOLLOWING_SECONDS)
        news = [run for run in runs if run.state != reported.get(run.id) and run.state not in UNFINISHED]
        counts = Counter(str(run.state) for run in runs)
        left = sum(counts[state] for state in UNFINISHED)
        for number, run in enumerate(news, start=len(runs) - left - len(news) + 1):
            say(f"{number:>{len(str(len(runs)))}}/{len(runs)}  {_describe(run)}")
            if run.state == "failed":
                report_failures(run.dag_id, run.run_id, say)
        if not left:
            return counts
        for note in sorted(blocks - notes):
            say(note)
        quiet = 0 if news or blocks - notes else quiet + 1
        reported, notes = {run.id: str(run.state) for run in runs}, blocks
        if quiet and quiet % _QUIET_POLLS == 0:
            say(f"Waiting: {counts['running']} running, {counts['queued']} queued.")
        pause(_POLL_SECONDS)


def settle(dag_id: str) -> None:
    """Mark those backfills of the DAG as complete whose runs have all finished.

    The scheduler does this too, but only every 30 seconds; until then no other backfill of the DAG can start.
    """
    with create_session() as session:
        unfinished = exists().where(DagRun.backfill_id == Backfill.id, DagRun.state.in_(UNFINISHED))
        # A backfill without runs is just being created.
        created = exists().where(BackfillDagRun.backfill_id == Backfill.id)
        for item in session.scalars(
            select(Backfill).where(Backfill.dag_id == dag_id, Backfill.completed_at.is_(None), created, ~unfinished)
        ):
            item.completed_at = datetime.now(UTC)


def _look(backfill_id: int) -> tuple[list[DagRun], set[str]]:
    """Return the runs in the order in which they ended, and what keeps unfinished runs from going on."""
    query = select(DagRun).join(BackfillDagRun, BackfillDagRun.dag_run_id == DagRun.id)
    with create_session() as session:
        runs = list(
            session.scalars(query.where(BackfillDagRun.backfill_id == backfill_id).order_by(DagRun.end_date, DagRun.id))
        )
        unfinished = any(run.state in UNFINISHED for run in runs)
        return runs, set(_obstacles(backfill_id, session)) if unfinished else set()


def _describe(run: DagRun) -> str:
    start = run.data_interval_start or run.logical_date or run.run_after
    took = f"{(run.end_date - run.start_date).total_seconds():.0f} s" if run.start_date and run.end_date else ""
    return f"{isoformat(start)}  {run.state!s:<7}  {took:>6}  {run.run_id}"


def _obstacles(backfill_id: int, session: Session) -> list[str]:
    backfill = session.get_one(Backfill, backfill_id)
    lines = obstacles(backfill.dag_id, session)
    if backfill.is_paused:
        lines.append(f"Backfill {backfill_id} is paused: its queued runs do not start. Unpause it in Airflow's UI.")
    return lines
