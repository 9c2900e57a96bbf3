"""The end: what is stored, that it is all there, and where to look."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path

from scripts.demo import query, shell
from scripts.demo.account import COLUMNS, account, faults
from scripts.demo.check import compare
from scripts.demo.errors import DemoError
from scripts.demo.lake import hour_of
from scripts.demo.tell import say, table
from scripts.demo.world import World
from scripts.stack.paths import LOCAL

COPIES = LOCAL / "demo"


def every_record_once(world: World) -> None:
    """Read everything back from the bucket and compare it with what was produced."""
    shutil.rmtree(COPIES, ignore_errors=True)
    world.lake.download(COPIES)
    lines = query.every_line(COPIES)
    _objects(world)
    verdict = compare(world.produced.expected(), lines)
    if verdict.faults:
        raise DemoError("the archive is not what was produced: " + "; ".join(verdict.faults))
    say()
    say(f"{len(world.produced.sent):,} records were produced; {len(lines):,} are neither aborted nor compacted away.")
    say("Read back from the bucket, each of these is there exactly once, with its own time, in that time's hour: ✓")


def _objects(world: World) -> None:
    rows = {o["key"]: o["rows"] for m in world.lake.documents("manifest").values() for o in m["objects"]}
    stored = sorted(world.lake.objects().items(), key=lambda item: (hour_of(item[0]), item[0]))
    if {key for key, _ in stored} != rows.keys():
        raise DemoError("the bucket and the ledger do not have the same objects")
    table(
        ("hour (UTC)", "object", "rows", "bytes"),
        [(hour_of(key), key, rows[key], one.size) for key, one in stored],
        (f"{len({hour_of(key) for key, _ in stored})} hours", f"{len(stored)} objects below {world.lake.url}/",
         sum(rows.values()), sum(one.size for _, one in stored)),
    )  # fmt: skip


def every_offset_explained(world: World) -> None:
    """The account of the ledger against the logs, and the group against their ends."""
    logs, fates = world.topic.logs(), world.produced.fates()
    chunks = defaultdict(list)
    for manifest in world.lake.documents("manifest").values():
        for chunk in manifest["chunks"]:
            chunks[chunk["partition"]].append(chunk)
    accounts = [account(number, log, chunks[number], fates[number]) for number, log in logs.items()]
    sums = [sum(cells) for cells in zip(*(one.row for one in accounts), strict=True)]
    table(COLUMNS, [(str(one.partition), *one.row[1:]) for one in accounts], ("all", *sums[1:]))
    if wrong := faults(accounts, fates, world.produced.markers()):
        raise DemoError("the account does not add up: " + "; ".join(wrong))
    say("Every offset has exactly one reason; archived + … + lost is the number of offsets of the log: ✓")
    say()
    shell.run(f"airflow archive status {world.archive}")
    group = world.topic.committed()
    if behind := [f"{n}: {group[n]:,} of {end:,}" for n, (_, end) in logs.items() if group[n] != end]:
        raise DemoError(f"the group does not stand at the ends of the log: {'; '.join(behind)}")
    say("The group stands at the end of every partition, as Kafka itself says: ✓")


def ask_duckdb(world: World) -> None:
    """The hour that was backfilled, as anybody would query it."""
    key = min(world.lake.objects(), key=hour_of)
    folder = str(Path(key).parent)
    for line in query.best_countries(f"{world.lake.url}/{folder}").splitlines():
        say(line)
    for line in query.ask(query.best_countries(str(COPIES / folder))).splitlines():
        say(line)
    say("(DuckDB reads s3:// with its extension httpfs, which it would download; here it was given copies of")
    say(f"these objects, in {COPIES.relative_to(LOCAL.parent)}.)")


def where_to_look(world: World, run: str) -> None:
    """In the browser, and in the shell."""
    url = f"{world.dag.url}/dags/{world.dag.id}"
    hours = {event["extra"].get("hour") for event in world.dag.asset_events(world.clock.begun_at)}
    if len(hours) < len({hour_of(key) for key in world.lake.objects()}):
        raise DemoError(f"Airflow has asset events for {len(hours)} hours only")
    say(f"{url}                     the DAG; its settings are under Docs")
    say(f"{url}/runs/{run}/tasks/archive?try_number=1")
    say("    the attempt that was killed; the others are beside it")
    say(f"{world.dag.url}/assets      an event for each of {len(hours)} complete hours, for DAGs that wait for an hour")
    say()
    say(". .local/env.sh         and `airflow archive --help`, `aws s3 ls`, any Kafka client … work on this stack")
    say(f"airflow archive runs {world.archive}; airflow archive show {world.archive} last")
    say("make down               stops everything (the stack is still running); make demo starts this topic anew")
