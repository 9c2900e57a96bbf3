"""Spark takes what an archive's reader gives, as docs/howto/read.md says."""

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from kafka_archiver.reader.archive import ArchiveReader
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range
from tests.support.lake import Lake
from tests.support.runs import P0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_table_of_an_archive_is_a_data_frame(spark: "SparkSession") -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 5)}, {"format": "avro", "content": "record"})
    lake.run(5)
    orders = pa.Table.from_batches(ArchiveReader(lake.ledger).read("orders"))
    spark.createDataFrame(orders).createOrReplaceTempView("orders")
    [row] = spark.sql("select count(*), max(offset), cast(max_by(value, offset) as string) from orders").collect()
    assert tuple(row) == (5, 4, '{"n": 4}')
