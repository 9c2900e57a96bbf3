"""One file, schema or configuration of somebody else takes a bounded time and memory, and only it is refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_archiver.config import parse_archive
from kafka_archiver.config.archives import read_archives
from kafka_archiver.config.yaml_limits import require_bounded
from kafka_archiver.imports.reading import read_keys
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.decode.base import DecoderInput
from kafka_archiver.records.decode.decoders import decoder

pytestmark = pytest.mark.unit

REST = "source: {topics: [t]}\nstore: {url: 's3://b/p'}\n"
LAUGH = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("archive: bad\nretries: 3000000000\n" + REST, "retries"),
        ("archive: bad\nretries: 1" + "0" * 30 + "\n" + REST, "2^63 - 1"),
        ('archive: bad\nowner: "a\\0b"\n' + REST, "U+0000"),
        ('archive: bad\ntags: ["a\\ud800b"]\n' + REST, "invalid Unicode character"),
        ("archive: bad\nowner: " + "x" * 3000 + "\n" + REST, "owner"),
        ("archive: bad\ndescription: " + "x" * 20_000 + "\n" + REST, "description"),
        ("archive: bad\nsource: {topics: [t], group: " + "g" * 40_000 + "}\nstore: {url: 's3://b/p'}\n", "group"),
        (LAUGH + "archive: bad\n" + REST, "at most 200,000 values"),
        ("archive: bad\nsource: &s {topics: [t], kafka: *s}\nstore: {url: 's3://b/p'}\n", "at most 100 levels"),
    ],
)
def test_a_file_with_values_that_nothing_can_hold_is_refused_and_the_others_go_on(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    (tmp_path / "good.yaml").write_text("archive: good\n" + REST)
    archives = read_archives(tmp_path)
    assert list(archives.valid) == ["good"]
    [error] = archives.errors
    assert "bad.yaml" in str(error)
    assert problem in str(error)


def too_large(tmp_path: Path) -> str:
    (tmp_path / "bad.yaml").write_text("archive: bad\n" + "".join(f"# {n:036}\n" for n in range(30_000)) + REST)
    return "bad.yaml: expected at most 1 MiB (1,048,576 bytes), found 1,170,0"


def of_other_bytes(tmp_path: Path) -> str:
    (tmp_path / "bad.yaml").write_bytes(b"archive: \xff\n")
    return "bad.yaml: expected text in UTF-8"


def a_pipe(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "bad.yaml")
    return "bad.yaml: expected a file, found a device, a pipe or a folder"


def without_an_end(tmp_path: Path) -> str:
    (tmp_path / "bad.yaml").symlink_to("/dev/zero")
    return "bad.yaml: expected a file, found a device, a pipe or a folder"


def schema_too_large(tmp_path: Path) -> str:
    (tmp_path / "s.avsc").write_text('"int"' + " " * (1 << 20))
    text = "archive: bad\nsource: {topics: [t], value: {decode: avro, schema: s.avsc}}\nstore: {url: 's3://b/p'}\n"
    (tmp_path / "bad.yaml").write_text(text)
    return f"expected at most 1 MiB (1,048,576 bytes), found 1,048,581 bytes: the file {tmp_path / 's.avsc'}"


def of_many_levels(tmp_path: Path) -> str:
    (tmp_path / "bad.yaml").write_text("archive: bad\n" + REST + "x: " + "[" * 200_000)
    return "line 4: expected at most 100 levels"


def of_many_small_values(tmp_path: Path) -> str:
    # Read by the slower of PyYAML's parsers, it took minutes.
    (tmp_path / "bad.yaml").write_text("archive: bad\n" + REST + "x: [" + "{a: b}," * 130_000 + "]\n")
    return "at most 200,000 values"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "write",
    [too_large, of_other_bytes, a_pipe, without_an_end, schema_too_large, of_many_levels, of_many_small_values],
    ids=lambda write: write.__name__,
)
def test_a_file_that_would_take_long_to_read_is_refused_and_the_others_go_on(
    tmp_path: Path, write: Callable[[Path], str]
) -> None:
    problem = write(tmp_path)
    (tmp_path / "good.yaml").write_text("archive: good\n" + REST)
    archives = read_archives(tmp_path)
    assert list(archives.valid) == ["good"]
    [error] = archives.errors
    assert str(error).startswith(f"{tmp_path / 'bad.yaml'}: ")
    assert problem in str(error)


def test_imports_of_large_files_are_refused_before_their_text_is_repeated(tmp_path: Path) -> None:
    proto_files(tmp_path, 5, 3)
    for file in tmp_path.glob("m4_*.proto"):
        file.write_text(file.read_text() + "// comment\n" * 50_000)
    with pytest.raises(ConfigError, match=r"expected at most 8,388,608 characters in a .proto file and its imports"):
        with_proto(tmp_path)


def test_what_aliases_repeat_counts_each_time() -> None:
    inner: Any = ["x"]
    for _ in range(30):
        inner = [inner, inner]
    with pytest.raises(ValueError, match="200,000 values"):
        require_bounded({"a": inner})


def proto_files(folder: Path, files: int, width: int) -> None:
    """Files of which each imports `width` copies of the next."""
    for level in range(files):
        names = [f"m{level + 1}_{copy}.proto" for copy in range(width)] if level + 1 < files else []
        for copy in range(width if level else 1):
            text = 'syntax = "proto3";' + "".join(f'\nimport "{name}";' for name in names for _ in range(2))
            (folder / f"m{level}_{copy}.proto").write_text(f"{text}\nmessage M{level}x{copy} {{ int32 x = 1; }}\n")


def with_proto(folder: Path) -> None:
    parse_archive(
        "archive: l\nsource: {topics: [t], value: {decode: protobuf, schema: m0_0.proto}}\nstore: {url: 's3://b/p'}\n",
        str(folder / "l.yaml"),
    )


def test_files_that_import_each_other_twice_are_read_once(tmp_path: Path) -> None:
    proto_files(tmp_path, 40, 1)
    with_proto(tmp_path)


def test_files_that_repeat_their_imports_without_end_are_refused(tmp_path: Path) -> None:
    proto_files(tmp_path, 30, 2)
    with pytest.raises(ConfigError, match="expected at most 1,000 imports"):
        with_proto(tmp_path)


def twice_avro(levels: int) -> str:
    fields: Any = [{"name": "x", "type": "int"}]
    nested: Any = {"type": "record", "name": "G0", "fields": fields}
    for level in range(1, levels):
        two_fields = [{"name": "a", "type": nested}, {"name": "b", "type": f"G{level - 1}"}]
        nested = {"type": "record", "name": f"G{level}", "fields": two_fields}
    return json.dumps(nested)


def twice_proto(levels: int) -> str:
    messages = (f"message M{n} {{ M{n - 1} a = 1; M{n - 1} b = 2; }}" for n in range(1, levels))
    return (
        f'syntax = "proto3"; message Top {{ M{levels - 1} t = 1; }} message M0 {{ int32 x = 1; }} {" ".join(messages)}'
    )


@pytest.mark.parametrize(
    ("name", "kind", "text", "problem"),
    [
        ("avro", "AVRO", twice_avro(25), "more than 20,000 types"),
        ("protobuf", "PROTOBUF", twice_proto(25), "columns"),
        ("avro", "AVRO", '{"type":"array","items":' * 3000 + '"int"' + "}" * 3000, "nested too deep"),
    ],
)
def test_a_schema_that_repeats_its_types_without_end_is_refused(name: Any, kind: Any, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        decoder(name, DecoderInput(Schema(kind=kind, text=text)))


def test_comments_and_spaces_of_a_configuration_take_no_time() -> None:
    comments = "# a comment\n\n" * 5000
    assert read_keys(f"{comments}a.b=c\n", "x.properties") == {"a.b": "c"}
    assert read_keys(f"{comments}[kafka]\nb=c\n", "x.ini") == {"kafka.b": "c"}
    assert read_keys("A=x" + " " * 200_000 + "y\n", "x.env") == {"A": "x" + " " * 200_000 + "y"}
