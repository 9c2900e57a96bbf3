"""Schemas that alternate record by record: how many objects there are, and that each record is stored once."""

import io
import json
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.config import Archive
from kafka_archiver.model.object_keys import split_object_key
from kafka_archiver.model.plan import TopicSchemas
from kafka_archiver.model.schemas import Schema, SubjectVersion
from kafka_archiver.model.settings import Evolution, Settings
from kafka_archiver.planning.schema_versions import subject_writers
from kafka_archiver.records.pipeline.transform.questions import SqlAnswer
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.records.writer.result import Limits, WriteJob
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.repair import find_repairs, write_again
from tests.support.avro_records import LocalRegistry, framed, record
from tests.support.chunks import HOUR, Row, chunk_of, cut, facts, new_store
from tests.support.lake import FIRST, Lake

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
# The first one cannot become any other: it has no `n`.
SCHEMAS = [record("Order", "x"), *(record("Order", "n", **{f"f{n}": n for n in range(k)}) for k in range(9))]
COUNT = 40


def value(k: int, offset: int) -> bytes:
    fields = {field["name"]: offset for field in SCHEMAS[k]["fields"]}
    return framed(100 + k, SCHEMAS[k], fields)


def lake_of(evolution: Evolution, alternates: bool = True) -> Lake:
    registry = LocalRegistry()
    for schema in SCHEMAS:
        registry.register("orders-value", schema)
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, COUNT)}, name="orders")
    for offset in range(COUNT):
        k = offset % len(SCHEMAS) if alternates else len(SCHEMAS) - 1
        lake.odd[P0, offset] = {"value": value(k, offset), "timestamp": to_ms(FIRST)}
    lake.configure(
        Archive.model_validate(
            {
                "archive": lake.name,
                "source": {"topics": ["orders"], "settle": 0, "registry": "r", "value": {"decode": "avro"}},
                "store": {"url": "memory://unused", "format": "parquet", "metadata": ["offset"]},
                "schema_evolution": evolution,
                "policies": {"bad_record": "skip"},
            }
        )
    )
    lake.context = replace(lake.context, registry=registry.open)
    return lake


def rows_of(data: bytes | None) -> list[dict[str, Any]]:
    return pq.read_table(io.BytesIO(data or b"")).to_pylist()


@pytest.mark.parametrize(("evolution", "objects", "archived"), [("NONE", 10, 40), ("BACKWARD", 1, 36), ("FULL", 1, 36)])
def test_schemas_that_alternate_never_multiply_objects(evolution: Evolution, objects: int, archived: int) -> None:
    """The record of a schema that cannot be projected is a bad one, except where nothing is projected."""
    uniform = lake_of(evolution, alternates=False)
    uniform.run(1)
    lake = lake_of(evolution)
    run = lake.run(1)
    before = {key: lake.store.get(key) for key in lake.stored()}
    assert len(before) == objects * len(uniform.stored()) == objects
    assert lake.manifest(run).account["archived"] == archived
    # The keys of a uniform stream stay.
    assert uniform.stored() == [key for key in before if "+s" not in key]
    assert {split_object_key(key) for key in before} == set(lake.planned(run).places())
    assert not lake.audit(deep=True).findings
    lake.run(1)
    assert {key: lake.store.get(key) for key in lake.stored()} == before
    if evolution == "NONE":
        for key, data in before.items():
            k = int(key.rpartition("+s")[2].partition(".")[0]) - 100 if "+s" in key else 9
            names = ["offset", *(field["name"] for field in SCHEMAS[k]["fields"])]
            assert rows_of(data) == [dict.fromkeys(names, n) for n in range(k, COUNT, 10)]


def test_sql_sees_one_type_of_records_of_several_schemas_also_where_their_bytes_are_stored() -> None:
    lake = lake_of("BACKWARD")
    store = {"url": "memory://unused", "content": "record"}
    changed = {**lake.archive.model_dump(), "store": store, "transform": {"where": "value.n > 2"}}
    lake.configure(Archive.model_validate(changed))
    lake.context = replace(lake.context, spark=lambda _: SqlAnswer(spark="4.2.0"))
    [decoded] = lake.planned(lake.run(1, until="planned")).schemas
    assert (len(decoded.written), len(decoded.writers)) == (1, len(SCHEMAS))


def test_a_lost_object_of_one_schema_is_found_and_written_again() -> None:
    lake = lake_of("NONE")
    run = lake.run(1)
    before = {key: lake.store.get(key) for key in lake.stored()}
    [gone] = [key for key in before if "+s103." in key]
    lake.store.delete(gone)
    report = lake.audit()
    assert [finding.subject for finding in report.damage] == [gone]
    damage = find_repairs(lake.context, report)
    assert list(damage.to_rewrite) == [run]
    lake.finish(write_again(lake.context, list(damage.to_rewrite)))
    again = [lake.store.get(key) for key in lake.stored()]
    assert sorted(map(json.dumps, map(rows_of, again))) == sorted(map(json.dumps, map(rows_of, before.values())))
    assert not lake.audit(deep=True).findings


