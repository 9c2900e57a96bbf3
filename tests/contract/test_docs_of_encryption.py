"""docs/howto/encryption.md: its YAML is valid, its program decrypts an object, its commands are the archiver's."""

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
from kafka_archiver.model.object_keys import key_document
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from scripts.stack.paths import ROOT
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
TEXT = (ROOT / "docs" / "howto" / "encryption.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)
YAML = [block for language, block in BLOCKS if language == "yaml"]
[PROGRAM] = [block for language, block in BLOCKS if language == "python"]
COMMANDS = re.findall(r"airflow (archive [^`\n]*|connections [^`\n]*)", TEXT)
SECRET = b"m" * 32


@pytest.mark.parametrize("yaml", YAML)
def test_its_yaml_is_valid(yaml: str) -> None:
    encryption = parse_archive(yaml, "a.yaml").store.encryption
    assert sum(way is not None for way in encryption.__dict__.values()) == 1


@pytest.fixture
def sealed(tmp_path: Path) -> tuple[str, bytes]:
    """An encrypted object beside the files that the program reads: its key, and the value that it holds."""
    keyring = Keyring([LocalMaster(SECRET)])
    # Several segments: values that do not compress.
    value = os.urandom(200_000)
    settings = {"format": "parquet", "content": "record", "encryption": {"client": {"connection": "x"}}}
    lake = Lake(
        MemoryStore(uuid.uuid4().hex), {P0: Range(0, 1)}, settings, odd={(P0, 0): {"value": value}}, keyring=keyring
    )
    lake.run(2)
    [key] = lake.stored()
    data_key, content = lake.planned(hour(2).id).data_key or "", lake.store.get(key) or b""
    assert (content[8:24].hex(), len(content) > 3 * 65552) == (data_key, True)
    (tmp_path / "orders.parquet.enc").write_bytes(content)
    (tmp_path / "data-key.json").write_bytes(lake.store.get(key_document(lake.name, data_key)) or b"")
    (tmp_path / "master.key").write_text(base64.b64encode(SECRET).decode() + "\n")
    return key, value


def read_by_the_program(folder: Path, name: str) -> "subprocess.CompletedProcess[str]":
    [own_name] = re.findall(r'^name = "(.*)"$', PROGRAM, re.MULTILINE)
    command = [sys.executable, "-c", PROGRAM.replace(own_name, name)]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


def test_its_program_decrypts(sealed: tuple[str, bytes], tmp_path: Path) -> None:
    key, value = sealed
    done = read_by_the_program(tmp_path, key)
    assert done.returncode == 0, done.stderr
    assert pq.read_table(tmp_path / "orders.parquet")["value"].to_pylist() == [value]


def test_its_program_refuses_an_object_that_was_put_in_the_place_of_another_one(
    sealed: tuple[str, bytes], tmp_path: Path
) -> None:
    other = sealed[0].replace("hour=", "hour=1")
    done = read_by_the_program(tmp_path, other)
    assert (done.returncode, done.stderr) == (
        1,
        f"orders.parquet.enc is not the object {other}: it was written under another name\n",
    )
    assert not (tmp_path / "orders.parquet").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_are_ones_that_airflow_takes(command: str) -> None:
    from airflow.cli.cli_parser import get_parser

    get_parser().parse_args(shlex.split(command.partition(" > ")[0].replace("$(", "").replace(")", "")))
