"""`airflow archive adopt`, and the other commands on what it has adopted."""

import json
from pathlib import Path
from typing import get_args

import pytest

from kafka_archiver.context.archive_context import Context
from kafka_archiver.model.adopted import Tool
from kafka_archiver.orchestration.cli.adopt import TOOLS
from tests.contract.test_adopted import confluent
from tests.dags.conftest import Call
from tests.support.foreign import sent

pytestmark = pytest.mark.dags


@pytest.fixture
def folder(context: Context, orders: Path) -> str:
    """Three files of Confluent's sink, and one of something else, below the archive's store.url."""
    for records in (sent(range(3)), sent(range(3, 6)), sent(range(6, 8))):
        context.store.put(*confluent("json", records))
    context.store.put("topics/orders/_SUCCESS", b"x")
    return f"{context.store.url}/topics"


def test_a_folder_is_listed_adopted_and_then_known_to_the_other_commands(
    call: Call, context: Context, folder: str
) -> None:
    adopt = ("adopt", folder, "--from", "confluent", "--archive", "orders")
    shown = call(*adopt, "--dry-run", "-o", "json").json
    assert (shown["adopted"], shown["left_out"]) == (False, {"the name is none of this tool's": 1})
    assert shown["partitions"][0]["objects"] == 3
    assert not list(context.store.list("_ledger/orders/adopted/"))
    shown = call(*adopt, "-o", "json").json
    [partition] = shown["partitions"]
    assert (shown["adopted"], shown["verdict"]) == (True, "unproven")
    assert (partition["rows"], partition["placed"], partition["loose"]) == (8, 6, 2)
    assert call(*adopt, "-o", "json").json == shown, "a second time changes nothing"
    text = call(*adopt).out
    assert "left out: 1 object: the name is none of this tool's, as topics/orders/_SUCCESS" in text
    assert "unknown: keys, headers and timestamps of records" in text
    got = json.loads(call("get", "orders", "orders+0@4").out)
    assert (got["offset"], json.loads(got["value"])["n"]) == (4, 4)
    assert "offset 7 is unproven" in call("get", "orders", "orders+0@7", code=1).err
    printed = call("print", f"{folder}/orders/partition=0/orders+0+0000000006.json").out.splitlines()
    assert [json.loads(line)["offset"] for line in printed] == [None, None]
    status = call("status", "orders", code=None)
    assert "adopted from confluent: 8 rows in 3 objects of" in " ".join(status.out.split())
    assert call("status", "orders", "-o", "json", code=None).json[0]["adopted"]["verdict"] == "unproven"
    assert "unproven" in call("audit", "orders", "--deep", code=None).out


def test_what_it_cannot_adopt_it_says(call: Call, folder: str, context: Context) -> None:
    shown = call("adopt", "s3://other/place", "--from", "lenses", code=1)
    assert "s3://other/place is below the store.url of no archive. Write include/archives/NAME.yaml" in shown.err
    assert "schedule: null" in shown.err
    assert "--topic: expected with --from zooz" in call("adopt", folder, "--from", "zooz", code=1).err
    assert "has no object of lenses: expected keys like" in call("adopt", folder, "--from", "lenses", code=1).err


def test_the_command_offers_each_tool() -> None:
    assert get_args(Tool) == TOOLS
