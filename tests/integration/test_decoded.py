"""Records of confluent_kafka's serializers become columns, by the schemas that were in the registry at planning."""

import io
import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_archiver.messages.errors import TransientError
from kafka_archiver.model.schemas import Schema
from kafka_archiver.values.intervals import to_ms
from scripts.stack.ports import HOST
from tests.support import producers
from tests.support.archiver import Archiver, Services, hour
from tests.support.avro_records import LocalRegistry, framed, order, record
from tests.support.registry import RegistryServer
from tests.support.topics import DAY, Record, new_topic

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

NOWHERE = f"http://{HOST}:1"


def archive(services: Services, registry: RegistryServer, topic: str, decode: str, **store: Any) -> Archiver:
    return services.archive_of(
        topic,
        registry=registry.url,
        source={"value": {"decode": decode}},
        settings=store,
        more={"schema_evolution": "BACKWARD"},
        policies={"bad_record": "dead_letter"},
    )


def rows(archiver: Archiver) -> list[dict[str, Any]]:
    """The rows of all Parquet objects."""
    return [row for key in sorted(archiver.objects()) if key.endswith(".parquet") for row in read(archiver, key)]


def read(archiver: Archiver, key: str) -> list[dict[str, Any]]:
    return pq.read_table(io.BytesIO(archiver.context.store.get(key) or b"")).to_pylist()


def test_two_schemas_are_one_table_though_the_registry_forgets_them(
    services: Services, registry: RegistryServer
) -> None:
    topic = new_topic(services.kafka.bootstrap_servers)
    old, new = (producers.avro(registry.url, topic, "topic", *more) for more in ((), ("m",)))
    archiver = archive(services, registry, topic, "avro", format="parquet")
    numbers = [(new if n % 2 else old).serialize(n) for n in range(6)]
    archiver.produce([Record(0, DAY + n, value) for n, value in enumerate([*numbers, b"no frame", None])])
    work = archiver.plan(hour(0))
    # A retry has nobody to ask.
    registry.delete(f"{topic}-value")
    registry.delete(f"{topic}-value?permanent=true")
    archiver.registry = NOWHERE
    archiver = archiver.behind()
    archiver.work(work, plain=True)
    expected = [{"n": n, "part": {"n": n}, "m": 7} for n in range(6)]
    assert rows(archiver) == [*expected, {"n": None, "part": None, "m": None}]
    assert archiver.account(hour(0)) == {"archived": 7, "dead_lettered": 1}
    before = archiver.etags()
    archiver.work(archiver.plan(hour(0)), plain=True)
    assert archiver.etags() == before
    # The next records cannot be planned without it, and the run that was planned stays as it is.
    archiver.produce([Record(0, DAY, numbers[0])])
    with pytest.raises(TransientError, match=f"no answer from the schema registry at {NOWHERE}"):
        archiver.plan(hour(1))


@pytest.mark.parametrize("make", [producers.json_schema, producers.protobuf])
def test_the_decoded_value_stands_beside_its_bytes(
    services: Services, registry: RegistryServer, make: Callable[[str, str], producers.Producer]
) -> None:
    topic = new_topic(services.kafka.bootstrap_servers)
    producer = make(registry.url, topic)
    archiver = archive(services, registry, topic, producer.decode, content="both")
    wrong = producer.serialize(0)[:5] + b'{"n": "many"}'
    archiver.produce([Record(0, DAY, producer.serialize(5)), Record(0, DAY, wrong)])
    archiver.run(hour(0), plain=True)
    [[letter], [line]] = archiver.lines().values()
    assert (line["n"], line["value"].encode()) == (5, producer.serialize(5))
    assert f"`source.value.decode` is {producer.decode}, but the value cannot be decoded" in letter["error"]


