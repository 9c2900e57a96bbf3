"""docs/howto/transforms.md: its YAML is valid, and what it describes happens."""

import re
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_archiver.config import parse_archive
from kafka_archiver.planning.given_schemas import require_readable
from kafka_archiver.planning.settings import settings_of
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from scripts.stack.paths import ROOT
from tests.contract.test_decoded_archives import parquet
from tests.support.chunks import read_json, read_values
from tests.support.lake import Lake
from tests.support.mappers import write_module

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
TEXT = (ROOT / "docs" / "howto" / "transforms.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
EXAMPLES = [block for language, block in BLOCKS if language == "yaml"]
# tests/spark/test_sql.py has the others.
SPARKS = ("where:", "function: my_spark")
YAMLS = [yaml for yaml in EXAMPLES if not any(part in yaml for part in SPARKS)]
CODE = "".join(block for language, block in BLOCKS if language == "python")
ORDER = b'{"id": 1, "email": "a@b.c", "card": "4111111111111111", "address": {"street": "s", "city": "c"}, "items": []}'
# By a part of the YAML: a value, and the rows that become of it.
FOUND: dict[str, tuple[bytes, Any]] = {
    "flatten": (ORDER, [("************1111", "c", [])]),
    "split_lines": (b"a\nb", [b"a", b"b"]),
    "only_paid": (b'{"id": 7, "state": "PAID"}', [{"offset": 0, "order_id": 7, "state": "PAID"}]),
    "upper": (b"abc", [b"ABC"]),
}


def of_steps(data: bytes) -> Any:
    rows = parquet(data)
    assert list(rows[0]) == ["id", "email", "card", "address_town", "items"]
    assert re.fullmatch("[0-9a-f]{64}", rows[0]["email"])
    return [(row["card"], row["address_town"], row["items"]) for row in rows]


READ: dict[str, Any] = {
    "flatten": of_steps, "split_lines": read_values, "only_paid": parquet,
    "upper": lambda data: [row.value for row in read_json(data)],
}  # fmt: skip


def test_each_example_is_known() -> None:
    assert [[part for part in FOUND if part in yaml] for yaml in YAMLS] == [[part] for part in FOUND]


@pytest.mark.parametrize("part", FOUND)
def test_an_example_does_what_the_page_says(part: str, tmp_path: Path) -> None:
    name = write_module(tmp_path, CODE)
    [yaml] = [yaml.replace("my_mappers:", f"{name}:") for yaml in YAMLS if part in yaml]
    archive = parse_archive(f"archive: orders\n{yaml}", str(tmp_path / "orders.yaml"))
    require_readable(archive, settings_of(archive))
    value, expected = FOUND[part]
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 1)}, odd={(P0, 0): {"value": value}}, name="orders")
    lake.configure(archive.model_copy(update={"source": archive.source.model_copy(update={"settle": 0})}))
    lake.context = replace(lake.context, keys={"pii_key": "k" * 20})
    lake.run(1)
    [key] = lake.stored()
    assert READ[part](lake.store.get(key) or b"") == expected
