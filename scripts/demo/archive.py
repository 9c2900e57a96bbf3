"""The second half: a scheduled run whose job is killed, and a backfill."""

from __future__ import annotations

from contextlib import suppress

import psutil

from scripts.demo.tell import Look, moment, run, say, until
from scripts.demo.world import World
from scripts.stack.errors import StackError
from scripts.stack.process import marked

MINUTES = 60.0


def scheduled_run_killed_once(world: World) -> str:
    """Unpause the DAG; kill its Spark job at work; wait for Airflow's own retry. Returns the run's id."""
    world.dag.pause(False)
    say(f"DAG {world.dag.id} is unpaused: its timetable makes a run for the last complete hour, and that run takes")
    say("everything from where the group stands to the end of the log, whatever hour it is of.")
    name = until(lambda: _scheduled(world), 2 * MINUTES)
    until(lambda: _writing(world, name), 5 * MINUTES, every=0.1)
    killed = kill_spark_job(world)
    if not killed:
        raise StackError("the Spark job was gone before it could be killed")
    plan = _plan(world)
    say()
    unfinished = len(world.lake.uploads())
    say(
        f"SIGKILL for spark-submit and its Python: {killed} processes. In the bucket: {unfinished} uploads that are not"
    )
    say(f"finished, which nobody sees, and the plan, frozen before the first byte was read: {plan[:16]}…")
    until(lambda: _ended(world, name), 6 * MINUTES)
    attempt = _retried(world, name)
    if _plan(world) != plan:
        raise StackError("the retry made another plan than the one that the killed attempt worked on")
    say(f"Attempt {attempt} worked on the same plan {plan[:16]}… and stored {len(world.lake.objects())} objects.")
    return name


def _retried(world: World, run: str) -> int:
    """Show what the attempts said. Returns the number of the one that succeeded."""
    attempt = world.dag.tasks(run)["archive"].attempt
    say()
    say("What the first attempt of `archive` logged at its end, and the last one:")
    for number in sorted({1, attempt}):
        for line in _telling(world.dag.log(run, "archive", number)):
            say(f"  {number}  {line}")
    if world.dag.state(run) != "success":
        raise StackError(f"run {run} ended as {world.dag.state(run)}; see {world.dag.url}/dags/{world.dag.id}")
    if attempt < 2:
        raise StackError("the task `archive` succeeded at its first attempt, although its job was killed")
    return attempt


def backfill_first_hour(world: World) -> None:
    """The hour before the archive's begin, with the command of old."""
    before, group, hour = world.lake.objects(), world.topic.committed(), moment(world.first_hour)
    run(f"airflow dags backfill {world.dag.id} --start-date {hour} --end-date {hour}")
    after = world.lake.objects()
    if not len(after) > len(before):
        raise StackError("the backfill archived nothing")
    if any(after[key] != stored for key, stored in before.items()):
        raise StackError("the backfill changed objects that were there")
    if world.topic.committed() != group:
        raise StackError("the backfill moved the group")
    say(f"{len(after) - len(before)} new objects; the {len(before)} others and the group's offsets are as they were.")


def _scheduled(world: World) -> Look[str]:
    runs = [run["dag_run_id"] for run in world.dag.runs() if run["run_type"] == "scheduled"]
    return (runs[0] if runs else None), (f"run {runs[0]}" if runs else "waiting for the scheduler")


def _writing(world: World, run: str) -> Look[bool]:
    tasks = world.dag.tasks(run)
    if any(task.state == "failed" for task in tasks.values()) or len(tasks) > 2:
        raise StackError(f"the Spark job was to be killed at work, but the run is at: {world.dag.states(run)}")
    uploads = "archive" in tasks and tasks["archive"].state == "running" and world.lake.uploads()
    return (True if uploads else None), world.dag.states(run) + (" · the first upload has begun" if uploads else "")


def _ended(world: World, run: str) -> Look[bool]:
    ended = world.dag.state(run) in ("success", "failed")
    return (True if ended else None), world.dag.states(run)


def _plan(world: World) -> str:
    """The ETags of all plans; there is one as long as there is one run."""
    return "+".join(stored.etag for key, stored in sorted(world.lake.ledger().items()) if key.endswith("/plan.json"))


def _telling(lines: list[str]) -> list[str]:
    """Of a task's log the lines that say how far it came, and why it ended."""
    found = [line for line in lines if "spark-submit was killed" in line or " records in " in line]
    return [line.removeprefix("Task failed with exception ") for line in dict.fromkeys(found)]


def kill_spark_job(world: World) -> int:
    """SIGKILL for spark-submit's JVM and the Python below it, as the kernel does when memory runs out. The Airflow task
    above it lives to see what happened. Returns how many processes that were."""
    killed = 0
    for process in list(marked(world.airflow)):
        with suppress(psutil.NoSuchProcess):
            command = process.cmdline()
            if "org.apache.spark.deploy.SparkSubmit" in command and f"archive_{world.archive}" in command:
                for one in [process, *process.children(recursive=True)]:
                    one.kill()
                    killed += 1
    return killed
