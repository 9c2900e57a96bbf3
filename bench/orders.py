"""The same orders as Avro, Protobuf and JSON: nested, with logical types, written by Confluent's serializers."""

import json
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.decode.protobuf.files import _protoc

_PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
_ITEM = [{"name": "sku", "type": "string"}, {"name": "quantity", "type": "int"}, {"name": "price", "type": _PRICE}]
_ADDRESS = [{"name": "street", "type": "string"}, {"name": "zip", "type": "int"}, {"name": "city", "type": "string"}]
AVRO = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "due", "type": {"type": "int", "logicalType": "date"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID", "SENT"]}},
        {"name": "customer", "type": "long"},
        {"name": "rate", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "address", "type": {"type": "record", "name": "Address", "fields": _ADDRESS}},
        {"name": "items", "type": {"type": "array", "items": {"type": "record", "name": "Item", "fields": _ITEM}}},
        {"name": "labels", "type": {"type": "map", "values": "string"}},
    ],
}
PROTOBUF = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
enum State { NEW = 0; PAID = 1; SENT = 2; }
message Order {
  string id = 1; google.protobuf.Timestamp at = 2; string due = 3; State state = 4; int64 customer = 5; double rate = 6;
  optional string note = 7; Address address = 8; repeated Item items = 9; map<string, string> labels = 10;
}
message Address { string street = 1; int32 zip = 2; string city = 3; }
message Item { string sku = 1; int32 quantity = 2; string price = 3; }
"""
_TEXT, _WHOLE = {"type": "string"}, {"type": "integer"}
JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "at": {"type": "string", "format": "date-time"},
        "due": {"type": "string", "format": "date"},
        "state": {"type": "string", "enum": ["NEW", "PAID", "SENT"]},
        "customer": _WHOLE,
        "rate": {"type": "number", "format": "double"},
        "note": {"type": ["string", "null"]},
        "address": {"type": "object", "properties": {"street": _TEXT, "zip": _WHOLE, "city": _TEXT}},
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"sku": _TEXT, "quantity": _WHOLE, "price": _TEXT}},
        },
        "labels": {"type": "object", "additionalProperties": _TEXT},
    },
    "required": ["id", "at", "state"],
}
_WORDS = ("amber", "anchor", "basket", "copper", "falcon", "ginger", "harbor", "juniper", "lantern", "meadow", "velvet")


class Kind(NamedTuple):
    """One encoding of the orders. `confluent`: their deserializer."""

    decoder: str
    schema: Schema
    values: list[bytes]
    confluent: Callable[[bytes], object]


def kinds(count: int) -> Iterable[Kind]:
    """The encodings, each with so many orders. The registry's id of each schema is 1."""
    orders = [*map(_order, range(count))]
    texts = [*map(_spelt, orders)]
    avro, json_schema, message = json.dumps(AVRO), json.dumps(JSON), _message()
    newer = {"use.deprecated.format": False}
    # Each has a registry of its own. With it, a deserializer looks for the schema of each record's id, as ours does.
    first, second, third = _registry(), _registry(), _registry()
    serializer: Any = AvroSerializer(first, avro)
    yield _kind("avro", Schema(kind="AVRO", text=avro), serializer, AvroDeserializer(first), orders)
    serializer, messages = ProtobufSerializer(message, second, newer), (ParseDict(text, message()) for text in texts)
    schema, deserializer = Schema(kind="PROTOBUF", text=PROTOBUF), ProtobufDeserializer(message, newer, second)
    yield _kind("protobuf", schema, serializer, deserializer, messages)
    serializer, schema = JSONSerializer(json_schema, third), Schema(kind="JSON", text=json_schema)
    yield _kind("json_schema", schema, serializer, JSONDeserializer(json_schema, None, third), texts)


def _kind(decoder: str, schema: Schema, serializer: Any, deserializer: Any, values: Iterable[object]) -> Kind:
    context = SerializationContext("orders", MessageField.VALUE)
    data = [serializer(value, context) for value in values]
    return Kind(decoder, schema, data, lambda value: deserializer(value, context))


def _registry() -> Any:
    """Confluent's registry in memory. Its first schema has the id 1."""
    return SchemaRegistryClient.new_client({"url": "mock://"})


def _message() -> Any:
    pool = DescriptorPool()
    for file in _protoc({"orders.proto": PROTOBUF}, {}, "orders"):
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def _order(number: int) -> dict[str, Any]:
    draws = random.Random(number)

    def words(count: int) -> str:
        return " ".join(draws.choices(_WORDS, k=count))

    return {
        "id": UUID(int=draws.getrandbits(128)),
        "at": datetime(2026, 11, 22, tzinfo=UTC) + timedelta(milliseconds=draws.randrange(86_400_000)),
        "due": date(2026, 11, 22) + timedelta(days=draws.randrange(100)),
        "state": draws.choice(["NEW", "PAID", "SENT"]),
        "customer": draws.getrandbits(40),
        "rate": draws.randrange(10_000) / 10_000,
        "note": words(8) if number % 3 else None,
        "address": {"street": f"{words(3)} {number % 99}", "zip": draws.randrange(10_000, 99_999), "city": words(2)},
        "items": [
            {"sku": f"{draws.getrandbits(40):010X}", "quantity": draws.randrange(1, 9), "price": Decimal(price) / 100}
            for price in draws.choices(range(99_999), k=draws.randrange(2, 6))
        ],
        "labels": {"source": words(1), "campaign": words(2)},
    }


def _spelt(order: Mapping[str, Any]) -> dict[str, Any]:
    """The order as JSON has it."""
    items = [{**item, "price": str(item["price"])} for item in order["items"]]
    at = order["at"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {**order, "id": str(order["id"]), "at": at, "due": str(order["due"]), "items": items}
