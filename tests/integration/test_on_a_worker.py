"""Each decoder, reader, frame, form of schema, transform, format and layout once on a real worker of Spark.

The job is the DAG's own: the command of `SubmitHook`, the package as a zip, Spark's jars and Spark's own path of Python
in the workers. The cells of the table share a JVM, for a start takes seconds; each has a topic, an archive and a run of
its own, and its objects are read back by libraries of others.
"""

import base64
import csv
import gzip
import io
import json
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import fastavro
import pyarrow.parquet as pq
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass

from kafka_archiver.audit.inspection import audit
from kafka_archiver.audit.readers.mak import MakFile
from kafka_archiver.jobs.archive import ArchiveJob
from kafka_archiver.model.layouts.registry import LAYOUTS
from kafka_archiver.model.schemas import Schema
from kafka_archiver.orchestration.submit.hook import SubmitHook
from kafka_archiver.orchestration.submit.package import build_mapper, build_package
from kafka_archiver.records.decode.protobuf.files import compiled
from kafka_archiver.records.writer.disk import locked_directory
from kafka_archiver.spark.analysis import answer
from kafka_archiver.work.plan import PlannedWork
from scripts.stack.paths import BIN, ROOT, SPARK_JARS
from tests.support.archiver import Archiver, Services, hour, quick_driver
from tests.support.avro_records import LocalRegistry
from tests.support.mappers import write_module
from tests.support.registry import RegistryServer
from tests.support.several_jobs import THREADS
from tests.support.topics import DAY, HOUR, Record, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

COUNT = 12
Row = dict[str, Any]
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "n", "type": "int"},
            {"name": "s", "type": "string"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
)
PROTO = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; package shop; message Order { int32 n = 1; '
PROTO += "string s = 2; repeated string tags = 3; google.protobuf.Timestamp at = 4; }"
STRINGS = {"type": "array", "items": {"type": "string"}}
JSON_SCHEMA = json.dumps(
    {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "tags": STRINGS}}
)
COLUMNS = [{"name": "n", "type": "int32"}, {"name": "s", "type": "string"}]
COLUMNS += [{"name": "tags", "type": "list", "items": "string"}]
MESSAGE = GetMessageClass(compiled(Schema(kind="PROTOBUF", text=PROTO)).message("Order"))
TEXTS = {"avro": ("AVRO", AVRO), "protobuf": ("PROTOBUF", PROTO), "json_schema": ("JSON", JSON_SCHEMA)}


def row(n: int) -> Row:
    return {"n": n, "s": f"name {n}", "tags": ["a", "b", "c"][: n % 4]}


def encoded(decode: str, n: int) -> bytes:
    """The value of a record, as a library of others writes it."""
    if decode == "avro":
        data = io.BytesIO()
        fastavro.schemaless_writer(data, json.loads(AVRO), row(n))
        return data.getvalue()
    if decode == "protobuf":
        return bytes(MESSAGE(**row(n)).SerializeToString())
    return json.dumps(row(n)).encode()


@dataclass(frozen=True)
class Source:
    """The way that values are written and decoded. `schema`: as in the YAML; `frame`: prefix, header or none."""

    name: str
    decode: str
    schema: Any = None
    frame: str = "none"

    @property
    def typed(self) -> bool:
        """True if values have columns."""
        return self.decode not in ("bytes", "string") and (self.decode != "json" or self.schema is not None)


def _sources() -> list[Source]:
    sources = [
        Source("bytes", "bytes"),
        Source("string", "string"),
        Source("json", "json"),
        Source("json, columns", "json", COLUMNS),
        Source("json, inferred", "json", "infer"),
        Source("json, schema", "json", Schema(kind="JSON", text=JSON_SCHEMA)),
    ]
    for decode, (kind, text) in TEXTS.items():
        sources.append(Source(f"{decode}, text", decode, Schema(kind=kind, text=text)))
        sources += [Source(f"{decode}, registry, {frame}", decode, None, frame) for frame in ("prefix", "header")]
    return [*sources, Source("protobuf, compiled", "protobuf", Schema(kind="PROTOBUF", text=_compiled()))]


def _compiled() -> str:
    """The schema as a compiled file in base64, without the import."""
    file = FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    kinds = (FieldDescriptorProto.TYPE_INT32, FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_STRING)
    for number, (name, kind) in enumerate(zip(row(0), kinds, strict=True), start=1):
        label = FieldDescriptorProto.LABEL_REPEATED if name == "tags" else FieldDescriptorProto.LABEL_OPTIONAL
        message.field.add(name=name, number=number, type=kind, label=label)
    return base64.b64encode(file.SerializeToString()).decode()


