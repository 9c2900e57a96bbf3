"""Records of confluent_kafka's serializers become columns, by the schemas that were in the registry at planning."""

import io
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafka_archiver.errors import TransientError
from scripts.stack.ports import HOST
from tests.support import producers
from tests.support.archiver import Archiver, Services, hour
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
