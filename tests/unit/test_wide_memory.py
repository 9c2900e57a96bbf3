"""Memory stays flat for Avro records of 500 fields, nested five deep, as columns: measured in a process of its own."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from kafka_archiver.model.plan import TopicSchemas, Writer
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.result import Limits, WriteJob
from scripts.stack.paths import ROOT
from tests.support.chunks import chunk_of
from tests.unit.test_writer_memory import MIB, PART, Discard, growth, peak_bytes

pytestmark = [pytest.mark.unit, pytest.mark.slow]

FIELDS, DEPTH, BATCH = 500, 5, 500
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
LEAVES: list[tuple[Any, Any]] = [
    ("long", lambda n: n << 20),
    (["null", "string"], lambda n: f"text {n}" if n % 3 else None),
    ("double", lambda n: n / 7),
    ({"type": "long", "logicalType": "timestamp-millis"}, lambda n: NOON + timedelta(milliseconds=n)),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        lambda n: Decimal(n * 100 + 7).scaleb(-2),
    ),
]


def schema_of(first: int, depth: int) -> dict[str, Any]:
    """A record with a part of the fields, and with a record of the rest."""
    here = range(first, FIELDS if depth == DEPTH else first + FIELDS // DEPTH)
    fields: list[dict[str, Any]] = [{"name": f"f{n}", "type": LEAVES[n % len(LEAVES)][0]} for n in here]
    inner = [] if depth == DEPTH else [{"name": "inner", "type": schema_of(here.stop, depth + 1)}]
    return {"type": "record", "name": f"Depth{depth}", "fields": fields + inner}


def value_of(schema: dict[str, Any], row: int) -> dict[str, Any]:
    """A datum."""
    return {
        field["name"]: value_of(field["type"], row)
        if field["name"] == "inner"
        else LEAVES[(n := int(field["name"][1:])) % len(LEAVES)][1](n * 31 + row)
        for field in schema["fields"]
    }


def batches(values: list[bytes], rows: int) -> Iterator[pa.RecordBatch]:
    """Records with these values, again and again."""
    for start in range(0, rows, BATCH):
        columns: dict[str, Any] = {
            "offset": pa.array(np.arange(start, start + BATCH)),
            "timestamp": pa.array(np.full(BATCH, 1_795_348_800_000)),
            "value": pa.array([values[n % len(values)] for n in range(start, start + BATCH)], pa.binary()),
        }
        yield pa.RecordBatch.from_pydict(columns)


def peak(format_: str, codec: str, rows: int) -> list[int]:
    """The bytes that writing some rows needs; the process's peak with these rows, and with twice as many.

    What was there before differs by megabytes, which are the allocator's.
    """
    avro_schema = schema_of(0, 1)
    datums = []
    for row in range(200):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, avro_schema, value_of(avro_schema, row))
        datums.append(out.getvalue())
    schema = Schema(kind="AVRO", text=json.dumps(avro_schema))
    writer = Writer(fingerprint=schema.fingerprint, written_as=schema.fingerprint)
    settings = Settings(format=format_, content="value", codec=codec, value_decode="avro")
    job = WriteJob(
        archive="a",
        settings=settings.model_copy(update={"part_bytes": PART}),
        decoded=(TopicSchemas(topic="orders", column="value", framed=False, writers=(writer,)),),
        schemas={schema.fingerprint: schema},
    )
    discard: Any = Discard()
    sizes = []
    for count in (BATCH, rows, 2 * rows):
        with growth() as grown:
            result = write_chunk(chunk_of(0, count), batches(datums, count), job, discard, Limits())
        assert result.account.archived == count
        sizes.append((grown[0], peak_bytes()))
    _, (needed, some), (_, more) = sizes
    return [needed, some, more]


# As many rows as fill several row groups, or several parts.
@pytest.mark.parametrize(("format_", "codec", "rows"), [("parquet", "zstd", 16_000), ("jsonl", "none", 4_000)])
def test_memory_does_not_grow_with_records_of_many_nested_columns(format_: str, codec: str, rows: int) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'include'}:{ROOT}"}
    command = [sys.executable, __file__, format_, codec, str(rows)]
    more = some = 0
    # The peaks of one program differ by up to 23 MB from run to run; what grows with the rows grows each time.
    for _ in range(6):
        output = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        needed, some, more = map(int, output.split())
        # A block of 8 MiB, its columns, a row group of 32 MiB twice, and parts on their way.
        assert needed < 160 * MIB
        if more < some + 16 * MIB:
            return
    raise AssertionError(f"{more - some:,} bytes more with twice as many rows")


if __name__ == "__main__":
    print(*peak(sys.argv[1], sys.argv[2], int(sys.argv[3])))
