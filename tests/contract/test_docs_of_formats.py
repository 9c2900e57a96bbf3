"""docs/howto/formats.md: its YAML is valid, and its commands work as written, on an archive of each format."""

import os
import re
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.planning.given_schemas import require_readable
from kafka_archiver.records.formats import resolve
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from scripts.stack.paths import BIN, ROOT
from tests.support.lake import Lake

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
TEXT = (ROOT / "docs" / "howto" / "formats.md").read_text(encoding="utf-8")
# By language; commands have none.
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line for language, block in BLOCKS if not language for line in block.splitlines()]
[DUCKDB] = re.findall(r"`(duckdb\(\) \{.*\})`", TEXT)
COLUMNS = {"decode": "json", "schema": [{"name": "id", "type": "int64"}, {"name": "amount", "type": "decimal(10, 2)"}]}
# One in each hour.
ORDERS = [b'{"id":%d,"amount":%d.25}' % (n, n) for n in range(5)]

# By a part of the command: the archive's settings, and patterns of what the command finds.
FOUND: dict[str, tuple[dict[str, Any], list[str]]] = {
    "sum(amount)": (
        {"format": "parquet", "content": "both", "metadata_prefix": "_kafka_", "decode": COLUMNS},
        [r"│ 00 +│ +1 │ +0\.25 │", r"│ 04 +│ +1 │ +4\.25 │"],
    ),
    "/*.jsonl.gz'": ({"format": "jsonl"}, [r"│ +5 │"]),
    "/*.csv.gz'": ({"format": "csv", "content": "record"}, [r"│ orders +│ +0 │ +4 │"]),
    "select * from read_parquet": ({"format": "parquet", "decode": COLUMNS}, [r"│ +3 │ +3\.25 │ 2026-11-20 │ 03 +│"]),
    "/*.gz'": ({"format": "block_gzip"}, [r"│ +5 │"]),
    "fastavro": ({"format": "avro", "content": "record"}, [r"'offset': 4,.*4\.25"]),
    "gzip -dc": ({"format": "text"}, [r"^1$"]),
    "archive print": ({"format": "mak", "content": "record", "codec": "gzip"}, [r'"offset":4,.*4\.25']),
    "where hour = 3": ({"format": "parquet", "decode": COLUMNS}, [r"│ +1 │"]),
    "pyarrow.dataset": ({"format": "parquet", "decode": COLUMNS}, [r"^1$"]),
}


def archived(folder: Path, decode: dict[str, Any] | None = None, **store: Any) -> None:
    """Archive the orders, and copy the objects: all to `lake`, and the last one as `orders` with its extension."""
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, len(ORDERS))})
    lake.odd = {(P0, offset): {"value": value} for offset, value in enumerate(ORDERS)}
    document = lake.archive.model_dump()
    document["source"] |= {"value": decode or {}}
    lake.configure(
        Archive.model_validate({**document, "store": {"url": "memory://unused", "chunk_records": 10, **store}})
    )
    lake.run(5)
    keys = lake.stored()
    assert len({key.rpartition("/")[0] for key in keys}) == len(ORDERS)
    for key in keys:
        path = folder / "lake" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lake.store.get(key) or b"")
        (folder / f"orders.{path.name.partition('.')[2]}").write_bytes(path.read_bytes())


def test_each_command_is_known() -> None:
    assert [[part for part in FOUND if part in command] for command in COMMANDS] == [[part] for part in FOUND]


@pytest.mark.parametrize("part", FOUND)
def test_a_command_finds_the_archived_orders(part: str, tmp_path: Path) -> None:
    [command] = (command for command in COMMANDS if part in command)
    settings, patterns = FOUND[part]
    archived(tmp_path, **settings)
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "AIRFLOW_HOME": str(tmp_path / "airflow")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{DUCKDB}\n{command}"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for pattern in patterns:
        assert re.search(pattern, done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize("yaml", [block for language, block in BLOCKS if language == "yaml"])
def test_the_yaml_is_valid(yaml: str) -> None:
    archive = parse_archive(f"archive: orders\n{yaml}", "orders.yaml")
    require_readable(archive, resolve(archive.settings, archive.has_columns))
