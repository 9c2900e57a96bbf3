"""`python -m scripts.demo`: the whole story, in order."""

from __future__ import annotations

import sys

import duckdb
from botocore.exceptions import BotoCoreError, ClientError
from confluent_kafka import KafkaException

from scripts.demo import archive, prepare, result
from scripts.demo.tell import Clock, duration
from scripts.demo.world import World
from scripts.stack.errors import StackError

STAGES = 8


def tell(clock: Clock) -> None:
    with clock.stage("The stack: Kafka, an S3 server, Airflow"):
        prepare.start_stack()
        world = World.of(clock)
        prepare.clean_slate(world)
    with clock.stage("A stream of orders"):
        prepare.produce(world)
        prepare.begin_archive(world)
    with clock.stage("Airflow archives it; its Spark job is killed in the middle"):
        run = archive.scheduled_run_killed_once(world)
    with clock.stage("An hour before the archive's begin: airflow dags backfill"):
        archive.backfill_first_hour(world)
    with clock.stage("The objects, and every record in them"):
        result.every_record_once(world)
    with clock.stage("What the archive says of itself"):
        result.audited(world)
    with clock.stage("One question to one hour, by DuckDB"):
        result.ask_duckdb(world)
    with clock.stage("Where to look"):
        result.where_to_look(world, run)
    print(f"\nAll as promised, in {duration(clock.seconds)}.", flush=True)


def main() -> int:
    clock = Clock(STAGES)
    try:
        tell(clock)
    except (StackError, KafkaException, BotoCoreError, ClientError, duckdb.Error) as error:
        print(
            f"\nerror: {error}\n(after {duration(clock.seconds)}; the stack is left running: make down)",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; what runs is left running: make down", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
