"""SQL, schemas that change between a plan and its attempt, layouts by what SQL made, encryption: every record once."""

import json
import uuid
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_archiver.config import Archive
from kafka_archiver.context.print_object import from_store, lines
from kafka_archiver.encryption import Keyring
from kafka_archiver.encryption.masters import LocalMaster
from kafka_archiver.model.object_keys import is_dead_letter
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.support.avro_records import LocalRegistry, framed
from tests.support.lake import hour
from tests.support.spark_lake import SparkLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
P0 = TopicPartition("orders", 0)
MORE = {"name": "c", "type": ["null", "long"], "default": None}
INSIDE = {"name": "zip", "type": ["null", "long"], "default": None}


def version(kind: str, name: Any, *more: Any, inside: tuple[Any, ...] = ()) -> dict[str, Any]:
    place = {"type": "record", "name": "A", "fields": [{"name": "city", "type": "string"}, *inside]}
    fields = [{"name": "n", "type": kind}, name, {"name": "at", "type": place}, *more]
    return {"type": "record", "name": "O", "fields": fields}


# A field is added, within another one too; its type is promoted, and one is renamed.
VERSIONS = [
    version("int", {"name": "s", "type": "string"}),
    version("long", {"name": "s", "type": "string"}, MORE, inside=(INSIDE,)),
    version("double", {"name": "kind", "aliases": ["s"], "type": "string"}, MORE, inside=(INSIDE,)),
]
CITIES = ["x", "a/b", "", "é", "e\u0301", "..", "%41", "A", "x" * 300, "__HIVE_DEFAULT_PARTITION__"]
RECORDS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 9), st.sampled_from(CITIES), st.sampled_from([None, 1, 9])),
    min_size=1,
    max_size=12,
)


def datum(number: int, n: int, city: str, c: int | None) -> dict[str, Any]:
    """Return a record as a version has it."""
    name, inside = ("kind" if number == 2 else "s"), ({"zip": c} if number else {})
    return {"n": n, name: "text", "at": {"city": city, **inside}, **({"c": c} if number else {})}


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    drawn=RECORDS,
    known=st.integers(1, 2),
    content=st.sampled_from(["value", "record"]),
    size=st.integers(1, 5),
    encryption=st.sampled_from(["none", {"client": {"connection": "master_key"}}]),
)
def test_each_record_has_one_fate_by_the_schemas_of_the_plan(
    spark: "SparkSession", drawn: list[tuple[int, int, str, int | None]], known: int, content: str, size: int,
    encryption: Any,
) -> None:  # fmt: skip
    registry = LocalRegistry()
    for schema in VERSIONS[: known + 1]:
        registry.register("orders-value", schema)
    drawn = [(min(number, known), n, city, c) for number, n, city, c in drawn]
    keyring = Keyring([LocalMaster(b"1" * 32)])
    logs = {P0: Range(0, len(drawn))}
    lake = SparkLake(MemoryStore(uuid.uuid4().hex), logs, name="orders", keyring=keyring, spark=spark, size=size)
    for offset, (number, *fields) in enumerate(drawn):
        lake.odd[P0, offset] = {"value": framed(100 + number, VERSIONS[number], datum(number, *fields))}
    selected = {"select": ["value.at.city AS folder", "value.n + 1 AS m", "value.c AS c"]} if content == "value" else {}
    field = {"field": "value.folder" if selected else "value.at.city", "as": "f"}
    store = {"url": "memory://unused", "chunk_records": 5, "content": content, "encryption": encryption}
    store |= {"layout": {"fields": [field]}, "metadata": ["offset"] if selected else [], "codec": "none"}
    source = {"topics": ["orders"], "settle": 0, "registry": "r", "value": {"decode": "avro"}}
    # Older records have no `c`; of n = 4 the division fails.
    transform = {"where": "10 / (value.n - 4) > 0 AND (value.c IS NULL OR value.c > 2) -- and no others", **selected}
    archive = {"archive": "orders", "source": source, "store": store, "transform": transform}
    archive |= {"schema_evolution": "BACKWARD", "policies": {"bad_record": "dead_letter"}}
    lake.configure(Archive.model_validate(archive))
    lake.context = replace(lake.context, registry=registry.open)
    run = lake.run(1, until="planned")
    # What the registry learns now, the plan does not know.
    registry.register("orders-value", version("string", {"name": "other", "type": "string"}))
    assert lake.run(1) == run == hour(1).id

    fates = Counter[str]()
    expected: dict[int, Any] = {}
    for offset, (number, n, city, c) in enumerate(drawn):
        own = c if number else None
        kept = n > 4 and (own is None or own > 2)
        fates["dead_lettered" if n == 4 else "archived" if kept else "filtered"] += 1
        if n != 4 and kept:
            expected[offset] = {"folder": city, "m": n + 1, "c": own}
    outcomes: dict[int, Any] = {}
    folders: dict[str, set[str]] = {}
    for entry in lake.manifest(run).stored:
        opened = b"".join(map(bytes, lines(entry.key, from_store(lake.store, entry.key, lake.ledger.open_key))))
        for row in [] if is_dead_letter(entry.key) else map(json.loads, opened.splitlines()):
            offset = row.pop("offset")
            assert offset not in outcomes
            outcomes[offset] = row
            folders.setdefault(entry.key.rpartition("/")[0], set()).add(drawn[offset][2])
    assert outcomes == expected if selected else outcomes.keys() == expected.keys()
    assert all(len(cities) == 1 for cities in folders.values())
    assert len(folders) == len({drawn[offset][2] for offset in expected})
    assert {fate: count for fate, count in lake.manifest(run).account.items() if count} == dict(fates)
    assert lake.audit(deep=True).findings == ()
    before = {key: lake.store.get(key) for key in lake.stored()}
    for key in before:
        lake.store.delete(key)
    if not fates["dead_lettered"]:
        lake.run(1)
        assert {key: lake.store.get(key) for key in lake.stored()} == before
