"""Records of confluent_kafka's serializers that put the schema's id in a header, as Confluent's registry 8 has it."""

import io
import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.plan import plan
from tests.support.avro_records import LocalRegistry, framed, record
from tests.support.lake import FIRST, Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
ID, CONF = "__value_schema_id", {"schema.id.serializer": header_schema_id_serializer}
Headers = tuple[tuple[str, bytes | None], ...]


def avro(client: SchemaRegistryClient) -> Callable[[int, SerializationContext], bytes | None]:
    serializer = AvroSerializer(client, json.dumps(record("Order", "n")), conf=CONF)
    return lambda n, context: serializer({"n": n}, context)


def json_schema(client: SchemaRegistryClient) -> Callable[[int, SerializationContext], bytes | None]:
    text = {"title": "Order", "type": "object", "properties": {"n": {"type": "integer"}}}
    serializer = JSONSerializer(json.dumps(text), client, conf=CONF)
    return lambda n, context: serializer({"n": n}, context)


def protobuf(client: SchemaRegistryClient) -> Callable[[int, SerializationContext], bytes | None]:
    """The second message of its file."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="p", syntax="proto3")
    for name in ("Other", "Order"):
        field = file.message_type.add(name=name).field.add(name="n", number=1)
        field.type, field.label = descriptor_pb2.FieldDescriptorProto.TYPE_INT32, 1
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Order"))
    serializer = ProtobufSerializer(message, client, {**CONF, "use.deprecated.format": False})
    return lambda n, context: serializer(message(n=n), context)  # type: ignore[call-arg]


class Sent(NamedTuple):
    headers: Headers
    value: bytes | None


def lake_of(registry: LocalRegistry, value: dict[str, Any], *sent: Sent) -> Lake:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, len(sent))}, name="orders")
    for offset, message in enumerate(sent):
        lake.odd[P0, offset] = {"headers": message.headers, "value": message.value, "timestamp": to_ms(FIRST)}
    source = {"topics": ["orders"], "settle": 0, "registry": "r", "value": {"schema_id": "header", **value}}
    store = {"url": "memory://unused", "format": "parquet", "metadata": ["offset"], "chunk_records": 10}
    policies = {"bad_record": "skip"}
    lake.configure(
        Archive.model_validate({"archive": "orders", "source": source, "store": store, "policies": policies})
    )
    lake.context = replace(lake.context, registry=registry.open)
    return lake


def rows(lake: Lake) -> dict[str, list[dict[str, Any]]]:
    """The rows of each object, by the end of its name."""
    by_key = {key: lake.store.get(key) or b"" for key in lake.stored()}
    return {key[-13:]: pq.read_table(io.BytesIO(data)).to_pylist() for key, data in by_key.items()}


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (avro, {"decode": "avro"}),
        (json_schema, {"decode": "json_schema"}),
        (protobuf, {"decode": "protobuf", "message": "Order"}),
    ],
)
def test_the_id_is_taken_from_the_header_or_else_from_the_frame(
    make: Callable[[SchemaRegistryClient], Callable[[int, SerializationContext], bytes | None]], value: dict[str, Any]
) -> None:
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    headers: list[tuple[str, bytes]] = []
    data = make(client)(5, SerializationContext("orders", MessageField.VALUE, headers))
    assert data
    [(name, header)] = headers
    assert name == ID
    registered = client.get_latest_version("orders-value")
    assert registered.schema
    registry = LocalRegistry()
    more = {
        "schema": registered.schema.schema_str,
        "schemaType": registered.schema.schema_type,
        "guid": registered.guid,
    }
    number = registry.register("orders-value", {}, more)
    lake = lake_of(
        registry,
        value,
        Sent(((ID, b"\1wrong"), (ID, header)), data),
        Sent((), b"\0" + number.to_bytes(4) + header[17:] + data),
        Sent(((ID, b"\0" + number.to_bytes(4) + header[17:]),), data),
        Sent(((ID, header),), None),
        # Not the key's header, an unknown id, half an id.
        Sent((("__key_schema_id", header),), data),
        Sent(((ID, b"\1" + b"?" * 16),), data),
        Sent(((ID, header[:9]),), data),
    )
    run = lake.run(1, until="planned")
    registry.down = True
    lake.run(1)
    assert lake.manifest(run).account["filtered"] == 3
    [stored_rows] = rows(lake).values()
    assert [(row["offset"], row["n"]) for row in stored_rows] == [(0, 5), (1, 5), (2, 5), (3, None)]
    assert lake.planned(run).schemas[0].writers[0].guid == registered.guid
    assert not lake.audit(deep=True).findings


def test_records_are_filed_by_the_ids_in_their_headers() -> None:
    registry = LocalRegistry()
    ids, sent = [uuid.uuid4() for _ in range(2)], []
    for n, guid in enumerate(ids):
        schema = record("Order", *("ab"[: n + 1]))
        registry.register("orders-value", schema, {"guid": str(guid)})
        sent.append(Sent(((ID, b"\1" + guid.bytes),), framed(0, schema, {"a": n, "b": n})[5:]))
    lake = lake_of(registry, {"decode": "avro"}, *sent, *sent)
    lake.run(1)
    other, latest = sorted(rows(lake).items())
    assert other == ("+s100.parquet", [{"offset": n, "a": 0} for n in (0, 2)])
    assert latest == ("00000.parquet", [{"offset": n, "a": 1, "b": 1} for n in (1, 3)])


def test_a_registry_without_guids_lets_nothing_be_planned() -> None:
    registry = LocalRegistry()
    registry.register("orders-value", record("Order", "n"))
    lake = lake_of(registry, {"decode": "avro"}, Sent((), None))
    lake.now = hour(1).end
    with pytest.raises(
        PermanentError, match=r"no GUID for version 1 of subject orders-value, and `source\.value\.schema_id`"
    ):
        plan(lake.context, hour(1), "scheduled")
    assert lake.ledger.planned(1) is None
