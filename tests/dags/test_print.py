"""`airflow archive print`: the records of one object of any format, as lines of JSON."""

from pathlib import Path
from typing import cast

import pytest
import yaml

from kafka_archiver.formats.registry import extension_of
from kafka_archiver.store import open_store
from tests.dags.conftest import Call
from tests.support.chunks import Row, batch
from tests.support.formats import ODD, Case, every_case, expected, fit_for

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
    found = expected(case, fit_for(case, ROWS))
    if case.content == "record":
        lines = Case("jsonl", "none", "record").encode([batch(cast(list[Row], found))])
    else:
        lines = b"".join((b"null" if value is None else value) + b"\n" for value in cast(list[bytes | None], found))
    assert shown.out == lines.decode()


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
