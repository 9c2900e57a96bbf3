"""`python -m scripts.demo`: the whole demo, from top to bottom."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from itertools import accumulate

import duckdb
from botocore.exceptions import BotoCoreError, ClientError
from confluent_kafka import KafkaException

from kafka_archiver.messages.errors import ConfigError
from scripts.demo.avro import as_avro, totals
from scripts.demo.orders import HOUR, PER_HOUR, Batch, Event, Stream, expected, faults
from scripts.demo.tell import moment, run, say, so_far, stage, until
from scripts.demo.world import World
from scripts.stack.errors import StackError
from scripts.stack.paths import LOCAL, ROOT

COPIES = LOCAL / "demo"
# DuckDB shares no code with our reader. It reads copies: for s3:// it would have to download its extension httpfs.
LINES = (
    f"read_json('{COPIES}/**/*.jsonl.gz', filename = true, hive_partitioning = true, "
    "columns = {event_id: 'VARCHAR', created_at: 'TIMESTAMPTZ', country: 'VARCHAR', amount: 'DOUBLE'})"
)


def start_stack() -> tuple[World, World]:
    say("Airflow takes half a minute …")
    if subprocess.run([sys.executable, "-m", "scripts.stack", "up"], cwd=ROOT).returncode:
        raise StackError("the stack did not start; see above")
    worlds = World("orders"), World("orders_avro")
    for world in worlds:
        world.forget_dag()
    for world in worlds:
        world.wait_for_dag()
        world.clear()
        world.new_topic()
    return worlds


def produce(world: World, batches: list[Batch], first_hour: int) -> dict[str, int]:
    """Produce a stream with late, disordered and aborted records. Returns what must be archived."""
    say(f"Order events from {moment(first_hour)} on, in the order of their arrival …")
    world.fill(batches)
    times = [event.timestamp for batch in batches for event in batch.events]
    newest = list(accumulate(times, max))
    behind = sum(time < last for time, last in zip(times, newest, strict=True))
    late = sum(time // HOUR < last // HOUR for time, last in zip(times, newest, strict=True))
    aborted = sum(len(batch.events) for batch in batches if batch.transaction == "aborted")
    say(f"{len(times):,} records produced. Among them {behind:,} out of order, {late:,} of these so late that their")
    say(f"hour was over; {aborted:,} in a transaction that was aborted, and then sent again in one that was committed.")
    begin = first_hour + HOUR
    say(f"An archive begins at its group's offsets. The demo sets {world.group} to {moment(begin)}, an hour after")
    say(f"the log's start, as `kafka-consumer-groups --reset-offsets --to-datetime`: offsets {world.begin_at(begin)}.")
    return expected(batches)


def scheduled_run_killed_once(world: World) -> str:
    """Unpause the DAG; kill its running Spark job; wait for Airflow's retry. Returns the run's id."""
    say(f"DAG {world.dag} is unpaused: its timetable starts a run for the last complete hour. The run archives")
    say("all records from the group's offsets to the end of the log, of any hour.")
    name = world.unpause()

    def writing() -> tuple[bool | None, str]:
        if len(world.tasks(name)) > 2:
            raise StackError(f"the Spark job ended before it could be killed; the run is at: {world.how_far(name)}")
        return (True if world.uploads() else None), world.how_far(name)

    until(writing, 300, every=0.1)
    killed, plans = world.kill_job(), world.plans()
    if not killed:
        raise StackError("the Spark job was gone before it could be killed")
    say(f"SIGKILL for spark-submit and its Python: {killed} processes. In the bucket: {len(world.uploads())} uploads")
    say("that are not completed, so invisible, and the plan, frozen before the first byte was read.")
    state = world.wait_for(name)
    _, attempt = world.tasks(name)["archive"]
    if state != "success" or attempt < 2 or world.plans() != plans:
        raise StackError(f"run {name}: {state}, attempt {attempt} of its job; see {world.airflow.url}/dags/{world.dag}")
    say(f"Attempt {attempt} worked on the same plan and stored {len(world.objects())} objects.")
    return name


def backfill_first_hour(world: World, hour: str) -> None:
    """Backfill the hour before the archive's start, with the command of Airflow 2."""
    before, stands = world.objects(), world.stands()
    run(f"airflow dags backfill {world.dag} --start-date {hour} --end-date {hour}")
    after = world.objects()
    if len(after) == len(before) or not before.items() <= after.items() or world.stands() != stands:
        raise StackError("the backfill archived nothing, changed existing objects, or moved the group")
    say(f"{len(after) - len(before)} new objects; the {len(before)} others and the group's offsets are unchanged.")