def as_it_is(rows: Iterable[Row]) -> list[Row]:
    return [*rows]


@dataclass(frozen=True)
class Change:
    """A transform of columns, and what it makes of rows."""

    name: str
    yaml: dict[str, Any] | None = None
    expected: Callable[[Iterable[Row]], list[Row]] = as_it_is


def changes(module: str) -> list[Change]:
    return [
        Change("none"),
        Change(
            "steps",
            {"steps": [{"mask": {"fields": ["value.s"], "keep": 1}}, {"drop": ["value.tags"]}]},
            lambda rows: [{"n": r["n"], "s": "*" * (len(r["s"]) - 1) + r["s"][-1]} for r in rows],
        ),
        Change(
            "mapper",
            {"mapper": f"{module}:louder"},
            lambda rows: [{**r, "s": r["s"].upper()} for r in rows if r["n"] != 5],
        ),
        Change(
            "where and select",
            {"where": "value.n % 2 = 0", "select": ["value.n + 1 AS m", "upper(value.s) AS s"]},
            lambda rows: [{"m": r["n"] + 1, "s": r["s"].upper()} for r in rows if r["n"] % 2 == 0],
        ),
        Change(
            "function",
            {"function": f"{module}:items"},
            lambda rows: [{"n": r["n"], "s": r["s"], "tag": tag} for r in rows for tag in r["tags"]],
        ),
    ]


MODULE = """
from pyspark.sql import functions as F

def louder(record):
    return None if record.value["n"] == 5 else record.replace(value={**record.value, "s": record.value["s"].upper()})

def items(frame):
    return frame.select("_kafka", "n", "s", F.explode("tags").alias("tag"))
"""


@dataclass
class Cell:
    """One run: `read` gives the rows of its objects; `source` and `archive` are parts of the YAML."""

    name: str
    source: Source
    reader: str
    store: dict[str, Any]
    expected: list[Row]
    read: Callable[[Mapping[str, bytes]], list[Row]]
    transform: dict[str, Any] | None = None
    archiver: Archiver | None = None
    work: PlannedWork | None = None

    @property
    def has_sql(self) -> bool:
        return bool({"select", "function"} & (self.transform or {}).keys())

    @property
    def has_code(self) -> bool:
        return bool({"mapper", "function"} & (self.transform or {}).keys())


def parquet_rows(objects: Mapping[str, bytes]) -> list[Row]:
    return [line for data in objects.values() for line in pq.read_table(io.BytesIO(data)).to_pylist()]


def without_at(rows: list[Row]) -> list[Row]:
    """Protobuf's message has one more field, which no record sets."""
    assert {row.pop("at", None) for row in rows} <= {None}
    return rows


def line_rows(objects: Mapping[str, bytes]) -> list[Row]:
    """Return the rows of all objects but the indexes of block_gzip."""
    files = (gzip.decompress(data) for key, data in objects.items() if key.endswith(".gz"))
    return [json.loads(line) for data in files for line in data.splitlines()]


def csv_rows(objects: Mapping[str, bytes]) -> list[Row]:
    texts = (gzip.decompress(data).decode() for data in objects.values())
    rows = [row for text in texts for row in csv.DictReader(io.StringIO(text, newline=""))]
    return [{"n": int(row["n"]), "s": row["s"], "tags": json.loads(row["tags"])} for row in rows]


def avro_rows(objects: Mapping[str, bytes]) -> list[Row]:
    return [line for data in objects.values() for line in fastavro.reader(io.BytesIO(data))]


def mak_rows(objects: Mapping[str, bytes]) -> list[Row]:
    files = (MakFile(io.BytesIO(gzip.decompress(data))) for data in objects.values())
    return [json.loads(record.value or b"") for file in files for record in file.records()]


def untyped_rows(objects: Mapping[str, bytes]) -> list[Row]:
    rows = [line for data in objects.values() for line in pq.read_table(io.BytesIO(data)).to_pylist()]
    return [json.loads(row["value"]) for row in rows]


