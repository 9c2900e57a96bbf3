"""Registers schemas under their own ids at a real registry that has the mode IMPORT.

`python -m tests.support.import_mode_run URL`. The registry of the tests (Apicurio) has no such mode, and there the twin
stands for one that has. Each round uses subjects and ids of its own, and kills the attempt before or after one more of
its calls; the next attempt must finish.
"""

import sys
import uuid

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.records.decode.schema_registry_writer import RegistryWriter
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.work.restore.schemas import SchemaRegistration
from tests.support.named_schemas import KilledError, Mortal, Named, avro, plan_naming, user


def check(writer: RegistryWriter, fatal: int, is_after: bool, first_id: int) -> bool:
    """Kill an attempt at one of its calls, let another finish, and compare. Return True if the kill happened."""
    ledger, tag = Ledger(MemoryStore(uuid.uuid4().hex), "orders"), uuid.uuid4().hex[:8]
    named: list[Named] = [
        (f"{tag}orders-value", 1, first_id, avro("a")),
        (f"{tag}orders-value", 3, first_id + 2, avro("a", "b")),
        (f"{tag}users-key", 1, first_id + 1, user(f"Address{tag}")),
    ]
    for *_, schema in named:
        ledger.keep_schema(schema)
    writer.set_mode(f"{tag}users-key", "READWRITE")
    topics, plans = [f"{tag}orders", f"{tag}users"], [plan_naming(named)]
    try:
        SchemaRegistration(ledger, "r", Mortal(writer, fatal, is_after)).run(plans, topics, "same")  # type: ignore[arg-type]
        was_killed = False
    except KilledError:
        was_killed = True
        SchemaRegistration(ledger, "r", writer).run(plans, topics, "same")
    for subject, version, number, schema in named:
        places = {v.number: (v.id, v.schema) for v in writer.registry.versions(subject)}
        assert places[version] == (number, schema), (subject, version, places)
        assert writer.registry.schema(number) == schema
    modes = [writer.mode(f"{tag}{subject}") for subject in ("users-key", "orders-value")]
    assert modes == ["READWRITE", None], modes
    # A producer goes on: its next schema gets an id that no record has.
    following = writer.register(f"{tag}orders-value", avro("a", "b", "c"))
    assert following not in {number for _, _, number, _ in named}
    return was_killed


def main() -> int:
    writer = RegistryWriter.of({"url": sys.argv[1]}, "the argument")
    first_id, rounds = 1000, 0
    for is_after in (False, True):
        fatal = 0
        while check(writer, fatal, is_after, first_id + 100 * rounds):
            fatal, rounds = fatal + 1, rounds + 1
        rounds += 1
    print(
        f"{rounds} restores of schemas, {rounds - 2} of them killed: each schema has its id and version, and each mode"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