def every_record_once(world: World, produced: dict[str, int]) -> None:
    """Read everything back from the bucket and compare it with the produced records."""
    shutil.rmtree(COPIES, ignore_errors=True)
    world.download(COPIES)
    filed = f"epoch_ms(date) + hour::INT * {HOUR}"
    rows = duckdb.execute(f"SELECT event_id, epoch_ms(created_at), {filed} FROM {LINES}").fetchall()
    counts = "count(DISTINCT filename) AS objects, count(*) AS rows"
    print(duckdb.sql(f"SELECT date, hour, {counts} FROM {LINES} GROUP BY ALL ORDER BY ALL"))
    if wrong := faults(produced, rows):
        raise StackError("the archive does not match the produced records: " + "; ".join(wrong))
    say(f"{len(produced):,} records were produced and not aborted. The bucket has each of them exactly once, with its")
    say("timestamp, in the hour of that timestamp: ✓")


def audited(world: World) -> None:
    """Check the archive's account against the store and the brokers, and the group against the ends of the log."""
    run(f"airflow archive status {world.archive} --hours 8")
    say("The backfill closed two hours: its own, and the one in which the archive began, because records of that hour")
    say("may be before the offsets at which it began. The scheduled run closed the others.")
    run(f"airflow archive audit {world.archive} --deep --live")
    if any(stands != end for stands, end in world.stands()):
        raise StackError(f"the group is not at the ends of the log (offset, end): {world.stands()}")
    say("The group is at the end of every partition, says Kafka: ✓")


def ask_duckdb(world: World, hour: str) -> None:
    """Query the backfilled hour."""
    columns = "country, count(*) AS orders, round(sum(amount), 2) AS euros, max(created_at) AS last"
    folder = f"{world.prefix}/{world.topic}/date={hour[:10]}/hour={hour[11:13]}"
    query = f"SELECT {columns}\n  FROM '{COPIES / folder}/*.jsonl.gz' GROUP BY country ORDER BY euros DESC LIMIT 5"
    say(query)
    print(duckdb.sql(query))
    say("(Here DuckDB reads copies: for s3:// it would download its extension httpfs.)")


def produce_avro(world: World, events: list[Event]) -> str:
    """Produce orders as Avro, and unpause their DAG. Returns the id of its run."""
    world.fill([Batch(as_avro(events, world.topic, world.registry))])
    say(f"The {len(events):,} orders of the first hour, written by Confluent's AvroSerializer to topic {world.topic}.")
    say("Each record has the id of its schema; the schema is in the registry.")
    say(f"DAG {world.dag} is unpaused; its run works while the demo goes on.")
    return world.unpause()


def columns_by_name(world: World, run: str, events: list[Event]) -> None:
    """Query the columns of the archived orders, and compare the answer with the produced orders."""
    if (state := world.wait_for(run)) != "success":
        raise StackError(f"run {run}: {state}; see {world.airflow.url}/dags/{world.dag}")
    world.download(COPIES)
    files = f"{COPIES / world.prefix / world.topic}/**/*.parquet"
    pieces = "sum(list_sum([item.quantity for item in items])) AS pieces"
    query = (
        f"SELECT country, count(*) AS orders, {pieces}, sum(amount) AS euros\n"
        f"  FROM '{files}' GROUP BY country ORDER BY euros DESC"
    )
    say(query)
    print(duckdb.sql(query))
    rows, expected = duckdb.execute(query).fetchall(), totals(events)
    if rows != expected:
        raise StackError(f"the columns do not match the produced orders: found {rows}, expected {expected}")
    say(f"These are the {len(events):,} produced orders, to the cent: ✓")


