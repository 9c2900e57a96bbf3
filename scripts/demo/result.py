"""The end: what is stored, that it is all there, and where to look.

DuckDB reads the objects: neither our reader nor our ledger. Reading s3:// itself needs its extension httpfs, which it
downloads; so it is given copies.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb

from scripts.demo.lake import hour_of, hour_start
from scripts.demo.orders import faults
from scripts.demo.tell import run, say, table
from scripts.demo.world import World
from scripts.stack.errors import StackError
from scripts.stack.paths import LOCAL

COPIES = LOCAL / "demo"


def every_record_once(world: World) -> None:
    """Read everything back from the bucket and compare it with what was produced."""
    shutil.rmtree(COPIES, ignore_errors=True)
    world.lake.download(COPIES)
    lines = duckdb.execute(
        f"""
        SELECT event_id, epoch_ms(created_at), filename
        FROM read_json('{COPIES}/**/*.jsonl.gz', format = 'newline_delimited', filename = true,
                       columns = {{event_id: 'VARCHAR', created_at: 'TIMESTAMPTZ'}})
        """
    ).fetchall()
    objects = world.lake.objects()
    rows = dict.fromkeys(objects, 0)
    for _, _, file in lines:
        rows[str(Path(file).relative_to(COPIES))] += 1
    table(
        ("hour (UTC)", "object", "rows", "bytes"),
        [(hour_of(key), key, rows[key], objects[key].size) for key in sorted(objects, key=lambda k: (hour_of(k), k))],
        (f"{len(set(map(hour_of, objects)))} hours", f"{len(objects)} objects below {world.lake.url}/",
         len(lines), sum(stored.size for stored in objects.values())),
    )  # fmt: skip
    if wrong := faults(world.produced, ((id_, at, hour_start(hour_of(file))) for id_, at, file in lines)):
        raise StackError("the archive is not what was produced: " + "; ".join(wrong))
    say()
    say(f"{len(world.produced):,} records were produced and not aborted. Read back from the bucket, each of these is")
    say("there exactly once, with its own time, in that time's hour: ✓")


def audited(world: World) -> None:
    """The archive's own account against the store and the brokers, and the group against the ends of the log."""
    run(f"airflow archive status {world.archive} --hours 8")
    run(f"airflow archive audit {world.archive} --deep --live")
    group = world.topic.committed()
    if behind := [f"{n}: {group[n]:,} of {end:,}" for n, end in world.topic.ends().items() if group[n] != end]:
        raise StackError(f"the group does not stand at the ends of the log: {'; '.join(behind)}")
    say("The group stands at the end of every partition, as Kafka itself says: ✓")


def ask_duckdb(world: World) -> None:
    """The hour that was backfilled, as anybody would query it."""
    folder = str(Path(min(world.lake.objects(), key=hour_of)).parent)
    for line in _best_countries(f"{world.lake.url}/{folder}").splitlines():
        say(line)
    for line in str(duckdb.sql(_best_countries(f"{COPIES / folder}"))).splitlines():
        say(line)
    say("(DuckDB reads s3:// with its extension httpfs, which it would download; here it was given copies of")
    say(f"these objects, in {COPIES.relative_to(LOCAL.parent)}.)")


def _best_countries(source: str) -> str:
    return (
        "SELECT country, count(*) AS orders, round(sum(amount), 2) AS euros, max(created_at) AS last\n"
        f"  FROM '{source}/*.jsonl.gz' GROUP BY country ORDER BY euros DESC LIMIT 5"
    )


def where_to_look(world: World, killed: str) -> None:
    """In the browser, and in the shell."""
    url = f"{world.dag.url}/dags/{world.dag.id}"
    hours = {event["extra"].get("hour") for event in world.dag.asset_events(world.clock.begun_at)}
    if len(hours) < len(set(map(hour_of, world.lake.objects()))):
        raise StackError(f"Airflow has asset events for {len(hours)} hours only")
    say(f"{url}                     the DAG; its settings are under Docs")
    say(f"{url}/runs/{killed}/tasks/archive?try_number=1")
    say("    the attempt that was killed; the others are beside it")
    say(f"{world.dag.url}/assets      an event for each of {len(hours)} complete hours, for DAGs that wait for an hour")
    say()
    say(". .local/env.sh         and `airflow archive --help`, `aws s3 ls`, any Kafka client … work on this stack")
    say(f"airflow archive runs {world.archive}; airflow archive show {world.archive} last")
    say("make down               stops everything (the stack is still running); make demo starts this topic anew")
