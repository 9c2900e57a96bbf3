"""The schemas that a plan names, and how they are written down."""

import json

import pytest

from kafka_archiver.model.object_keys import schema_document, split_schema_document
from kafka_archiver.model.plan import Plan, TopicSchemas
from kafka_archiver.model.schemas import Reference, Schema, SchemaDocument, SubjectVersion
from kafka_archiver.model.settings import Evolution, Settings
from kafka_archiver.planning.schema_versions import merge_writers, subject_writers, unframed_writer, written_schema
from kafka_archiver.values.documents import Document
from tests.support.plans import partition, plan

pytestmark = pytest.mark.unit

V1, V2, V3 = (Schema(kind="AVRO", text=f'"v{n}"') for n in (1, 2, 3))


def versions(*deleted: int) -> list[SubjectVersion]:
    return [SubjectVersion("o-value", n, 10 + n, schema, n in deleted) for n, schema in enumerate((V1, V2, V3), 1)]


@pytest.mark.parametrize(
    ("evolution", "deleted", "target"),
    [
        ("BACKWARD", (), V3),
        ("FULL", (), V3),
        ("FORWARD", (), V1),
        ("BACKWARD", (3,), V2),
        ("FORWARD", (1,), V2),
        ("BACKWARD", (1, 2, 3), V3),
    ],
)
def test_a_run_writes_the_latest_version_or_the_oldest(
    evolution: Evolution, deleted: tuple[int, ...], target: Schema
) -> None:
    schemas = subject_writers(versions(*deleted), written_schema(versions(*deleted), evolution))
    assert [(w.id, w.version, w.fingerprint) for w in schemas] == [
        (10 + n, n, schema.fingerprint) for n, schema in enumerate((V1, V2, V3), 1)
    ]
    assert {w.written_as for w in schemas} == {target.fingerprint}


def test_what_is_only_checked_is_written_as_it_is_and_a_given_schema_counts() -> None:
    checked = subject_writers(versions(), None)
    assert TopicSchemas(topic="o", column="value", framed=True, writers=checked).written == tuple(
        s.fingerprint for s in (V1, V2, V3)
    )
    assert written_schema(versions(), "FORWARD", V2) == V2


def test_an_id_is_there_once_and_those_of_the_first_plan_stay() -> None:
    # Registered again after it was deleted.
    again = [*versions(1), SubjectVersion("o-value", 4, 11, V1)]
    assert [w.id for w in subject_writers(again, V1)] == [11, 12, 13]
    before, after = subject_writers(versions(), V1), subject_writers(versions()[2:], V3)
    assert [(w.id, w.written_as) for w in merge_writers(after, before, True)] == [
        (n, V3.fingerprint) for n in (13, 11, 12)
    ]
    assert merge_writers((), before, True) == before
    assert merge_writers(after, before, False)[1:] == subject_writers(versions(), None)[:2]


def test_fingerprints_differ_by_anything_that_decodes_differently() -> None:
    imports = Schema(kind="AVRO", text=V1.text, references=(Reference(name="x", imported=V2),))
    assert len({s.fingerprint for s in (V1, V2, V1.model_copy(update={"kind": "JSON"}), imports)}) == 4
    # In every release: keys of documents depend on it.
    assert (V1.fingerprint, imports.fingerprint) == (
        "0713596dff28f003e1b618615903a45c",
        "d7391ecbea749638f2388676c21338e3",
    )


DOCUMENT = b"""{
  "document": "kafka-archiver/schema",
  "version": 1,
  "archive": "orders",
  "fingerprint": "FINGERPRINT",
  "kind": "AVRO",
  "text": "\\"v1\\"",
  "references": [
    {
      "name": "x",
      "imported": {
        "kind": "AVRO",
        "text": "\\"v2\\"",
        "references": []
      }
    }
  ]
}
"""


def test_a_schema_s_document_is_as_documented() -> None:
    schema = Schema(kind="AVRO", text=V1.text, references=(Reference(name="x", imported=V2),))
    document: Document = SchemaDocument.of("orders", schema)
    assert document.to_json() == DOCUMENT.replace(b"FINGERPRINT", schema.fingerprint.encode())
    assert SchemaDocument.from_json(document.to_json(), "x").content == schema
    key = schema_document("orders", schema.fingerprint)
    assert key == f"_ledger/orders/schemas/{schema.fingerprint}.json"
    assert split_schema_document("orders", key) == schema.fingerprint
    assert not any(split_schema_document("orders", k) for k in (key.replace(".json", ""), key.upper(), key + "/x"))


def test_a_plan_has_its_schemas_and_without_any_the_bytes_of_earlier_releases() -> None:
    bare_plan = plan(1, partition(0, 1))
    text = bare_plan.to_json().decode()
    assert not any(f'"{key}"' in text for key in ("schemas", "key_decode", "schema_evolution"))
    schemas = subject_writers(versions()[:1], V2)
    decoded = (
        TopicSchemas(topic="orders", column="value", framed=True, writers=schemas),
        TopicSchemas(topic="orders", column="key", framed=False, writers=unframed_writer(V1)),
    )
    settings = Settings(value_decode="avro", key_decode="avro", schema_evolution="BACKWARD")
    full = bare_plan.model_copy(update={"schemas": decoded, "settings": settings})
    assert json.loads(full.to_json())["schemas"] == [
        {
            "topic": "orders",
            "column": "value",
            "framed": True,
            "writers": [
                {
                    "id": 11,
                    "subject": "o-value",
                    "version": 1,
                    "fingerprint": V1.fingerprint,
                    "written_as": V2.fingerprint,
                }
            ],
        },
        {
            "topic": "orders",
            "column": "key",
            "framed": False,
            "writers": [
                {
                    "id": None,
                    "subject": None,
                    "version": None,
                    "fingerprint": V1.fingerprint,
                    "written_as": V1.fingerprint,
                }
            ],
        },
    ]
    assert Plan.from_json(full.to_json(), "x") == full
    assert full.fingerprints == tuple(sorted((V1.fingerprint, V2.fingerprint)))
