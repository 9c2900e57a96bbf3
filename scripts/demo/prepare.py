"""The first half: the stack, a clean slate, the stream."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime

from scripts.demo.archive import kill_spark_job
from scripts.demo.orders import HOUR, PER_HOUR, Stream, expected
from scripts.demo.tell import moment, say
from scripts.demo.world import World
from scripts.stack.errors import StackError
from scripts.stack.paths import ROOT


def start_stack() -> None:
    """`make up`."""
    say("Airflow takes half a minute …")
    up = subprocess.Popen([sys.executable, "-m", "scripts.stack", "up"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert up.stdout is not None
    with up:
        for line in up.stdout:
            # What to do next is said at the end.
            if not line.startswith("Next: "):
                say(line.rstrip())
    if up.returncode:
        raise StackError("the stack did not start; see above")


def clean_slate(world: World) -> None:
    """Without anything of an earlier demo."""
    world.dag.wait_until_there()
    runs = world.dag.forget_runs()
    # Airflow ends the job of a run that was set to failed in its own time; what it still wrote would be in the way.
    kill_spark_job(world)
    # Airflow keeps the logs of deleted runs, and would append to them those of new runs with the same name.
    shutil.rmtree(world.airflow / "logs" / f"dag_id={world.dag.id}", ignore_errors=True)
    topic = world.topic.remove()
    objects = world.lake.clear()
    if runs or topic or objects:
        had = f"the topic with its group, {runs} DAG runs, {objects} objects and the ledger"
        say(f"Removed what an earlier demo left of archive {world.archive}: {had}.")
    if runs:
        world.dag.wait_until_due()
    world.topic.create()


def produce(world: World) -> None:
    """The stream of the hours before now, with everything in it that makes archiving hard."""
    this_hour = int(datetime.now(UTC).timestamp() * 1000) // HOUR * HOUR
    world.first_hour = this_hour - len(PER_HOUR) * HOUR
    say(f"Order events from {moment(world.first_hour)} to {moment(this_hour)}, in the order of their arrival …")
    batches = list(Stream(world.first_hour).batches())
    sent = [event for batch in batches for event in batch.events]
    begun = time.monotonic()
    world.topic.fill(batches)
    took = time.monotonic() - begun
    world.produced = expected(batches)
    say(f"{len(sent):,} records produced, {len(sent) / took:,.0f} a second. Among them:")
    newest, late, behind = 0, 0, 0
    for event in sent:
        newest = max(newest, event.timestamp)
        late += event.timestamp // HOUR < newest // HOUR
        behind += event.timestamp < newest
    aborted = sum(len(batch.events) for batch in batches if batch.transaction == "aborted")
    say(f"  {behind:,} out of order, {late:,} of these so late that their hour was over;")
    say(f"  {aborted:,} in a transaction that was aborted, and then sent again in one that was committed.")


def begin_archive(world: World) -> None:
    """The archive is to begin an hour after the log does, so that there is history for a backfill."""
    begin = world.first_hour + HOUR
    offsets = world.topic.begin_at(begin)
    say(f"An archive begins where its group stands. {world.topic.group} is put at {moment(begin)}, an hour behind the")
    say(f"log's start, as `kafka-consumer-groups --reset-offsets --to-datetime` does: offsets {_listed(offsets)}.")


def _listed(offsets: dict[int, int]) -> str:
    return ", ".join(f"{offset:,}" for _, offset in sorted(offsets.items()))