def test_records_of_several_subjects_have_objects_of_their_own_and_those_without_columns_are_bad() -> None:
    lake, registry = lake_of("NONE"), LocalRegistry()
    child = {"name": "child", "type": ["null", "B"], "default": None}
    tree = {"type": "record", "name": "B", "fields": [{"name": "n", "type": "int"}, child]}
    schemas = {"A": record("A", "n"), "tree": tree, "B": record("B", "n", "m")}
    ids = {name: registry.register(name[0].replace("t", "B"), schema) for name, schema in schemas.items()}
    for offset in range(COUNT):
        name = ("A", "tree", "B")[offset % 3]
        datum = {field["name"]: offset for field in schemas[name]["fields"]} | (
            {"child": None} if name == "tree" else {}
        )
        lake.odd[P0, offset]["value"] = framed(ids[name], schemas[name], datum)
    value = {"decode": "avro", "subject": "record", "subjects": ["A", "B"]}
    source = {"topics": ["orders"], "settle": 0, "registry": "r", "value": value}
    lake.configure(Archive.model_validate({**lake.archive.model_dump(), "source": source}))
    lake.context = replace(lake.context, registry=registry.open)
    run = lake.run(1)
    assert [lake.manifest(run).account[fate] for fate in ("archived", "filtered")] == [27, 13]
    assert {key.rpartition("0")[2]: rows_of(lake.store.get(key)) for key in lake.stored()} == {
        "2.parquet": [{"offset": n, "n": n, "m": n} for n in range(2, COUNT, 3)],
        ".parquet": [{"offset": n, "n": n} for n in range(0, COUNT, 3)],
    }


VERSIONS = [SubjectVersion("s", k, 100 + k, Schema(kind="AVRO", text=json.dumps(s))) for k, s in enumerate(SCHEMAS)]
LAST = VERSIONS[-1].schema.fingerprint
DECODED = {
    column: TopicSchemas(
        topic="orders", column=column, framed=True, writers=subject_writers(VERSIONS, None), main=LAST
    )
    for column in ("key", "value")
}  # fmt: skip
# The schema of a key or a value; None: it is null. 10: an id that the plan does not name.
CHOICES = st.none() | st.integers(0, 2) | st.sampled_from([9, 10])


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(CHOICES, CHOICES, st.integers(0, 2)), min_size=1, max_size=40),
    st.tuples(st.integers(1, 9), st.integers(1, 40)),
    st.sampled_from([1, 64]),
)
def test_each_record_is_stored_once_with_its_own_schemas(
    drawn: list[tuple[int | None, int | None, int]], cuts: tuple[int, int], open_objects: int
) -> None:
    """However the batches are cut, and however little memory there is: with the keys' schemas, too."""
    job = WriteJob(
        archive="a",
        settings=Settings(
            format="parquet", codec="zstd", content="both", metadata_prefix="_", key_decode="avro", value_decode="avro",
            options={"row_group_rows": None, "bloom_filters": []},
        ),
        bad_record="skip",
        decoded=tuple(DECODED.values()),
        schemas={version.schema.fingerprint: version.schema for version in VERSIONS},
    )  # fmt: skip

    def bytes_of(k: int | None, offset: int) -> bytes | None:
        return None if k is None else value(k, offset) if k < 10 else b"\0\0\0\0\1"

    rows = [
        Row(n, hour * HOUR, key=bytes_of(key, n), value=bytes_of(own, n)) for n, (key, own, hour) in enumerate(drawn)
    ]
    stored_rows = []
    for size, limits in zip(cuts, (Limits(), Limits(memory_bytes=4000, open_objects=open_objects)), strict=True):
        store = new_store()
        result = write_chunk(chunk_of(0, len(rows)), cut(rows, size), job, store, limits)
        stored = Counter()
        for entry in complete([result], store):
            for row in rows_of(store.get(entry.key)):
                offset = row["_offset"]
                names = [name for name in row if not name.startswith("_")]
                stored[offset] += 1
                key, own, _ = drawn[offset]
                k = 9 if own is None else own
                assert names == [field["name"] for field in SCHEMAS[k]["fields"]]
                assert [row[name] for name in names] == [None if own is None else offset] * len(names)
                fields = [field["name"] for field in SCHEMAS[9 if key is None else key]["fields"]]
                assert row["_key_decoded"] == (None if key is None else dict.fromkeys(fields, offset))
                assert row["_value"] == rows[offset].value
        good = [n for n, (key, own, _) in enumerate(drawn) if 10 not in (key, own)]
        assert stored == Counter(good)
        assert (result.account.archived, result.account.filtered) == (len(good), len(rows) - len(good))
        objects = {tuple(9 if part is None else part for part in drawn[n]) for n in good}
        assert len(result.objects) == len(objects)
        stored_rows.append(facts(result))
    assert stored_rows[0] == stored_rows[1]
