"""To add something is one file and one line: each file of tests/support/extensions is used from the YAML to the audit.

The table "To add something" in docs/ARCHITECTURE.md says how. `test_jobs` has a job.
"""

import json
import uuid
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest
from airflow.cli.cli_config import GroupCommand
from airflow.cli.cli_parser import _add_command

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.context.keyring import keyring_of
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.advice import meanings
from kafka_archiver.messages.errors import ConfigError, PolicyError
from kafka_archiver.messages.policies import POLICIES
from kafka_archiver.orchestration.cli.commands import commands
from kafka_archiver.orchestration.connections.archive import store_endpoint
from kafka_archiver.orchestration.dag_run.form import params
from kafka_archiver.orchestration.page.actions import choices
from kafka_archiver.reader.archive import ArchiveReader, open_archive
from kafka_archiver.store import open_store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.support.extensions import Install, command, policy
from tests.support.lake import Lake

pytestmark = pytest.mark.unit
ROOM = "tests.support.extensions"
VALUES = [b'"a"', b'"bb"', b'"ccc"', b'"dddd"']
NAME = TopicPartition("orders", 0)


def archive(name: str, **sections: Any) -> Archive:
    """Return the archive of a YAML."""
    store = {"url": "memory://unused", **sections.pop("store", {})}
    source = {"topics": ["orders"], "settle": 0, **sections.pop("source", {})}
    return parse_archive(json.dumps({"archive": name, "source": source, "store": store, **sections}), "orders.yaml")


def archived(endpoints: Endpoints | None = None, opens: bool = False, **sections: Any) -> tuple[Lake, str]:
    """Plan, write, verify, commit and close an hour with four records, as a YAML says; audit it deeply.

    :param opens: open the store that the YAML names, by its connection. :return: the lake, and the run's name.
    """
    values = {(NAME, offset): {"value": value} for offset, value in enumerate(VALUES)}
    declared = archive("o", **sections)
    opened = open_store(declared.store.url, store_endpoint(declared)) if opens else MemoryStore(uuid.uuid4().hex)
    lake = Lake(opened, {NAME: Range(0, len(VALUES))}, odd=values)
    lake.configure(archive(lake.name, **sections))
    if endpoints:
        lake.use(keyring_of(endpoints))
    run = lake.run(3)
    assert lake.audit(deep=True).findings == ()
    return lake, run


def read(lake: Lake) -> list[dict[str, Any]]:
    """Return all records as programs read them."""
    return [row for batch in ArchiveReader(lake.ledger).read("orders") for row in batch.to_pylist()]


