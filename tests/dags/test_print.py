"""`airflow archive print`: the records of one object of any format, as lines of JSON."""

import json
import re
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
import yaml

from kafka_archiver.config import parse_archive
from kafka_archiver.records.formats.registry import extension_of
from kafka_archiver.records.formats.shared.columns import schema_of
from kafka_archiver.store import open_store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range
from tests.dags.conftest import Call
from tests.support.chunks import Row, batch
from tests.support.formats import ODD, Case, every_case, expected, fit_for
from tests.support.lake import Lake
from tests.support.runs import P0
from tests.support.typed import FORMATS, ORDER, as_if_decoded, encode, target_of

pytestmark = pytest.mark.dags


# With values in UTF-8: other bytes do not pass pytest's capture.
ROWS = ODD[:6]


def written(case: Case, directory: Path) -> Path:
    file = directory / f"object{extension_of(case.settings)}"
    file.write_bytes(case.encode([batch(fit_for(case, ROWS))]))
    return file


@every_case
def test_what_jsonl_would_hold_is_printed(case: Case, call: Call, archives: Path, tmp_path: Path) -> None:
    shown = call("print", str(written(case, tmp_path)), "--content", case.content)
    expected_lines = expected(case, fit_for(case, ROWS))
    if case.content == "record":
        lines = Case("jsonl", "none", "record").encode([batch(cast(list[Row], expected_lines))])
    else:
        lines = b"".join(
            (b"null" if value is None else value) + b"\n" for value in cast(list[bytes | None], expected_lines)
        )
    assert shown.out == lines.decode()


PREFIXED = schema_of("both", prefix="_kafka_", value=ORDER)
BESIDE = schema_of("value", ["offset", "timestamp", "key"], value=ORDER)
ALONE = schema_of("value", value=ORDER)


@pytest.mark.parametrize("schema", [PREFIXED, BESIDE, ALONE], ids=["both", "metadata", "value"])
@pytest.mark.parametrize("format_", FORMATS)
def test_decoded_columns_are_printed_by_what_the_file_says(
    format_: str, schema: pa.Schema, call: Call, archives: Path, tmp_path: Path
) -> None:
    def encoded(name: str, codec: str = "") -> bytes:
        return encode(target_of(name, schema, codec), [as_if_decoded(batch(ROWS))])

    (tmp_path / f"object{extension_of(target_of(format_).settings)}").write_bytes(encoded(format_))
    [file] = tmp_path.glob("object*")
    printed = call("print", str(file)).out
    expected_text = encoded("jsonl", "none").decode()
    if format_ == "csv":
        shown = list(map(json.loads, printed.split("\n")[:-1]))
        assert [row["price"] for row in shown] == [json.loads(line)["price"] for line in expected_text.split("\n")[:-1]]
        assert {type(cell) for row in shown for cell in row.values()} <= {str, type(None)}
        assert set(shown[0]) >= set(schema.names)
        return
    if format_ == "avro":
        # Avro has no unsigned integers, and only strings as keys.
        expected_text = re.sub(r'("unsigned":)(\d+)', r'\1"\2"', expected_text)
        expected_text = expected_text.replace('{"-1":"x"}', '[{"key":-1,"value":"x"}]')
    assert printed == expected_text


@pytest.mark.usefixtures("local_connections")
def test_an_object_of_an_archive_s_store_is_printed(call: Call, orders: Path, tmp_path: Path) -> None:
    url = yaml.safe_load(orders.read_text())["store"]["url"]
    case = Case("mak", "gzip", "record")
    open_store(url, {}).put("orders/a.mak.gz", written(case, tmp_path).read_bytes())
    assert call("print", f"{url}/orders/a.mak.gz").out == call("print", str(tmp_path / "object.mak.gz")).out != ""
    assert "does not exist" in call("print", f"{url}/orders/b.mak.gz", code=1).err
    assert "is below no archive's store.url" in call("print", "s3://another/b.mak.gz", code=1).err