def table(module: str) -> list[Cell]:
    """All cells: each source with each reader, and the sources of a decoder take turns with the changes."""
    rows = [row(n) for n in range(COUNT)]
    cells = []
    turns: Counter[str] = Counter()
    for source in _sources():
        turn = turns[source.decode] = turns[source.decode] + source.typed
        for reader in ("native", "spark"):
            if not source.typed:
                store = {"format": "parquet", "content": "record"}
                cells.append(Cell(f"{source.name} | {reader}", source, reader, store, rows, untyped_rows))
                continue
            for change in changes(module)[(turn + (reader == "spark")) % 3 :: 3]:
                name = f"{source.name} | {reader} | {change.name}"
                expected = change.expected(rows)
                store = {"format": "parquet"}
                cells.append(Cell(name, source, reader, store, expected, parquet_rows, change.yaml))
    columns = Source("json, columns", "json", COLUMNS)
    plain = Source("bytes", "bytes")
    formats: list[tuple[str, Source, Callable[[Mapping[str, bytes]], list[Row]]]] = [
        ("jsonl", columns, line_rows),
        ("csv", columns, csv_rows),
        ("avro", columns, avro_rows),
        ("text", plain, line_rows),
        ("bytes", plain, line_rows),
        ("block_gzip", plain, line_rows),
        ("mak", plain, mak_rows),
    ]
    more: dict[str, dict[str, Any]] = {
        "mak": {"content": "record"},
        "text": {"codec": "gzip"},
        "bytes": {"options": {"separator": "\n"}},
    }
    for name, source, read in formats:
        for reader in ("native", "spark"):
            store = {"format": name, **more.get(name, {})}
            cells.append(Cell(f"format {name} | {reader}", source, reader, store, rows, read))
    for name in LAYOUTS:
        options = LAYOUT_OPTIONS.get(name, {})
        store = {"format": "jsonl", "layout": {"name": name, **options}}
        cells.append(Cell(f"layout {name}", columns, "native", store, rows, line_rows))
    return cells


LAYOUT_OPTIONS: dict[str, dict[str, Any]] = {
    "offsets": {"offsets": 5},
    "path": {"path": "{topic}/{yyyy-MM-dd}/{value.n}"},
    "fields": {"fields": [{"field": "value.n", "as": "f"}]},
    "confluent_field": {"fields": [{"field": "value.n", "as": "f"}]},
    "confluent_time": {"path_format": "'year'=YYYY/'month'=MM"},
    "lenses_keys_and_values": {"fields": [{"field": "value.n", "as": "f"}]},
    "lenses_values": {"fields": [{"field": "value.n", "as": "f"}]},
}


def produced(cell: Cell, services: Services, registry: RegistryServer) -> tuple[str, LocalRegistry | None]:
    """The topic of a cell with its records, and the registry of schemas in headers."""
    decode, frame = cell.source.decode, cell.source.frame
    topic, local, prefix, headers = services.topic(), None, b"", []
    if frame == "prefix":
        kind, text = TEXTS[decode]
        number = registry.register(f"{topic}-value", text, kind)
        prefix = b"\0" + number.to_bytes(4) + (b"\0" if decode == "protobuf" else b"")
    elif frame == "header":
        kind, text = TEXTS[decode]
        local, guid = LocalRegistry(), uuid.uuid4()
        local.register(f"{topic}-value", {}, {"schema": text, "schemaType": kind, "guid": str(guid)})
        headers = [("__value_schema_id", b"\1" + guid.bytes + (b"\0" if decode == "protobuf" else b""))]
    records = [Record(0, DAY + n % 2 * HOUR, prefix + encoded(decode, n), b"k%d" % n, headers) for n in range(COUNT)]
    produce(services.kafka.bootstrap_servers, topic, records)
    return topic, local


def planned(cell: Cell, services: Services, registry: RegistryServer, spark: "SparkSession", file: Path) -> None:
    topic, local = produced(cell, services, registry)
    value: dict[str, Any] = {"decode": cell.source.decode}
    if cell.source.schema is not None:
        value["schema"] = cell.source.schema
    if cell.source.frame == "header":
        value["schema_id"] = "header"
    archiver = services.archive_of(
        topic,
        registry=registry.url if cell.source.frame == "prefix" else "http://127.0.0.1:1" if local else None,
        source={"reader": cell.reader, "value": value},
        settings=cell.store,
        more={"transform": cell.transform} if cell.transform else {},
    )
    archiver.archive.of_file(str(file))
    archiver.context = replace(archiver.context, spark=lambda question: answer(spark, question))
    if local:
        archiver.context = replace(archiver.context, registry=local.open)
    cell.archiver, cell.work = archiver, archiver.plan(hour(1))


