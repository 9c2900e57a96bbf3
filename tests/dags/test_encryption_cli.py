"""`airflow archive` on encrypted objects: print, decrypt, audit, rotate-keys; the keys come from connections."""

import base64
import gzip
import io
import json
from argparse import Namespace
from pathlib import Path

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.config.archives import read_archives
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration import connections
from kafka_archiver.orchestration.cli.print_object import decrypt, print_object
from kafka_archiver.orchestration.connections import open_ledger
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range
from tests.dags.conftest import AddConnection, Call
from tests.support.lake import Lake, hour
from tests.support.runs import P0

pytestmark = [pytest.mark.dags, pytest.mark.usefixtures("local_connections")]

OLD, NEW = (base64.b64encode(n * 32).decode() for n in (b"1", b"2"))


@pytest.fixture
def lake(archives: Path, tmp_path: Path, connection: AddConnection) -> Lake:
    """The archive orders, encrypted, with two runs."""
    connection("master_key", "generic", password=OLD)
    (archives / "orders.yaml").write_text(
        f"archive: orders\nsource: {{topics: [{P0.topic}]}}\n"
        f"store: {{url: 'memory://{tmp_path.name}/lake', encryption: {{client: {{connection: master_key}}}}}}\n"
    )
    archive = read_archives(archives).valid["orders"]
    ledger = open_ledger(archive)
    lake = Lake(MemoryStore(tmp_path.name, "lake"), {P0: Range(0, 4)}, name="orders", keyring=ledger.keyring)
    lake.configure(archive)
    lake.run(2)
    lake.logs[P0] = Range(0, 6)
    lake.run(3)
    return lake


def test_print(lake: Lake, call: Call, tmp_path: Path) -> None:
    key = lake.stored()[0]
    shown = call("print", f"{lake.store.url}/{key}").out
    assert json.loads(shown) == {"n": 0}
    local = tmp_path / "object.jsonl.gz.enc"
    local.write_bytes(lake.store.get(key) or b"")
    assert call("print", str(local)).out == shown
    assert "expected a name that ends in .enc" in call("decrypt", "x.gz", code=1).err


def test_one_record_needs_the_master_key(lake: Lake, call: Call, connection: AddConnection) -> None:
    assert json.loads(call("get", "orders", "orders+0@1").out)["value"] == '{"n": 1}'
    connection("master_key", "generic", password=NEW)
    shown = call("get", "orders", "orders+0@1", code=1)
    assert (shown.out, "is wrapped by master key" in shown.err) == ("", True)


def test_decrypted_bytes_are_those_of_the_format(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written))
    decrypt(Namespace(object=f"{lake.store.url}/{lake.stored()[0]}"))
    assert gzip.decompress(written.getvalue()) == b'{"n": 0}\n'


def test_rotation(lake: Lake, call: Call, connection: AddConnection) -> None:
    connection("master_key", "generic", {"previous_secrets": [OLD]}, password=NEW)
    ids = {lake.planned(hour(n).id).data_key for n in (2, 3)}
    rows = [{"archive": "orders", "data_key": key, "result": "to be wrapped anew"} for key in sorted(map(str, ids))]
    assert call("rotate-keys", "--dry-run", "-o", "json").json == rows
    done = [{**row, "result": "wrapped anew"} for row in rows]
    assert call("rotate-keys", "orders", "--yes", "-o", "json").json == done
    connection("master_key", "generic", password=NEW)
    assert {row["result"] for row in call("rotate-keys", "orders", "--yes", "-o", "json").json} == {"as before"}
    assert call("audit", "orders", "--deep", "-o", "json").json[0]["verdict"] == "clean"
    connection("master_key", "generic", password=OLD)
    shown = call("audit", "orders", "--deep", "-o", "json", code=1)
    [finding] = shown.json[0]["findings"]
    assert finding["kind"] == "not-opened"
    assert "add the earlier secret to `previous_secrets`" in finding["found"]


def test_an_archive_without_encryption_has_nothing_to_rotate(orders: Path, call: Call) -> None:
    assert call("rotate-keys", "--yes", "-o", "json").json == []
    assert "archive orders has no master key" in call("rotate-keys", "orders", "--yes", code=1).err


def test_what_a_logger_writes_to_stdout_is_not_in_the_data(
    lake: Lake, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The amazon provider says there where credentials come from, also when a ledger is opened late."""
    opens = connections.open_ledger

    def talks(archive: Archive) -> Ledger:
        print("[info] Found credentials in environment variables.")
        return opens(archive)

    monkeypatch.setattr(connections, "open_ledger", talks)
    for command, content in ((decrypt, None), (print_object, b'{"n": 0}\n')):
        command(Namespace(object=f"{lake.store.url}/{lake.stored()[0]}", content="value"))
        shown = capfdbinary.readouterr()
        assert (gzip.decompress(shown.out) if content is None else shown.out) == b'{"n": 0}\n'
        assert b"Found credentials" in shown.err


def test_another_archive_that_is_broken_keeps_nobody_from_an_object(
    lake: Lake, archives: Path, call: Call, tmp_path: Path
) -> None:
    key = lake.stored()[0]
    shown = call("print", f"{lake.store.url}/{key}").out
    (archives / "a_broken.yaml").write_text(
        "archive: a_broken\nsource: {topics: [nowhere]}\n"
        "store: {url: 's3://nowhere/x', aws: nowhere, encryption: {client: {connection: no_key}}}\n"
    )
    assert call("print", f"{lake.store.url}/{key}").out == shown
    local = tmp_path / "object.jsonl.gz.enc"
    local.write_bytes(lake.store.get(key) or b"")
    assert call("print", str(local)).out == shown
    (archives / "orders.yaml").unlink()
    problem = call("print", str(local), code=1).err
    assert "Not asked, because of an error: a_broken:" in problem


def test_an_archive_does_not_go_on_under_another_master_key(lake: Lake, connection: AddConnection) -> None:
    connection("master_key", "generic", password=NEW)
    lake.use(open_ledger(lake.archive).keyring)
    lake.logs[P0] = Range(0, 8)
    keys = lake.stored()
    with pytest.raises(ConfigError, match="add the earlier secret to `previous_secrets`"):
        lake.run(4)
    assert lake.stored() == keys
