"""The decoders by name."""

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.decoders import decoder_type, names
from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.decode.base import DecoderInput
from kafka_archiver.records.decode.decoders import decoder
from kafka_archiver.records.pipeline.decode import columns_of, decodings
from scripts.stack.paths import ROOT
from tests.support.extensions import Install

pytestmark = pytest.mark.unit

AVRO, JSON = Schema(kind="AVRO", text='"long"'), Schema(kind="JSON", text='{"type": "integer"}')
PROTO = Schema(kind="PROTOBUF", text='syntax = "proto3"; message M { int64 a = 1; }')


@pytest.mark.parametrize(
    ("name", "schema", "good", "expected", "bad"),
    [
        ("bytes", None, b"\xff", b"\xff", None),
        ("string", None, "é".encode(), "é", b"\xff"),
        ("json", None, b'{"a": 1.10}', '{"a": 1.10}', b"{} {}"),
        ("json", JSON, b"7", 7, b'"7"'),
        ("json_schema", JSON, b"7", 7, b"7.5"),
        ("avro", AVRO, b"\x0e", 7, b"\x0e\x0e"),
        ("protobuf", PROTO, b"\x08\x07", {"a": 7}, b"\x08"),
    ],
)
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_each_decodes_and_refuses(
    name: str, schema: Schema | None, good: bytes, expected: Any, bad: bytes | None, kind: pa.DataType
) -> None:
    subject = decoder(name, DecoderInput(schema))
    assert subject.field.name == "value"
    assert subject.field.nullable
    data = pa.array([b"unseen", good, None, good if bad is None else bad, good], kind)[1:]
    column, reasons, _ = subject.decode(data)
    assert column.type == subject.field.type
    assert column.to_pylist() == [expected, None, expected if bad is None else None, expected]
    assert list(reasons) == [] if bad is None else [2]
    assert subject.decode(data[:0]).column.equals(pa.array([], subject.field.type))


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected bytes \| string"):
        decoder("xml", DecoderInput(None))
    with pytest.raises(ConfigError, match="avro needs a schema"):
        decoder("avro", DecoderInput(None))
    with pytest.raises(ConfigError, match="avro needs AVRO schema, found one of kind JSON"):
        decoder("avro", DecoderInput(AVRO, {1: JSON}, framed=True))
    with pytest.raises(ConfigError, match="string needs no schema, found one of kind JSON"):
        decoder("string", DecoderInput(JSON))


def test_planning_loads_no_decoder() -> None:
    program = (
        "import sys, kafka_archiver.records.decode.decoders, kafka_archiver.records.decode.json_text.columns, "
        "kafka_archiver.records.decode.json_text.infer; print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "include")}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert set(names()) == {"bytes", "string", "json", "avro", "protobuf", "json_schema"}
    assert not set(run.stdout.split()) & {"pyarrow", "numpy", "fastavro", "msgspec", "ptars", "google.protobuf"}


@pytest.fixture
def installed(install: Install) -> None:
    install("decoders", reversed="tests.support.extensions.decoder:REVERSED")


@pytest.mark.usefixtures("installed")
def test_a_decoder_of_another_distribution_is_one_object_from_the_yaml_to_the_columns() -> None:
    source = {"topics": ["t"], "value": {"decode": "reversed"}}
    archive = Archive.model_validate({"archive": "o", "source": source, "store": {"url": "s3://b/l"}})
    assert archive.settings.value_decode == "reversed"
    assert archive.settings.decodes
    [decoding] = decodings(archive.settings, "t", (), {})
    assert decoding.decoders[0].decode(pa.array([b"abc", None])).column.to_pylist() == ["cba", None]
    assert columns_of(archive.settings, [decoding]).field("value").type == pa.string()


@pytest.mark.usefixtures("installed")
def test_its_capabilities_judge_the_yaml() -> None:
    source = {"topics": ["t"], "value": {"decode": "reversed", "message": "M"}}
    with pytest.raises(ValidationError, match="`decode: reversed` has none"):
        Archive.model_validate({"archive": "o", "source": source, "store": {"url": "s3://b/l"}})


def test_a_decoder_that_nobody_has_installed_is_named_with_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"expected bytes \| string .*, found 'reversed'"):
        decoder_type("reversed")