def submitted(cells: Sequence[Cell], folder: Path, conf: Mapping[str, str]) -> dict[str, int]:
    """Run the DAG's job for all cells, and return the exit code of each."""
    documents = folder / "documents"
    jobs = [(cell, cell.archiver) for cell in cells if cell.archiver and cell.work]
    first = jobs[0][1]
    with_code = next((archiver.archive for cell, archiver in jobs if cell.has_code), first.archive)
    documents.write_text(json.dumps([
        [ArchiveJob.of(archiver.archive, cell.work.archive).to_argument(), cell.has_sql]
        for cell, archiver in jobs if cell.work
    ]))  # fmt: skip
    with locked_directory(folder) as (private, lock):
        files = [build_package(private), build_mapper(private, with_code)]
        hook = SubmitHook(
            first.archive,
            first._endpoints(first.s3.endpoint_url),
            private,
            lock,
            conn_id="worker",
            conf=dict(conf),
            name="cells",
            py_files=",".join(str(zipped) for zipped in files if zipped),
            application_args=[str(documents)],
        )
        hook.submit(str(ROOT / "tests" / "support" / "several_jobs.py"))
    codes = json.loads(documents.with_suffix(".codes").read_text())
    return {cell.name: code for cell, code in zip(cells, codes, strict=True)}


def finished(cell: Cell) -> str:
    """Return what is wrong with the objects of a cell, against what was produced; empty if nothing is."""
    archiver = cell.archiver
    assert archiver
    assert cell.work
    try:
        archiver.finish(cell.work)
        objects = {key: archiver.context.store.get(key) or b"" for key in sorted(archiver.objects())}
        rows = without_at(cell.read(objects))
        if cell.read is parquet_rows:
            assert duckdb_count(archiver, objects) == len(rows)
        key = lambda document: json.dumps(document, sort_keys=True)  # noqa: E731
        assert sorted(rows, key=key) == sorted(cell.expected, key=key)
        assert audit(archiver.archive, archiver.context.store, archiver.now[0], deep=True).findings == ()
    except Exception as error:  # noqa: BLE001 - all cells are told at once
        return f"{type(error).__name__}: {error}"[:600]
    return ""


def duckdb_count(archiver: Archiver, objects: Mapping[str, bytes]) -> int:
    count = 0
    for number, data in enumerate(objects.values()):
        path = archiver.directory / f"{archiver.archive.archive}-{number}.parquet"
        path.write_bytes(data)
        counted = duckdb.connect().execute(f"SELECT count(*) FROM '{path}'").fetchone()
        count += counted[0] if counted else 0
    return count


def test_each_cell_of_the_table_is_right_on_a_worker(
    services: Services,
    registry: RegistryServer,
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = write_module(tmp_path, MODULE)
    monkeypatch.setenv("AIRFLOW_CONN_WORKER", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    # The package comes by its zip alone, as on a cluster.
    monkeypatch.delenv("PYTHONPATH", raising=False)
    cells = table(module)
    typed_cells = {
        (cell.source.decode, cell.reader, str(cell.transform)) for cell in cells if cell.read is parquet_rows
    }
    assert len(typed_cells) == len(TEXTS | {"json": ()}) * 2 * len(changes(module))
    monkeypatch.chdir(tmp_path)

    def plan(cell: Cell) -> None:
        planned(cell, services, registry, spark, tmp_path / "archive.yaml")

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(plan, (cell for cell in cells if not cell.has_sql)))
    for cell in cells:
        if cell.has_sql:
            plan(cell)
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(tmp_path),
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.jars": ",".join(map(str, sorted(SPARK_JARS.glob("*.jar")))),
        "spark.log.level": "ERROR",
        **quick_driver(tmp_path),
    }
    codes = submitted(cells, tmp_path, conf)

    def problem(cell: Cell) -> str:
        return f"exit code {codes[cell.name]}" if codes[cell.name] else finished(cell)

    with ThreadPoolExecutor(THREADS) as pool:
        wrong = dict(zip((cell.name for cell in cells), pool.map(problem, cells), strict=True))
    with capsys.disabled():
        print(f"\n{len(cells)} cells on a worker, {sum(map(bool, wrong.values()))} wrong")
    assert {name: what for name, what in wrong.items() if what} == {}
