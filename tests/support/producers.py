"""Producers of others: confluent_kafka's serializers, with a real registry. Each registers its schema."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from confluent_kafka.schema_registry import Schema as Text
from confluent_kafka.schema_registry import (
    SchemaReference,
    SchemaRegistryClient,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.support.avro_records import ORDER, order

STRATEGIES = {
    "topic": topic_subject_name_strategy,
    "record": record_subject_name_strategy,
    "topic_record": topic_record_subject_name_strategy,
}
Serialize = Callable[[int], bytes]


class Producer(NamedTuple):
    """`decode`: the archiver's decoder; `record`: the record's full name; `serialize` gives the bytes of a number."""

    decode: str
    record: str
    serialize: Serialize


def avro(url: str, topic: str, strategy: str = "topic", *more: str) -> Producer:
    """Records with a field `n`, and a part whose schema is imported. `more`: further fields, with a default."""
    client = SchemaRegistryClient({"url": url})
    part = {"type": "record", "name": "x.Part", "fields": [{"name": "n", "type": "int"}]}
    client.register_schema("part", Text(json.dumps(part), "AVRO"))
    fields = [{"name": "n", "type": "int"}, {"name": "part", "type": "x.Part"}]
    fields += [{"name": name, "type": "int", "default": 7} for name in more]
    text = json.dumps({"type": "record", "name": "x.Order", "fields": fields})
    imports = [SchemaReference("x.Part", "part", 1)]
    conf = {"subject.name.strategy": STRATEGIES[strategy]}
    serializer = AvroSerializer(client, Text(text, "AVRO", imports), conf=conf)
    return Producer("avro", "x.Order", _of(serializer, topic, lambda n: {"n": n, "part": {"n": n}}))


def orders(url: str, topic: str) -> Producer:
    """Records of the schema `ORDER`."""
    serializer = AvroSerializer(SchemaRegistryClient({"url": url}), json.dumps(ORDER))
    return Producer("avro", "shop.Order", _of(serializer, topic, order))


def json_schema(url: str, topic: str, strategy: str = "topic") -> Producer:
    """Objects with a field `n`."""
    text = {"title": "Order", "type": "object", "properties": {"n": {"type": "integer"}}}
    conf = {"subject.name.strategy": STRATEGIES[strategy]}
    serializer = JSONSerializer(json.dumps(text), SchemaRegistryClient({"url": url}), conf=conf)
    return Producer("json_schema", "Order", _of(serializer, topic, lambda n: {"n": n}))


def protobuf(url: str, topic: str, strategy: str = "topic") -> Producer:
    """Messages with a field `n`."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="p", syntax="proto3")
    field = file.message_type.add(name="Order").field.add(name="n", number=1)
    field.type, field.label = descriptor_pb2.FieldDescriptorProto.TYPE_INT32, 1
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Order"))
    conf = {"subject.name.strategy": STRATEGIES[strategy], "use.deprecated.format": False}
    serializer = ProtobufSerializer(message, SchemaRegistryClient({"url": url}), conf)
    return Producer("protobuf", "p.Order", _of(serializer, topic, lambda n: message(n=n)))


def _of(serializer: Any, topic: str, make: Callable[[int], object]) -> Serialize:
    def serialize(n: int) -> bytes:
        data: bytes = serializer(make(n), SerializationContext(topic, MessageField.VALUE))
        return data

    return serialize
