"""docs/ENCRYPTION.md: its YAML is valid, its program decrypts an object, its commands are the archiver's."""

import base64
import os
import re
import shlex
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafka_archiver.config import parse_archive
from kafka_archiver.encryption import Keyring
from kafka_archiver.encryption.masters import LocalMaster
from kafka_archiver.keys import key_document
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.store.memory import MemoryStore
from scripts.stack.paths import ROOT
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
TEXT = (ROOT / "docs" / "ENCRYPTION.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)
YAML = [block for language, block in BLOCKS if language == "yaml"]
[PROGRAM] = [block for language, block in BLOCKS if language == "python"]
COMMANDS = re.findall(r"airflow (archive [^`\n]*|connections [^`\n]*)", TEXT)
SECRET = b"m" * 32


@pytest.mark.parametrize("yaml", YAML)
def test_its_yaml_is_valid(yaml: str) -> None:
    encryption = parse_archive(yaml, "a.yaml").store.encryption
    assert sum(way is not None for way in encryption.__dict__.values()) == 1


def test_its_program_decrypts(tmp_path: Path) -> None:
    keyring = Keyring([LocalMaster(SECRET)])
    # Several segments: values that do not compress.
    odd = {(P0, 0): {"value": os.urandom(200_000)}}
    settings = {"format": "parquet", "content": "record", "encryption": {"client": {"connection": "x"}}}
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 1)}, settings, odd=odd, keyring=keyring)
    lake.run(2)
    [key] = lake.stored()
    data_key = lake.planned(hour(2).id).data_key or ""
    sealed = lake.store.get(key) or b""
    assert (sealed[8:24].hex(), len(sealed) > 3 * 65552) == (data_key, True)
    (tmp_path / "orders.parquet.enc").write_bytes(sealed)
    (tmp_path / "data-key.json").write_bytes(lake.store.get(key_document(lake.name, data_key)) or b"")
    (tmp_path / "master.key").write_text(base64.b64encode(SECRET).decode() + "\n")
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True)
    assert pq.read_table(tmp_path / "orders.parquet")["value"].to_pylist() == [odd[P0, 0]["value"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_are_ones_that_airflow_takes(command: str) -> None:
    from airflow.cli.cli_parser import get_parser

    get_parser().parse_args(shlex.split(command.partition(" > ")[0].replace("$(", "").replace(")", "")))
