"""`python -m scripts.stack up|down|status`: the commands of `make up` and `make down`."""

from __future__ import annotations

import argparse
import sys
import time

from scripts.stack.checks import require_disk
from scripts.stack.choices import Choices
from scripts.stack.env_sh import env_sh
from scripts.stack.errors import StackError
from scripts.stack.java import find_java
from scripts.stack.kafka_tools import write_kafka_tools
from scripts.stack.paths import BIN, BROKER_JARS, KAFKA_TOOLS, LOCAL, ROOT, TEMPORARY
from scripts.stack.process import Service
from scripts.stack.settings import client_settings, spark_settings
from scripts.stack.stack import Stack


def up() -> None:
    java = find_java()
    choices = Choices.remembered()
    if any(service.running() for service in Stack.of(choices).services):
        choices.require_same()
    else:
        choices = Choices.from_environment()
    stack = Stack.of(choices)
    missing = [service for service in stack.services if not service.running() or service.is_dead()]
    if missing:
        require_disk(ROOT)
    # Check all services before the first one starts: an error leaves no stack half started.
    for service in missing:
        service.clear()
    choices.remember()
    begun = time.monotonic()
    for service in missing:
        service.launch()
    for service in stack.services:
        service.wait()
        took = f"ready after {time.monotonic() - begun:.0f} s" if service in missing else "was running, kept"
        _line(service.title, service.address, took)
    clients = client_settings(stack.kafka.bootstrap_servers, stack.s3)
    clients["SCHEMA_REGISTRY_URL"] = stack.registry.url
    # For a spark-submit by hand: without it, the JVM writes below /tmp.
    spark = {**spark_settings(java), "SPARK_SUBMIT_OPTS": f'"-Djava.io.tmpdir={TEMPORARY}"'}
    write_kafka_tools(KAFKA_TOOLS, java.executable, BROKER_JARS)
    script = env_sh({**clients, **stack.airflow.settings(), **spark}, BIN, KAFKA_TOOLS)
    (LOCAL / "env.sh").write_text(script)
    _line("archives", choices.archives)
    print("Next: . .local/env.sh", flush=True)


def down() -> None:
    # Airflow first: its tasks need the other services.
    for service in reversed(Stack.of(Choices.remembered()).services):
        begun = time.monotonic()
        service.stop()
        _line(service.title, "stopped", f"in {time.monotonic() - begun:.0f} s")


def status() -> None:
    for service in Stack.of(Choices.remembered()).services:
        _line(service.title, service.address, _state(service))


def _state(service: Service) -> str:
    if not service.running():
        return "not running"
    problem = service.problem()
    if problem is None:
        return "running"
    return f"{problem}; make up starts it again" if service.is_dead() else "starting"


def _line(*cells: str) -> None:
    print("".join(f"{cell:{width}}" for cell, width in zip(cells, (16, 28, 0), strict=False)).rstrip(), flush=True)


def main() -> int:
    commands = {"up": up, "down": down, "status": status}
    parser = argparse.ArgumentParser(prog="python -m scripts.stack", description=__doc__)
    parser.add_argument("command", choices=commands)
    try:
        commands[parser.parse_args().command]()
    except StackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
