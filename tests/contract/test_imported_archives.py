"""Archives that an import has made: planned, archived and audited."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.cli.imported_yaml import archives_of
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.support.chunks import new_store
from tests.support.lake import Lake

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
CONNECTOR = {
    "name": "orders",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "orders",
    "s3.bucket.name": "b",
    "flush.size": "100",
    "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
    "partition.field.name": "country,address.city",
    "errors.tolerance": "all",
}
MASK = {"transforms": "m", "transforms.m.fields": "card",
        "transforms.m.type": "org.apache.kafka.connect.transforms.MaskField$Value"}  # fmt: skip
SCHEMA = [
    {"name": "country", "type": "string"},
    {"name": "card", "type": "string"},
    {"name": "address", "type": "struct", "columns": [{"name": "city", "type": "string"}]},
]
VALUES = [
    {"country": "DE", "card": "4111", "address": {"city": "Bonn"}},
    {"country": None, "card": "4112", "address": {"city": "Bonn"}},
    {"country": "FR", "card": "4113", "address": None},
]


def lake_of(more: dict[str, str], value: dict[str, Any]) -> Lake:
    """The archive of a connector, whose values are JSON here instead of Avro, because no registry is there."""
    [migrated] = archives_of(json.dumps(CONNECTOR | more), "file").archives
    assert migrated.problems == ()
    content = yaml.safe_load(migrated.yaml)
    lake = Lake(new_store(), {P0: Range(0, len(VALUES))}, {"chunk_records": 10}, {})
    document = lake.archive.model_dump()
    document["source"]["value"] = value
    store = {key: content["store"][key] for key in ("layout", "format", "codec", "rename") if key in content["store"]}
    document["store"] |= store
    transform = {"transform": content["transform"]} if "transform" in content else {}
    lake.configure(Archive.model_validate({**document, **transform, "policies": content["policies"]}))
    for offset, row in enumerate(VALUES):
        lake.odd[P0, offset] = {"value": json.dumps(row).encode()}
    return lake


def test_fields_of_the_paths_are_columns_too_and_a_null_is_a_folder_as_in_the_connector() -> None:
    lake = lake_of(MASK, {"decode": "json", "schema": SCHEMA})
    lake.run(1)
    by_key = {}
    for stored in lake.store.list(""):
        if stored.key.startswith("orders/"):
            [row] = pq.read_table(pa.BufferReader(lake.store.get(stored.key) or b""), partitioning=None).to_pylist()
            by_key[stored.key.removesuffix(".parquet")] = row
    # As the connector's, of the chunk that begins at offset 0. No record is skipped.
    assert by_key == {
        "orders/country=DE/address.city=Bonn/orders+0+0000000000": VALUES[0] | {"card": "****"},
        "orders/country=null/address.city=Bonn/orders+0+0000000000": VALUES[1] | {"card": "****"},
        "orders/country=FR/address.city=null/orders+0+0000000000": VALUES[2] | {"card": "****"},
    }
    assert lake.audit(deep=True).verdict == "clean"


def test_a_mask_without_columns_plans_nothing() -> None:
    lake = lake_of(MASK | {"format.class": "io.confluent.connect.s3.format.json.JsonFormat"}, {"decode": "json"})
    lake.configure(lake.archive.model_copy(update={"store": lake.archive.store.model_copy(update={"rename": {}})}))
    with pytest.raises(ConfigError, match=r"the value has no decoded columns; set `source\.value\.decode`"):
        lake.run(1)
    assert list(lake.store.list("orders/")) == []
