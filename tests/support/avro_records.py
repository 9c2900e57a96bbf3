"""Avro records in Confluent's frame, a small decoder of them, and a registry in this process with Confluent's API."""

import io
import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import fastavro
import httpx
import pyarrow as pa

from kafka_archiver.records.decode.base import Decoded, DecoderInput
from kafka_archiver.records.decode.frames import schema_id
from kafka_archiver.records.decode.schema_registry import Registry
from kafka_archiver.records.decode.schema_registry_requests import Server

EMPTY: Mapping[str, Any] = {}
# Logical types, nested ones and one of each kind of column.
ORDER = {
    "type": "record",
    "name": "shop.Order",
    "doc": "An order",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "doc": "When it came"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "labels", "type": {"type": "map", "values": "long"}},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]},
            },
        },
    ],
}


def order(n: int) -> dict[str, Any]:
    """A datum of `ORDER`."""
    return {
        "id": UUID(int=n),
        "price": Decimal(n * 100 - 50) / 100,
        "at": datetime(2026, 11, 22, 12, 0, n, tzinfo=UTC),
        "day": date(2026, 11, 22),
        "state": "PAID" if n % 2 else "NEW",
        "note": f"note, {n}" if n % 2 else None,
        "labels": {"n": n},
        "items": [{"sku": f"s{n}"}] * n,
    }


def record(name: str, *fields: str, **defaults: Any) -> dict[str, Any]:
    """The Avro schema of a record of int fields; `defaults`: further ones, with a default."""
    more = [{"name": field, "type": "int", "default": default} for field, default in defaults.items()]
    return {"type": "record", "name": name, "fields": [*({"name": f, "type": "int"} for f in fields), *more]}


def framed(number: int, schema: Mapping[str, Any], datum: Mapping[str, Any]) -> bytes:
    """A datum as Confluent's serializer writes it."""
    data = io.BytesIO()
    fastavro.schemaless_writer(data, dict(schema), dict(datum))
    return b"\0" + number.to_bytes(4) + data.getvalue()


class SmallAvro:
    """A decoder of framed Avro records without imports: a column of JSON texts."""

    def __init__(self, name: str, of: DecoderInput) -> None:
        assert (name, of.framed, of.schema is None) == ("avro", True, False)
        self.field = pa.field(of.column, pa.string())
        self._reader = json.loads(of.schema.text)
        self._writers = {number: json.loads(writer.text) for number, writer in of.writers.items()}

    def decode(self, data: pa.Array) -> Decoded:
        texts: list[str | None] = []
        reasons = {}
        for row, datum in enumerate(data.to_pylist()):
            try:
                texts.append(None if datum is None else self._text_of(datum))
            except (ValueError, LookupError, EOFError) as error:
                reasons[row] = f"{type(error).__name__}: {error}"
                texts.append(None)
        return Decoded(pa.array(texts, pa.string()), reasons)

    def _text_of(self, datum: bytes) -> str:
        writer = self._writers[schema_id(datum) or 0]
        return json.dumps(fastavro.schemaless_reader(io.BytesIO(datum[5:]), writer, self._reader))


class LocalRegistry:
    """A registry that a test changes. `subjects`: by name, each version's id and schema; None: it is deleted."""

    def __init__(self) -> None:
        self.subjects: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
        self.more: dict[int, Mapping[str, Any]] = {}
        self.deleted: set[tuple[str, int]] = set()
        self.down = False
        self.asked = 0

    def open(self) -> Registry:
        """A client."""
        return Registry(Server("http://registry", httpx.Client(transport=httpx.MockTransport(self._answer))))

    def register(self, subject: str, schema: Mapping[str, Any], more: Mapping[str, Any] = EMPTY) -> int:
        """Register a version. Returns its id. `more`: what the answers have besides."""
        number = 100 + sum(map(len, self.subjects.values()))
        self.subjects.setdefault(subject, []).append((number, schema))
        self.more[number] = more
        return number

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if self.down:
            raise httpx.ConnectError("refused")
        if known := re.fullmatch(r"/schemas/ids/(\d+)", request.url.path):
            texts = {number: text for versions in self.subjects.values() for number, text in versions}
            return httpx.Response(200, json={"schema": json.dumps(texts[int(known[1])])})
        path = re.fullmatch(r"/subjects/([^/]+)/versions(?:/(\d+))?", request.url.raw_path.decode().partition("?")[0])
        assert path, request.url
        subject, every = unquote(path[1]), "deleted" in request.url.params
        present = list(range(1, 1 + len(self.subjects.get(subject, ()))))
        present = [n for n in present if every or (subject, n) not in self.deleted]
        if path[2] is None:
            return httpx.Response(200, json=present) if present else httpx.Response(404, json={"error_code": 40401})
        number, schema = self.subjects[subject][int(path[2]) - 1]
        answer = {"id": number, "version": int(path[2]), "schema": json.dumps(schema), **self.more.get(number, {})}
        return httpx.Response(200, json=answer)