def refusal(**sections: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        archive("o", **sections)
    return str(caught.value)


def test_a_format_is_one_file_with_its_reader_for_the_audit(install: Install) -> None:
    install("formats", lists=f"{ROOM}.format:FORMAT")
    install("audit_readers", lists=f"{ROOM}.format:READER")
    lake, run = archived(store={"format": "lists", "content": "record", "options": {"indent": 2}})
    assert lake.planned(run).settings.options == {"indent": 2}
    [first, *_] = lake.manifest(run).objects
    assert first.key.endswith(".lists")
    assert (lake.store.get(first.key) or b"").startswith(b"  [0, ")
    assert [row["value"] for row in read(lake)] == VALUES
    lake.rebuild(run)
    assert [row["value"] for row in read(lake)] == VALUES
    lake.configure(archive(lake.name, store={"format": "lists", "content": "record", "options": {"width": 2}}))
    with pytest.raises(ConfigError, match=r"`store.options.width` is not an option: format lists has indent"):
        lake.run(4)


def test_a_layout_is_one_file(install: Install) -> None:
    install("layouts", by_length=f"{ROOM}.layout:ByLength")
    lake, run = archived(store={"layout": {"name": "by_length", "most": 5}})
    paths = ["p=0/length=3", "p=0/length=4", "p=0/length=5"]
    assert sorted({entry.path for entry in lake.manifest(run).objects}) == paths
    lake.rebuild(run)
    assert lake.audit(deep=True).findings == ()
    assert refusal(store={"layout": {"name": "by_length", "least": 2}}) == (
        "orders.yaml: `store.layout.least` is not an option: layout by_length has most"
    )


def test_a_decoder_is_one_file(install: Install) -> None:
    install("decoders", reversed=f"{ROOM}.decoder:REVERSED")
    lake, run = archived(store={"format": "parquet"}, source={"value": {"decode": "reversed"}})
    assert lake.planned(run).settings.value_decode == "reversed"
    assert [row["value"] for row in read(lake)] == [value.decode()[::-1] for value in VALUES]
    assert "'json_schema' or 'reversed', found 'turned'" in refusal(source={"value": {"decode": "turned"}})


def test_a_transform_step_is_one_file(install: Install) -> None:
    install("steps", cut=f"{ROOM}.step:Cut")
    steps = [{"cut": {"fields": "value", "to": 3}}, {"mask": {"fields": "value", "keep": 2}}]
    lake, run = archived(
        store={"format": "parquet"}, source={"value": {"decode": "string"}}, transform={"steps": steps}
    )
    planned = lake.planned(run)
    assert type(planned).from_json(planned.to_json(), "plan.json") == planned
    assert planned.settings.transform is not None
    cut = planned.settings.transform.steps[0].model_dump()
    assert cut == {"step": "cut", "fields": ("value",), "to": 3}
    assert planned.settings.transform.touches(("value",))
    assert [row["value"] for row in read(lake)] == ["*" * (len(text) - 2) + text[-2:] for text in _cut(3)]
    wrong = [{"cut": {"fields": "value", "to": -1}}, {"cut": {"fields": "value", "to": 1, "from": 2}}, {"cat": "value"}]
    lines = refusal(transform={"steps": wrong}).splitlines()
    assert [line.partition("transform.steps.")[2] for line in lines] == [
        "0`: expected other settings of `cut`: `to`: expected greater than or equal to 0; found -1",
        "1`: expected other settings of `cut`: `from` is none of them",
        "2`: expected one of mask, hash, drop, rename, flatten, cut with its settings, for example `mask: value.card`",
    ]


def _cut(to: int) -> list[str]:
    return [value.decode()[:to] for value in VALUES]


def test_what_a_step_takes_away_is_not_kept_elsewhere(install: Install) -> None:
    install("steps", cut=f"{ROOM}.step:Cut")
    with pytest.raises(ConfigError, match="cut: the objects would keep the bytes of keys and values"):
        archived(
            store={"format": "parquet", "content": "both"},
            source={"value": {"decode": "string"}},
            transform={"steps": [{"cut": {"fields": "value", "to": 3}}]},
        )


@pytest.mark.parametrize("content", ["value", "record"])
def test_a_stage_with_a_setting_is_one_file(install: Install, content: str) -> None:
    install("steps", sample=f"{ROOM}.stage:Sample")
    lake, run = archived(store={"content": content}, transform={"steps": [{"sample": 2}]})
    assert [row["value"] for row in read(lake)] == VALUES[::2]
    [account] = lake.manifest(run).chunks
    assert (account.archived, account.filtered) == (2, 2)
    assert "found 0" in refusal(transform={"steps": [{"sample": 0}]})


def test_a_class_of_master_keys_is_one_file(install: Install) -> None:
    install("master_keys", letter=f"{ROOM}.master_key:LetterMaster")
    encryption = {"client": {"letter": "k"}}
    client = archive("o", store={"encryption": encryption}).store.encryption.client
    assert client
    endpoints = Endpoints({}, {}, master_keys=client.remote)
    lake, run = archived(endpoints, store={"encryption": encryption})
    assert [row["value"] for row in read(lake)] == VALUES
    assert all(VALUES[0] not in (lake.store.get(entry.key) or b"") for entry in lake.manifest(run).objects)
    lake.use(keyring_of(Endpoints({}, {}, master_keys={"letter": "x"})))
    with pytest.raises(ConfigError, match="is wrapped by master key"):
        read(lake)
    assert refusal(store={"encryption": {"client": {"digit": "1"}}}) == (
        "orders.yaml: `store.encryption.client.digit` is not a key of an archive; expected one of connection, encrypt, "
        "kms_key_id, previous"
    )


def test_a_policy_is_a_value_with_a_field_and_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, policy.POLICY.name, policy.POLICY)
    monkeypatch.setattr("kafka_archiver.config.load.Archive", policy.ArchiveOfThree)
    declared = archive("o")
    assert isinstance(declared, policy.ArchiveOfThree)
    with pytest.raises(PolicyError) as caught:
        policy.empty_interval(declared)
    [action] = caught.value.actions
    assert action.conf == {"policies": {"empty_interval": "close"}}
    assert action.command in str(caught.value)
    assert meanings([action]) == "close: the hour is closed without a record"
    # The YAML, and one run's conf.
    assert policy.empty_interval(archive("o", policies={"empty_interval": "close"})) == "close"
    assert policy.empty_interval(declared.choosing({"empty_interval": "close"})) == "close"
    assert "`policies.empty_interval`: expected 'fail' or 'close'" in refusal(policies={"empty_interval": "shut"})
    # The trigger form, and the page.
    assert params(declared)["policies.empty_interval"].schema["enum"] == [None, "fail", "close"]
    assert choices()["empty_interval"] == ("fail", "close")


