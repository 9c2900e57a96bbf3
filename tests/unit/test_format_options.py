"""A format that nobody asked for, with options of its own: it is one class, and no other file knows its options."""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, ClassVar, Literal

import pyarrow as pa
import pytest
from pyarrow import csv

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.context.print_object import lines
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.settings import Content, Settings
from kafka_archiver.records.formats import resolve
from kafka_archiver.records.formats.base import Buffer, Target
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.values.documents import Value
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.support.chunks import Row, chunk_of, cut, new_store, write
from tests.support.extensions import Install
from tests.support.lake import Lake
from tests.support.values import plan

pytestmark = pytest.mark.unit


class TableOptions(Value):
    """The options of a format that writes tables."""

    separator: Literal[",", ";", "|"] = ","
    heading: bool = False


class _Encoder:
    pending = 0

    def __init__(self, target: Target) -> None:
        self._options = TableOptions.model_validate(target.settings.options)
        self._ready: list[Buffer] = [self._line(b"offset", b"value")] if self._options.heading else []

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        offsets, values = (batch.column(name).to_pylist() for name in ("offset", "value"))
        ready, self._ready = self._ready, []
        return [*ready, *(self._line(b"%d" % o, v) for o, v in zip(offsets, values, strict=True))]

    def spill(self, _directory: Path) -> int:
        return 0

    def finish(self) -> list[Buffer]:
        return self._ready

    def _line(self, *fields: bytes) -> bytes:
        return self._options.separator.encode().join(fields) + b"\n"


class Table:
    """A table of two columns."""

    name = "table"
    extensions: ClassVar[Mapping[str, str]] = {"plain": ".tbl"}
    default_codec = "plain"
    encoding = 1
    contents: ClassVar[frozenset[Content]] = frozenset({"value"})
    typed: ClassVar[frozenset[Content]] = frozenset()
    options = TableOptions
    known: ClassVar[Mapping[str, str]] = {}
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def encoder(self, target: Target) -> _Encoder:
        return _Encoder(target)

    def stage(self, settings: Settings) -> None:
        """None."""

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def read_alone(self, source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """By the heading."""
        separator = source.read(len("offset;"))[-1:].decode()
        source.seek(0)
        table = csv.read_csv(source, parse_options=csv.ParseOptions(delimiter=separator))
        return table.schema, iter(table.to_batches())


TABLE = Table()


@pytest.fixture(autouse=True)
def _installed(install: Install) -> None:
    install("formats", table=f"{__name__}:TABLE")


def archive(store: str) -> Archive:
    return parse_archive(
        f"archive: orders\nsource: {{topics: [orders]}}\nstore: {{url: s3://archive/lake, {store}}}\n", "orders.yaml"
    )


def test_an_option_goes_from_the_yaml_through_the_plan_into_the_bytes_which_are_printed_by_what_they_say() -> None:
    settings = resolve(archive("format: table, options: {separator: ';', heading: true}").settings)
    frozen = Plan.from_json(plan(settings=settings).to_json(), "plan.json").settings
    store = new_store()
    rows = [Row(0, 0, value=b"a"), Row(1, 0, value=b"b")]
    [entry] = complete([write(chunk_of(0, 2), cut(rows, 1), store, **dict(frozen))], store)
    assert entry.key.endswith(".tbl")
    data = store.get(entry.key)
    assert data == b"offset;value\n0;a\n1;b\n"
    assert b"".join(lines(entry.key, io.BytesIO(data))) == b'{"offset":0,"value":"a"}\n{"offset":1,"value":"b"}\n'


def test_the_plan_has_what_is_left_out_too_so_that_another_default_changes_no_planned_byte() -> None:
    settings = resolve(archive("format: table").settings)
    assert settings.codec == "plain"
    assert settings.options == {"separator": ",", "heading": False}
    assert resolve(settings) == settings


def test_a_plan_of_a_format_without_options_does_not_speak_of_them() -> None:
    assert b"options" not in plan(settings=resolve(archive("format: jsonl").settings)).to_json()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"separator": "tab"}, "`store.options.separator`: expected ',', ';' or '|'; found 'tab'"),
        ({"heading": "perhaps"}, "`store.options.heading`: expected a valid boolean"),
        ({"quote": "'"}, "`store.options.quote` is not an option: format table has heading | separator"),
    ],
)
def test_a_wrong_option_is_answered_with_what_the_format_has(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(Settings(format="table", codec="", options={**wrong}))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("format_", "option"), [("block_gzip", "block_bytes"), ("parquet", "row_group_rows"), ("mak", "version")]
)
def test_true_is_no_number(format_: str, option: str) -> None:
    with pytest.raises(ConfigError, match=rf"`store.options.{option}`: expected a whole number; found True"):
        resolve(Settings(format=format_, content="record", codec="", options={option: True}))
    assert resolve(Settings(options={"index": True}, codec="zstd")).options == {"index": True}


def test_the_deep_audit_says_that_it_has_not_read_a_format_it_does_not_know() -> None:
    logs = {TopicPartition("orders", 0): Range(0, 5)}
    lake = Lake(new_store(), logs, {"format": "table", "options": {"heading": True}})
    lake.run(4)
    assert lake.audit().findings == ()
    report = lake.audit(deep=True)
    [finding] = report.findings
    assert (finding.kind, finding.severity, finding.subject) == ("content-not-read", "warning", lake.stored()[0])
    assert f"{len(lake.stored())} objects of format table with content value" in finding.observed
    assert (
        "their records were not read: the audit has no reader of 'table', and no distribution adds" in finding.observed
    )
    assert "avro | block_gzip | bytes | csv | jsonl | mak | parquet | text" in finding.expected
    assert f"`airflow archive rebuild {lake.name} --run 20261120T040000Z`" in finding.advice
    assert "1 warning" in report.summary


def test_a_format_says_which_options_it_has() -> None:
    with pytest.raises(ConfigError, match=r"`store\.options\.quote` is not an option: format jsonl has index"):
        resolve(Settings(options={"quote": "'"}))