@pytest.mark.parametrize("reader", ["native", "spark"])
def test_each_record_is_filed_by_its_own_schema_beside_its_decoded_headers(services: Services, reader: str) -> None:
    """Schemas alternate record by record; half of the records have the schema's GUID in a header."""
    registry, topic = LocalRegistry(), services.topic()
    schemas, guids = [record("Order", "n"), record("Order", "n", "m")], [uuid.uuid4() for _ in range(2)]
    more = [{"guid": str(guid)} for guid in guids]
    ids = [registry.register(f"{topic}-value", *of) for of in zip(schemas, more, strict=True)]
    meta = record("Meta", "k")
    headers = {
        "trace": {"decode": "string"},
        "meta": {"decode": "avro", "schema": Schema(kind="AVRO", text=json.dumps(meta))},
    }
    archiver = services.archive_of(
        topic,
        registry=NOWHERE,
        settings={"format": "parquet", "metadata": ["offset"]},
        source={"reader": reader, "value": {"decode": "avro", "schema_id": "header"}, "headers": headers},
        policies={"bad_record": "dead_letter"},
    )
    archiver.context = replace(archiver.context, registry=registry.open)

    def sent(n: int) -> Record:
        value = framed(ids[n % 2], schemas[n % 2], {"n": n, "m": -n})
        foreign_headers = [("trace", b"another"), ("trace", b"t%d" % n), ("meta", framed(0, meta, {"k": n})[5:])]
        if n % 4 < 2:
            return Record(0, DAY, value, None, foreign_headers)
        return Record(0, DAY, value[5:], None, [*foreign_headers, ("__value_schema_id", b"\1" + guids[n % 2].bytes)])

    bad = [Record(0, DAY, sent(0).value, None, [("trace", b"\xff")]), Record(0, DAY, sent(2).value)]
    archiver.produce([*map(sent, range(40)), Record(0, DAY, None), *bad])
    work = archiver.plan(hour(0))
    registry.down = True
    if reader == "spark":
        archiver.submitted(work)
    else:
        archiver.work(work, plain=True)
    assert archiver.account(hour(0)) == {"archived": 41, "dead_lettered": 2}
    [_, other, latest] = sorted(
        archiver.objects(), key=lambda key: (not key.startswith("_dead_letter/"), "+s" not in key)
    )
    assert other.endswith(f"+s{ids[0]}.parquet")
    assert read(archiver, other) == [
        {"offset": n, "header_trace": f"t{n}", "header_meta": {"k": n}, "n": n} for n in range(0, 40, 2)
    ]
    assert read(archiver, latest) == [
        *({"offset": n, "header_trace": f"t{n}", "header_meta": {"k": n}, "n": n, "m": -n} for n in range(1, 40, 2)),
        dict.fromkeys(["header_trace", "header_meta", "n", "m"]) | {"offset": 40},
    ]


def test_a_schema_is_inferred_once(services: Services) -> None:
    archiver = services.archive(
        [Record(0, DAY, b'{"n": 1, "s": "a"}')],
        settings={"format": "parquet"},
        source={"value": {"decode": "json", "schema": "infer"}},
    )
    work = archiver.plan(hour(0))
    archiver.produce([Record(0, DAY, b'{"n": 2, "later": 1}')])
    archiver.work(work, plain=True)
    archiver.run(hour(1), plain=True)
    assert rows(archiver) == [{"n": 1, "s": "a"}, {"n": 2, "later": 1}]
    assert len(archiver.planned(work.runs[0]).fingerprints) == 1


@pytest.mark.parametrize(
    ("format_", "content"),
    [("parquet", "both"), ("parquet", "value"), ("avro", "both"), ("jsonl", "value"), ("csv", "value")],
)
def test_orders_are_a_table_for_others(
    services: Services, registry: RegistryServer, tmp_path: Path, format_: str, content: str
) -> None:
    topic = new_topic(services.kafka.bootstrap_servers)
    producer = producers.orders(registry.url, topic)
    metadata = {"metadata": ["offset", "timestamp", "key"]} if content == "value" else {}
    store = {"format": format_, "content": content, "metadata_prefix": "kafka_", **metadata}
    archiver = archive(services, registry, topic, "avro", **store)
    archiver.produce([Record(0, DAY + n, producer.serialize(n), b"k%d" % n) for n in range(3)])
    work = archiver.plan(hour(0))
    # Each decoder and format is on a worker in test_on_a_worker.py.
    archiver.work(work, plain=True)
    [key] = archiver.objects()
    path = tmp_path / key.rpartition("+")[2]
    path.write_bytes(archiver.context.store.get(key) or b"")
    if format_ == "avro":
        with path.open("rb") as file:
            records = list(fastavro.reader(file))
        assert [{name: row[name] for name in order(0)} for row in records] == [order(n) for n in range(3)]
        assert [(row["kafka_offset"], row["kafka_key"]) for row in records] == [(n, b"k%d" % n) for n in range(3)]
        return
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        columns = 'id::text, price::decimal(10, 2), epoch_ms("at"::timestamptz), day::text, state, note, kafka_offset'
        rows = database.sql(f"select {columns} from '{path}' order by kafka_offset").fetchall()
        table = database.sql(f"from '{path}'")
        types = dict(zip(table.columns, map(str, table.types), strict=True))
    orders = [order(n) for n in range(3)]
    assert rows == [
        (str(o["id"]), o["price"], to_ms(o["at"]), str(o["day"]), o["state"], o["note"], n)
        for n, o in enumerate(orders)
    ]
    if format_ == "parquet":
        assert (types["id"], types["price"], types["labels"]) == ("UUID", "DECIMAL(10,2)", "MAP(VARCHAR, BIGINT)")
        assert types["at"] == types["kafka_timestamp"] == "TIMESTAMP WITH TIME ZONE"
        stored = pq.read_table(path)
        assert stored.schema.field("price").type == pa.decimal128(10, 2)
        assert stored.column("at").to_pylist() == [o["at"] for o in orders]
        if content == "both":
            assert stored.column("kafka_value").to_pylist() == [producer.serialize(n) for n in range(3)]
