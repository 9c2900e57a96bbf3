"""Schemas of an archive, and a process that ends while it registers them."""

import json
from typing import Any

from kafka_archiver.model.plan import Plan, TopicSchemas, Writer
from kafka_archiver.model.schemas import Reference, Schema
from kafka_archiver.records.decode.schema_registry_writer import RegistryWriter
from tests.support.plans import partition, plan


def avro(*fields: str) -> Schema:
    """Return the schema of a record with these fields."""
    record = {"type": "record", "name": "Order", "fields": [{"name": f, "type": "int", "default": 0} for f in fields]}
    return Schema(kind="AVRO", text=json.dumps(record))


Named = tuple[str, int, int, Schema]


def user(address: str = "Address") -> Schema:
    """Return a schema that imports another one of this name."""
    imported = Schema(kind="AVRO", text=json.dumps({"type": "record", "name": address, "fields": []}))
    text = json.dumps({"type": "record", "name": "User", "fields": [{"name": "at", "type": address}]})
    return Schema(kind="AVRO", text=text, references=(Reference(name=address, imported=imported),))


# Subject, version, id, schema.
NAMED: list[Named] = [
    ("orders-value", 1, 7, avro("a")),
    ("orders-value", 3, 9, avro("a", "b")),
    ("users-key", 1, 8, user()),
]


def plan_naming(named: list[Named] = NAMED) -> Plan:
    """Return a plan whose records name these schemas."""
    columns: dict[tuple[str, str], list[Writer]] = {}
    for subject, version, number, schema in named:
        topic, _, column = subject.rpartition("-")
        print_ = schema.fingerprint
        writer = Writer(id=number, subject=subject, version=version, fingerprint=print_, written_as=print_)
        columns.setdefault((topic, column), []).append(writer)
    schemas = tuple(
        TopicSchemas(topic=topic, column=column, framed=True, writers=tuple(writers))
        for (topic, column), writers in columns.items()
    )
    return plan(1, partition(0, 5), schemas=schemas)


class KilledError(BaseException):
    """The process has ended."""


class Mortal:
    """A writer whose process ends before or after one of its changes."""

    def __init__(self, inner: RegistryWriter, fatal: int, is_after: bool) -> None:
        self._inner, self._left, self._is_after, self.dead = inner, fatal, is_after, False

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)
        if name not in ("register", "set_mode", "mode"):
            return call

        def mortal(*args: Any, **options: Any) -> Any:
            if self.dead:
                raise KilledError
            self._left -= 1
            self.dead = self._left < 0
            if self.dead and not self._is_after:
                raise KilledError
            answer = call(*args, **options)
            if self.dead:
                raise KilledError
            return answer

        return mortal