def test_a_store_is_one_file(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("stores", twin=f"{ROOM}.store:TWIN")
    monkeypatch.setenv("AIRFLOW_CONN_TWIN_DEFAULT", '{"conn_type": "twin", "password": "opensesame"}')
    url = f"twin://{uuid.uuid4().hex}/lake"
    lake, run = archived(opens=True, store={"url": url})
    assert lake.store.url == url
    assert [row["value"] for row in read(lake)] == VALUES
    assert store_endpoint(archive("o", store={"url": url})) == {"token": "opensesame"}
    assert store_endpoint(archive("o", store={"url": url, "connection": {"token": "t"}})) == {"token": "t"}
    # A program that reads the archive.
    assert open_archive(url, lake.name, {"token": "t"}).ledger.manifest(run) == lake.manifest(run)
    with pytest.raises(ConfigError, match=r"the mapping in store.connection: store options: expected token, found key"):
        store_endpoint(archive("o", store={"url": url, "connection": {"key": "t"}}))
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", '{"conn_type": "aws"}')
    with pytest.raises(ConfigError, match="is of type 'aws'; expected 'twin'"):
        store_endpoint(archive("o", store={"url": url, "connection": "other"}))
    of_s3 = {"tags": {"a": "b"}, "storage_class": "STANDARD_IA", "encryption": "sse-s3", "aws": "mine"}
    assert refusal(store={"url": url, **of_s3}) == (
        "orders.yaml: `store`: expected nothing of S3 beside twin://; remove `aws`, `storage_class`, "
        "`encryption.sse-s3`, `tags`"
    )
    assert "expected s3://bucket/prefix or az://container/prefix or twin://name/prefix" in refusal(store={"url": "x"})
    assert "no `connection` beside an s3:// URL" in refusal(store={"url": "s3://b/p", "connection": "mine"})


def test_a_command_is_one_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orders.yaml").write_text("archive: orders\nsource: {topics: [a, b]}\nstore: {url: 's3://b/p'}\n")
    monkeypatch.setenv("ARCHIVER_CONFIG_DIR", str(tmp_path))
    # The line of the registry.
    monkeypatch.setattr("kafka_archiver.orchestration.cli.commands._COMMANDS", (command.COUNT,))
    [group] = commands()
    assert isinstance(group, GroupCommand)
    parser = ArgumentParser()
    for added in group.subcommands:
        _add_command(parser.add_subparsers(), added)
    arguments = parser.parse_args(["count", "orders", "-o", "json"])
    arguments.func(arguments)
    assert json.loads(capsys.readouterr().out) == {"topics": 2}
    arguments = parser.parse_args(["count", "other"])
    with pytest.raises(SystemExit):
        arguments.func(arguments)
    assert "other" in capsys.readouterr().err
