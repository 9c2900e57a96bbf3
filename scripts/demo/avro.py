"""The orders as Avro, with a schema in a registry, and what a query on their columns must find."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from confluent_kafka.serialization import MessageField, SerializationContext

from scripts.demo.orders import Event

with warnings.catch_warnings(record=True):
    # A library of the registry's client warns whoever imports it.
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer

_ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "sku", "type": "string"}, {"name": "quantity", "type": "int"}],
}
_TEXTS = ("event_id", "order_id", "source", "country", "customer", "currency")
SCHEMA = {
    "type": "record",
    "name": "shop.Order",
    "doc": "One event of an order",
    "fields": [
        *({"name": name, "type": "string"} for name in _TEXTS),
        {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "items", "type": {"type": "array", "items": _ITEM}},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    ],
}


class Total(NamedTuple):
    """The sum of one country's orders."""

    country: str
    orders: int
    pieces: int
    euros: Decimal


def as_avro(events: Iterable[Event], topic: str, registry: str) -> list[Event]:
    """The same events with values as confluent_kafka's serializer writes them; it registers the schema.

    :param registry: the URL of the registry.
    """
    serializer = AvroSerializer(SchemaRegistryClient.new_client({"url": registry}), json.dumps(SCHEMA))
    context: Any = SerializationContext(topic, MessageField.VALUE)
    return [event._replace(value=serializer(_datum(event), context)) for event in events]


def _datum(event: Event) -> dict[str, Any]:
    order = json.loads(event.value, parse_float=Decimal)
    return {**order, "amount": Decimal(order["amount"]), "created_at": datetime.fromisoformat(order["created_at"])}


def totals(events: Iterable[Event]) -> list[Total]:
    """The total of each country, the largest first."""
    of: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        order = _datum(event)
        of[order["country"]].append(order)
    totals_by_country = [
        Total(
            country,
            len(orders),
            sum(item["quantity"] for order in orders for item in order["items"]),
            sum((order["amount"] for order in orders), Decimal()),
        )
        for country, orders in of.items()
    ]
    return sorted(totals_by_country, key=lambda total: total.euros, reverse=True)