def restore_orders(world: World, events: list[Event]) -> None:
    """Restore the archived Avro orders to a second topic, and count there what a plain consumer reads."""
    copy = f"{world.topic}_restored"
    world.forget_topic(copy)
    run(f"airflow archive restore {world.archive} --rename {world.topic}={copy} --create --yes")
    restored, original = Counter(world.committed_values(copy)), Counter(world.committed_values(world.topic))
    if restored != original or restored.total() != len(events):
        raise StackError(
            f"topic {copy}: found {restored.total():,} records, expected the {len(events):,} of {world.topic}"
        )
    say(f"Topic {copy} has the {restored.total():,} records of {world.topic}, byte for byte, each once. Every record")
    say("was read back and compared with the archive, so the report of the restore says `verified`: ✓")


def where_to_look(world: World, columns: World, killed: str) -> None:
    """Show commands for the shell, and at the end the address of the page with five things to look at there."""
    airflow = world.airflow.url
    say(". .local/env.sh         and `airflow archive --help`, `aws s3 ls`, any Kafka client … work on this stack")
    say(f"airflow archive runs {world.archive}; airflow archive show {world.archive} last")
    say("make down               stops the stack, which is still running; make demo recreates this topic")
    say()
    say(f"{airflow}/plugin/archiver     the archiver's page, Archives in Airflow's navigation. Five things to look at:")
    say(f"1. {airflow}/dags/{world.dag}/plugin/archive")
    say("   the hours of the orders, with the backfilled one; each opens its proof: objects, offsets, runs")
    say(f"2. {airflow}/dags/{world.dag}/runs/{killed}/plugin/account")
    say("   the account of the run whose job was killed: every offset has one fate; its tasks show the killed attempt")
    say(f"3. {airflow}/archiver/archives/{columns.archive}/restores")
    say("   the restore, verified; and the form that starts another")
    say(f"4. {airflow}/archiver/archives/{columns.archive}/records?at={columns.topic}%2B0%400")
    say("   the first archived record of the Avro orders")
    say(f"5. {airflow}/archiver/new?kafka=kafka_default")
    say("   a new archive: topics from the broker, the keys that their records would get, and the YAML to copy")


def story() -> None:
    stage("The stack: Kafka, an S3 server, a schema registry, Airflow")
    world, columns = start_stack()
    stage("A stream of orders")
    first_hour = int(datetime.now(UTC).timestamp() * 1000) // HOUR * HOUR - len(PER_HOUR) * HOUR
    batches = list(Stream(first_hour).batches())
    produced = produce(world, batches, first_hour)
    stage("Airflow archives it; its Spark job is killed in the middle")
    killed = scheduled_run_killed_once(world)
    stage("The same orders as Avro")
    run_of_columns = produce_avro(columns, batches[0].events)
    stage("The hour before the archive's start: airflow dags backfill")
    backfill_first_hour(world, moment(first_hour))
    stage("Every record in the objects")
    every_record_once(world, produced)
    stage("What the archive says of itself")
    audited(world)
    stage("One question to one hour, by DuckDB")
    ask_duckdb(world, moment(first_hour))
    stage("One more archive: Avro with a registry becomes Parquet; DuckDB queries its columns by name")
    columns_by_name(columns, run_of_columns, batches[0].events)
    stage("Back to Kafka: the archived orders in a second topic")
    restore_orders(columns, batches[0].events)
    stage("Where to look")
    where_to_look(world, columns, killed)
    print(f"\nAll as promised, in {so_far()}.", flush=True)


def main() -> int:
    try:
        story()
    except (StackError, ConfigError, KafkaException, BotoCoreError, ClientError, duckdb.Error) as error:
        print(f"\nerror: {error}\n(after {so_far()}; the stack still runs: make down)", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; the stack still runs: make down", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
