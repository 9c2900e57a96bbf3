"""Records of confluent_kafka's serializers become columns, by the schemas that were in the registry at planning."""

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_archiver.errors import TransientError
from kafka_archiver.intervals import to_ms
from scripts.stack.ports import HOST
from tests.support import producers
from tests.support.archiver import Archiver, Services, hour
from tests.support.avro_records import order
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
    found = (archiver.context.store.get(key) for key in sorted(archiver.objects()) if key.endswith(".parquet"))
    return [row for data in found for row in pq.read_table(io.BytesIO(data or b"")).to_pylist()]


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
    archiver.submitted(work)
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
    # The job is the same for all formats: the others need no Spark.
    (archiver.submitted if (format_, content) == ("parquet", "both") else partial(archiver.work, plain=True))(work)
    [key] = archiver.objects()
    path = tmp_path / key.rpartition("+")[2]
    path.write_bytes(archiver.context.store.get(key) or b"")
    if format_ == "avro":
        with path.open("rb") as file:
            found = list(fastavro.reader(file))
        assert [{name: row[name] for name in order(0)} for row in found] == [order(n) for n in range(3)]
        assert [(row["kafka_offset"], row["kafka_key"]) for row in found] == [(n, b"k%d" % n) for n in range(3)]
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