def test_what_cannot_be_printed_is_said(call: Call, archives: Path, tmp_path: Path) -> None:
    assert "No such file or directory" in call("print", str(tmp_path / "none.avro"), code=1).err
    (tmp_path / "a.xml").write_bytes(b"")
    assert "expected a name that ends in .avro | .bin | " in call("print", str(tmp_path / "a.xml"), code=1).err
    file = written(Case("mak", "none", "record"), tmp_path)
    file.write_bytes(file.read_bytes()[:-1])
    assert "is not a complete MAK file" in call("print", str(file), code=1).err
    for name in ("a.parquet", "a.avro"):
        (tmp_path / name).write_bytes(b"PAR1")
        assert "is not a complete" in call("print", str(tmp_path / name), code=1).err
    (tmp_path / "a.csv").write_bytes(b'"a",1\n"b",2\n')
    assert "does not begin with a header" in call("print", str(tmp_path / "a.csv"), code=1).err
    (tmp_path / "a.csv").write_bytes(b'id;text\n1;"one\n"\n')
    assert call("print", str(tmp_path / "a.csv")).out == '{"id":"1","text":"one\\n"}\n'
    assert "has the columns id, text" in call("print", str(tmp_path / "a.csv"), "--content", "value", code=1).err


@pytest.mark.usefixtures("local_connections")
def test_an_object_of_the_ledger_is_printed_by_its_plan(call: Call, archives: Path, tmp_path: Path) -> None:
    """A CSV file without a header does not tell its columns, and one with a header not their types; the plan does."""
    yaml_file = archives / "orders.yaml"
    yaml_file.write_text(
        "archive: orders\nsource: {topics: [orders], value: {decode: json, schema: [{name: n, type: int64}]}}\n"
        f"store: {{url: 'memory://{tmp_path.name}/lake', format: csv, options: {{header: false}}}}\n"
    )
    lake = Lake(MemoryStore(tmp_path.name, "lake"), {P0: Range(0, 4)}, name="orders")
    lake.configure(parse_archive(yaml_file.read_text(), str(yaml_file)))
    lake.run(4)
    first, second = lake.stored()[:2]
    assert call("print", f"{lake.store.url}/{first}").out == '{"n":0}\n'
    lake.store.put(second, (lake.store.get(second) or b"")[:-1] + b"x")
    shown = call("print", f"{lake.store.url}/{second}", code=1)
    assert (shown.out, second in shown.err) == ("", True)


@pytest.mark.usefixtures("local_connections")
def test_one_record_is_printed_by_its_offset_with_what_was_read(call: Call, archives: Path, tmp_path: Path) -> None:
    yaml_file = archives / "orders.yaml"
    yaml_file.write_text(
        f"archive: orders\nsource: {{topics: [orders]}}\nstore: {{url: 'memory://{tmp_path.name}/lake'}}\n"
    )
    lake = Lake(MemoryStore(tmp_path.name, "lake"), {P0: Range(0, 4)}, name="orders")
    lake.configure(parse_archive(yaml_file.read_text(), str(yaml_file)))
    lake.run(4)
    shown = call("get", "orders", "orders+0@2")
    assert shown.out == '{"topic":"orders","partition":0,"offset":2,"value":"{\\"n\\": 2}"}\n'
    assert re.fullmatch(
        r"read \d+ bytes in 1 request of objects, and [\d,]+ bytes in \d+ requests of the ledger\n", shown.err
    )
    assert call("get", "orders", "orders+0@1", "--output", "raw", "--count", "2").out == '{"n": 1}\n{"n": 2}'
    assert "no run with offset 9" in call("get", "orders", "orders+0@9", code=1).err
    assert "no partition orders[7]" in call("get", "orders", "orders+7@0", code=1).err
    assert "expected topic, partition and offset like orders+3@12345" in call("get", "orders", "orders-0", code=1).err
    lake.store.delete(key := lake.stored()[2])
    assert f"{key} does not exist" in call("get", "orders", "orders+0@2", code=1).err
